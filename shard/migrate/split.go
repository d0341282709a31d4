package migrate

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A statement is one SQL statement of a file, without the comments before it and the
// semicolon after it.
type statement struct {
	text string
	line int // on which it begins, from 1
}

// A scanner divides a text into statements where psql does: at semicolons that are
// in no quotes, no comment, no parentheses and no BEGIN ATOMIC ... END of a function.
// The server is given each on its own and takes only one at a time, so where the two
// should differ there is an error and no other meaning.
type scanner struct {
	text string
	at   int

	begin  int      // where the statement begins; -1: not yet
	words  []string // the first of the statement, in upper case
	parens int
	blocks int // of BEGIN ATOMIC, and CASE in them
}

// leadingWords is how many words say what a statement is: CREATE OR REPLACE FUNCTION.
const leadingWords = 4

// split returns the statements of a text.
func split(text string) ([]statement, error) {
	s := scanner{text: text, begin: -1}
	var all []statement
	line, counted := 1, 0
	for {
		begin, end, err := s.next()
		if begin >= 0 {
			line += strings.Count(text[counted:begin], "\n")
			counted = begin
		}
		if err == nil && begin >= 0 {
			err = s.refuse()
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if begin < 0 {
			return all, nil
		}
		all = append(all, statement{strings.TrimRightFunc(text[begin:end], unicode.IsSpace), line})
	}
}

// next finds the next statement; begin is -1 where there is none.
func (s *scanner) next() (begin, end int, err error) {
	s.begin, s.words, s.parens, s.blocks = -1, s.words[:0], 0, 0
	for s.at < len(s.text) {
		at := s.at
		if s.text[at] == ';' && s.parens == 0 && s.blocks == 0 {
			s.at++
			if s.begin < 0 {
				continue // nothing, and its semicolon
			}
			return s.begin, at, nil
		}
		space, err := s.token()
		if !space && s.begin < 0 {
			s.begin = at
		}
		if err != nil {
			return s.begin, at, err
		}
	}
	return s.begin, len(s.text), nil
}

// token goes past a token, and says whether it is space or a comment.
func (s *scanner) token() (space bool, err error) {
	rest := s.text[s.at:]
	c := rest[0]
	switch {
	case strings.HasPrefix(rest, "--"):
		line, _, _ := strings.Cut(rest, "\n")
		s.at += len(line)
		return true, nil
	case strings.HasPrefix(rest, "/*"):
		return true, s.comment()
	case c == '\'':
		return false, s.quoted("'", false)
	case c == '"':
		return false, s.quoted(`"`, false)
	case c == '$':
		return false, s.dollar()
	case c == '\\' && s.begin < 0:
		return false, fmt.Errorf("%s is a command of psql, not SQL", strings.Fields(rest)[0])
	case isWordStart(rest):
		return false, s.word()
	case c == '(':
		s.parens++
	case c == ')' && s.parens > 0:
		s.parens--
	case c >= '0' && c <= '9':
		s.at += wordLength(rest) // 1e5 is one token
		return false, nil
	}
	s.at++
	return unicode.IsSpace(rune(c)), nil
}

// comment goes past a comment, which may have others in it.
func (s *scanner) comment() error {
	depth := 0
	for i := s.at; i < len(s.text); i++ {
		switch {
		case strings.HasPrefix(s.text[i:], "/*"):
			depth++
			i++
		case strings.HasPrefix(s.text[i:], "*/"):
			depth--
			i++
			if depth == 0 {
				s.at = i + 1
				return nil
			}
		}
	}
	return errors.New("a comment that begins here does not end")
}

// quoted goes past a text in quotes, in which two quotes are one.
func (s *scanner) quoted(quote string, backslashes bool) error {
	for i := s.at + 1; i < len(s.text); i++ {
		switch {
		case backslashes && s.text[i] == '\\':
			i++
		case s.text[i] == quote[0]:
			// Of two, the second begins a text that is joined to this one.
			s.at = i + 1
			return nil
		}
	}
	return fmt.Errorf("a text in %s that begins here does not end", quote)
}

// dollar goes past a text in dollar quotes, or a dollar.
func (s *scanner) dollar() error {
	rest := s.text[s.at:]
	tag := 1
	if isWordStart(rest[1:]) {
		tag += strings.IndexFunc(rest[1:]+"$", func(r rune) bool { return !isWordRune(r) || r == '$' })
	}
	if tag >= len(rest) || rest[tag] != '$' {
		s.at++ // of a parameter
		return nil
	}
	delimiter := rest[:tag+1]
	end := strings.Index(rest[len(delimiter):], delimiter)
	if end < 0 {
		return fmt.Errorf("a text in %s that begins here does not end", delimiter)
	}
	s.at += len(delimiter) + end + len(delimiter)
	return nil
}

// word goes past a word, which may begin a text of its own kind, or a block.
func (s *scanner) word() error {
	n := wordLength(s.text[s.at:])
	word := strings.ToUpper(s.text[s.at : s.at+n])
	s.at += n
	if word == "E" && strings.HasPrefix(s.text[s.at:], "'") {
		return s.escaped()
	}
	if len(s.words) < leadingWords {
		s.words = append(s.words, word)
	}
	if word == "STDIN" && s.words[0] == "COPY" {
		return errors.New("COPY FROM STDIN: there is nothing to read: a file has statements only")
	}
	if s.parens > 0 || !s.makesRoutine() {
		return nil
	}
	switch {
	case word == "BEGIN", word == "CASE" && s.blocks > 0:
		s.blocks++
	case word == "END" && s.blocks > 0:
		s.blocks--
	}
	return nil
}

// escaped goes past a text after E, in which a backslash keeps a quote from ending
// it, and so does a second quote.
func (s *scanner) escaped() error {
	for {
		if err := s.quoted("'", true); err != nil {
			return err
		}
		if !strings.HasPrefix(s.text[s.at:], "'") {
			return nil
		}
	}
}

// makesRoutine says whether the statement makes a function or procedure, which may
// have a body of statements.
func (s *scanner) makesRoutine() bool {
	words := strings.Join(s.words, " ")
	for _, kind := range []string{"FUNCTION", "PROCEDURE"} {
		if strings.HasPrefix(words, "CREATE "+kind) || words == "CREATE OR REPLACE "+kind {
			return true
		}
	}
	return false
}

// refuse refuses a statement that ends or begins a transaction: half a file would be
// applied, and no record say so.
func (s *scanner) refuse() error {
	var first, second string
	if len(s.words) > 0 {
		first = s.words[0]
	}
	if len(s.words) > 1 {
		second = s.words[1]
	}
	switch first {
	case "ROLLBACK":
		if second == "TO" || len(s.words) > 2 && s.words[2] == "TO" {
			return nil // a savepoint
		}
	case "PREPARE":
		if second != "TRANSACTION" {
			return nil
		}
	case "BEGIN", "START", "COMMIT", "END", "ABORT":
	default:
		return nil
	}
	return fmt.Errorf("%s: a file begins and ends no transaction, it runs in one", first)
}

// wordLength is the length of the word or number that a text begins with.
func wordLength(text string) int {
	n := strings.IndexFunc(text, func(r rune) bool { return !isWordRune(r) })
	if n < 0 {
		return len(text)
	}
	return n
}

func isWordStart(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return isWordRune(r) && r != '$' && (r < '0' || r > '9')
}

func isWordRune(r rune) bool {
	return r == '_' || r == '$' || r >= utf8.RuneSelf ||
		'0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}
