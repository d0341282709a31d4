package takeover

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// This file holds --query to its word: it looks. A transaction for reading is not
// enough for that: MySQL and MariaDB commit it before they carry out a DROP TABLE,
// SELECT ... INTO OUTFILE writes a file, and SQLite runs what follows a semicolon.
//
// The text is read without a grammar, for five dialects at once. So what one of them
// may read in another way, such as a comment or a backslash, is refused.

var (
	literal  = regexp.MustCompile("'[^'\\\\]*'|\"[^\"\\\\]*\"|`[^`\\\\]*`")
	unclear  = pattern("--|/\\*|\\*/|#|\\\\|;|\\[|'|\"|`|\\$[\\pL_]*[0-9]*\\$")
	escaped  = regexp.MustCompile(`(?i)\bu&["']`) // a name may be written in numbers, so that nobody sees it
	bareWord = pattern(`[\pL_][\pL\pN_$]*`)
	locks    = regexp.MustCompile(`(?i)\bfor\s+(no\s+key\s+|key\s+)?(update|share)\b|\block\s+in\b|\bvalue\s+for\b`)
)

// pattern compiles an expression when it is needed: each start of the command would wait for that.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// queries are the words that a query begins with; writers are those that make it more.
var (
	queries = []string{"select", "with", "values", "table"}
	writers = []string{"insert", "update", "delete", "merge", "into", "nextval", "setval", "procedure"}
)

// WrittenOut is the hint that helps against every refusal: a query over no table. All
// databases read it alike.
const WrittenOut = `write the counters out, joined by UNION ALL: firn series import --query "SELECT 'NAME', NUMBER, STEP"`

// checkQuery returns an error if a text is anything but one query.
func checkQuery(text string) error {
	if fault := queryFault(text); fault != nil {
		return fault.hint(WrittenOut)
	}
	return nil
}

// queryFault says what is wrong with a text that is not one query; nil: nothing.
func queryFault(text string) *Error {
	rest := strings.TrimSpace(text)
	rest = strings.TrimSpace(strings.TrimSuffix(rest, ";"))
	rest = literal.ReplaceAllString(rest, " ? ")
	const form = "--query 'SELECT name, number, step FROM ...'"
	words := bareWord().FindAllString(rest, -1)
	for i := range words {
		words[i] = strings.ToLower(words[i])
	}
	switch mark := unclear().FindString(rest); {
	case mark == ";":
		return bad("--query has several statements, and only one query is run").hint(form)
	case mark != "":
		return bad("--query has %s, which databases read in different ways: leave comments, backslashes and brackets out", mark).hint(form)
	case escaped.MatchString(text):
		return bad("--query has U&, which hides a name: write the name as it is").hint(form)
	case len(words) == 0 || !slices.Contains(queries, words[0]) || !strings.HasPrefix(strings.ToLower(strings.TrimLeft(rest, "( \t\r\n")), words[0]):
		return bad("--query is no query: it begins with SELECT, WITH, VALUES or TABLE").hint(form)
	case locks.MatchString(rest):
		return bad("--query has %s, and it may only read", strings.ToUpper(locks.FindString(rest))).hint(form)
	}
	for _, w := range words {
		if slices.Contains(writers, w) {
			return bad("--query has %s, and it may only read", strings.ToUpper(w)).hint("a column of that name is written in quotes: \"%s\", of MySQL `%s`", w, w)
		}
	}
	return nil
}
