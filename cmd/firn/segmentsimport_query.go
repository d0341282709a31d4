package main

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// This file holds --from to its word: it looks. A transaction for reading is not
// enough for that: MySQL and MariaDB commit it before they carry out a DROP TABLE,
// SELECT ... INTO OUTFILE writes a file, and SQLite runs what follows a semicolon.
//
// The text is read without a grammar, for five dialects at once. So what one of them
// may read in another way, such as a comment or a backslash, is refused.

var (
	literal     = regexp.MustCompile("'[^'\\\\]*'|\"[^\"\\\\]*\"|`[^`\\\\]*`")
	textLiteral = regexp.MustCompile(`'[^']*'`) // in a plan
	unclear     = regexp.MustCompile("--|/\\*|\\*/|#|\\\\|;|\\[|'|\"|`|\\$[\\pL_]*[0-9]*\\$")
	bareWord    = regexp.MustCompile(`[\pL_][\pL\pN_$]*`)
	calledName  = regexp.MustCompile(`(?:"([^"]+)"|([\pL_][\pL\pN_$]*))\s*\(`)
	locks       = regexp.MustCompile(`(?i)\bfor\s+(no\s+key\s+|key\s+)?(update|share)\b|\block\s+in\b|\bvalue\s+for\b`)
)

// queries are the words that a query begins with; writers are those that make it more.
var (
	queries = []string{"select", "with", "values", "table"}
	writers = []string{"insert", "update", "delete", "merge", "into", "nextval", "setval", "procedure"}
)

// checkQuery returns an error if a text is anything but one query.
func checkQuery(text string) error {
	rest := strings.TrimSpace(text)
	rest = strings.TrimSpace(strings.TrimSuffix(rest, ";"))
	rest = literal.ReplaceAllString(rest, " ? ")
	const form = "--from 'SELECT name, number, step FROM ...'"
	words := bareWord.FindAllString(rest, -1)
	for i := range words {
		words[i] = strings.ToLower(words[i])
	}
	switch mark := unclear.FindString(rest); {
	case mark == ";":
		return bad("--from has several statements, and only one query is run").hint(form)
	case mark != "":
		return bad("--from has %s, which databases read in different ways: leave comments, backslashes and brackets out", mark).hint(form)
	case len(words) == 0 || !slices.Contains(queries, words[0]) || !strings.HasPrefix(strings.ToLower(strings.TrimLeft(rest, "( \t\r\n")), words[0]):
		return bad("--from is no query: it begins with SELECT, WITH, VALUES or TABLE").hint(form)
	case locks.MatchString(rest):
		return bad("--from has %s, and it may only read", strings.ToUpper(locks.FindString(rest))).hint(form)
	}
	for _, w := range words {
		if slices.Contains(writers, w) {
			return bad("--from has %s, and it may only read", strings.ToUpper(w)).hint("a column of that name is written in quotes: \"%s\", of MySQL `%s`", w, w)
		}
	}
	return nil
}

// checkCalls returns an error if the query calls a function of PostgreSQL that may
// change something: a transaction for reading does not keep pg_terminate_backend or
// lo_create from it. The plan has the calls of views, too. What a function does inside
// that its owner declared to be STABLE or IMMUTABLE cannot be seen.
func checkCalls(ctx context.Context, tx *sql.Tx, query string) error {
	plan, err := planOf(ctx, tx, query)
	if err != nil {
		return err
	}
	var names []string
	for _, m := range calledName.FindAllStringSubmatch(query+"\n"+plan, -1) {
		names = append(names, m[1]+strings.ToLower(m[2]))
	}
	var name string
	// The view pg_sequences calls pg_sequence_last_value, which only reads.
	err = tx.QueryRowContext(ctx, `SELECT proname FROM pg_catalog.pg_proc WHERE provolatile = 'v' AND proname = ANY($1)
		AND oid <> 'pg_catalog.pg_sequence_last_value(regclass)'::regprocedure LIMIT 1`, names).Scan(&name)
	switch {
	case err == nil:
		return bad("--from calls %s, by itself or in a view, a function that may change something (VOLATILE), and it may only read", name).
			hint("write the SELECT over tables, without that function")
	case errors.Is(err, sql.ErrNoRows):
		return nil
	}
	return err
}

// planOf returns how PostgreSQL would run a query, which it does not run.
func planOf(ctx context.Context, tx *sql.Tx, query string) (string, error) {
	rows, err := tx.QueryContext(ctx, "EXPLAIN (VERBOSE, COSTS OFF) "+query)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return "", err
		}
		plan.WriteString(textLiteral.ReplaceAllString(line, " ? ") + "\n")
	}
	return plan.String(), rows.Err()
}
