package main

import (
	"regexp"
	"slices"
	"strings"
)

// isCopy finds a COPY: the server would wait for what it reads.
var isCopy = regexp.MustCompile(`(?i)^copy\b`)

// isRead finds a statement of a kind that reads. The transaction is read-only besides; but
// other kinds, such as DO, can do more than change tables.
var isRead = regexp.MustCompile(`(?i)^(select|with|values|table|show|explain)\b`)

// firstWords is a statement without the spaces, brackets and comments that it begins with, as
// PostgreSQL reads them: comments of the second kind may stand in each other.
func firstWords(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f\v(")
		switch {
		case strings.HasPrefix(sql, "--"):
			end := strings.IndexAny(sql, "\r\n")
			if end < 0 {
				return ""
			}
			sql = sql[end:]
		case strings.HasPrefix(sql, "/*"):
			sql = afterComment(sql)
		default:
			return sql
		}
	}
}

// afterComment is what follows the comment that a statement begins with; empty: it has no end.
func afterComment(sql string) string {
	depth := 0
	for sql != "" {
		switch {
		case strings.HasPrefix(sql, "/*"):
			depth, sql = depth+1, sql[2:]
		case strings.HasPrefix(sql, "*/"):
			depth, sql = depth-1, sql[2:]
		default:
			sql = sql[1:]
		}
		if depth == 0 {
			break
		}
	}
	return sql
}

// beginsWithComment finds an argument that is no flag, though it begins like one: a line of
// comment comes first.
var beginsWithComment = regexp.MustCompile(`^--(\W|[^=\r\n]*[\r\n])`)

// withStatement has a statement of firn shard exec that begins with a comment read as an
// argument.
func withStatement(args []string) []string {
	at := slices.Index(args, "exec")
	if at < 0 {
		return args
	}
	args = slices.Clone(args)
	for i := at; i < len(args); i++ {
		if beginsWithComment.MatchString(args[i]) {
			args[i] = " " + args[i]
		}
	}
	return args
}
