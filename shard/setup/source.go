package setup

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// This file reads the text of a function, as far as functions that make ids go:
// declarations with constants, assignments in their usual spellings, RETURN. What a
// variable stands for is put in its place, so that what is left is one expression.

// An expression is a number, a text, an operator or a call, with what it is about.
// The moment that a clock gives is "epoch"; casts are left out.
type expression struct {
	op    string
	value int64
	text  string
	args  []*expression
}

func (e *expression) String() string {
	switch e.op {
	case "number":
		return strconv.FormatInt(e.value, 10)
	case "text":
		return "'" + e.text + "'"
	}
	args := make([]string, len(e.args))
	for i, a := range e.args {
		args[i] = a.String()
	}
	return e.op + "(" + strings.Join(args, ", ") + ")"
}

// value is the expression that a function returns.
func (f function) value() (*expression, error) {
	words, err := scan(f.source)
	if err != nil {
		return nil, err
	}
	r := &reader{words: words, variables: map[string]*expression{}}
	switch f.language {
	case "sql":
		r.take("select")
		e := r.expression(0)
		if r.take("as") {
			r.next()
		}
		r.take(";")
		if len(r.words) > 0 {
			r.fail("it goes on after the first statement")
		}
		return e, r.err
	case "plpgsql":
		return r.body(f.result)
	}
	return nil, fmt.Errorf("it is written in %s", f.language)
}

// A reader takes words from the front. After an error it gives nothing.
type reader struct {
	words     []string
	variables map[string]*expression
	err       error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
		r.words = nil
	}
}

func (r *reader) peek() string {
	if len(r.words) == 0 {
		return ""
	}
	return r.words[0]
}

func (r *reader) next() string {
	w := r.peek()
	if w == "" {
		r.fail("it ends too early")
		return ""
	}
	r.words = r.words[1:]
	return w
}

// take takes a word if it is that.
func (r *reader) take(word string) bool {
	if r.peek() != word {
		return false
	}
	r.words = r.words[1:]
	return true
}

func (r *reader) expect(word string) {
	if w := r.peek(); !r.take(word) {
		r.fail("there is %q where %q was expected", w, word)
	}
}

// body reads DECLARE ... BEGIN ... END and returns the result.
func (r *reader) body(result string) (*expression, error) {
	if r.take("declare") {
		for r.err == nil && r.peek() != "begin" {
			r.declaration()
		}
	}
	r.expect("begin")
	var returned *expression
	for r.err == nil && returned == nil && r.peek() != "end" {
		if !r.take("return") {
			r.statement()
		} else if r.peek() == ";" {
			break
		} else {
			returned = r.expression(0)
		}
	}
	r.take(";")
	r.expect("end")
	r.take(";")
	if len(r.words) > 0 {
		r.fail("it goes on after its end")
	}
	if returned == nil && result != "" {
		returned = r.variables[strings.ToLower(result)]
	}
	if returned == nil {
		r.fail("it returns nothing")
	}
	return returned, r.err
}

func (r *reader) declaration() {
	name := r.next()
	for !slices.Contains([]string{":=", "=", "default", ";", ""}, r.peek()) {
		r.next() // CONSTANT, the type
	}
	if !r.take(";") {
		r.next()
		r.assign(name, r.expression(0))
		r.expect(";")
	}
}

func (r *reader) statement() {
	switch {
	case r.take("select") && r.take("into"):
		r.take("strict")
		name := r.next()
		r.assign(name, r.expression(0))
	case len(r.words) > 1 && (r.words[1] == ":=" || r.words[1] == "="):
		name := r.next()
		r.next()
		r.assign(name, r.expression(0))
	default: // what follows SELECT
		e := r.expression(0)
		r.expect("into")
		r.take("strict")
		r.assign(r.next(), e)
	}
	r.expect(";")
}

func (r *reader) assign(name string, e *expression) {
	if r.err == nil {
		r.variables[name] = e
	}
}

// How tightly operators bind. Those that PostgreSQL has no rule for are between + and
// the comparisons, from left to right.
var binding = map[string]int{"|": 1, "&": 1, "<<": 1, "+": 2, "-": 2, "*": 3, "%": 3}

func (r *reader) expression(least int) *expression {
	e := r.operand()
	for r.err == nil {
		op := r.peek()
		b := binding[op]
		if b == 0 || b <= least {
			break
		}
		r.next()
		e = &expression{op: op, args: []*expression{e, r.expression(b)}}
	}
	return e
}

func (r *reader) operand() *expression {
	e := r.primary()
	for r.err == nil && r.take("::") {
		r.typeName()
	}
	return e
}

// typeName takes the name of a type that holds whole numbers, or more.
func (r *reader) typeName() {
	switch t := r.next(); t {
	case "bigint", "int8", "numeric", "text", "regclass":
	case "double":
		r.expect("precision")
	default:
		// A smaller one fails where the value is too large, as for a shard it is not.
		if t != "int" && t != "integer" && t != "int4" {
			r.fail("a value is cast to %s", t)
		}
	}
}

func (r *reader) primary() *expression {
	w := r.next()
	switch {
	case w == "":
		return &expression{}
	case w == "(":
		e := r.expression(0)
		r.expect(")")
		return e
	case w[0] >= '0' && w[0] <= '9':
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			r.fail("%s is no whole number", w)
		}
		return &expression{op: "number", value: n}
	case w[0] == '\'':
		return &expression{op: "text", text: strings.ReplaceAll(w[1:len(w)-1], "''", "'")}
	case r.variables[w] != nil:
		return r.variables[w]
	case clocks[w] && w == "current_timestamp":
		return &expression{op: "clock"}
	case r.take("("):
		return r.call(w)
	}
	if w == "%" { // the operand of a first one
		r.fail("%s", `"%%" is how a format string writes %, and PostgreSQL has no such operator: this function fails when it is called; write "%"`)
	}
	r.fail("%q is not known", w)
	return &expression{}
}

// Clocks that are at the time, or, within a transaction, behind it.
var clocks = map[string]bool{"clock_timestamp": true, "now": true, "statement_timestamp": true, "transaction_timestamp": true, "current_timestamp": true}

func (r *reader) call(name string) *expression {
	if name == "extract" {
		r.expect("epoch")
		r.expect("from")
		return r.epochOf(r.arguments())
	}
	args := r.arguments()
	switch {
	case clocks[name] && len(args) == 0:
		return &expression{op: "clock"}
	case name == "date_part" && len(args) == 2 && args[0].text == "epoch":
		return r.epochOf(args[1:])
	case (name == "floor" || name == "trunc" || name == "nextval") && len(args) == 1, name == "mod" && len(args) == 2:
		return &expression{op: name, args: args}
	}
	r.fail("%s(...) is not known", name)
	return &expression{}
}

func (r *reader) epochOf(args []*expression) *expression {
	if len(args) != 1 || args[0].op != "clock" {
		r.fail("the time is not that of a clock")
	}
	return &expression{op: "epoch"}
}

// arguments reads what stands before the closing bracket.
func (r *reader) arguments() (args []*expression) {
	if r.take(")") {
		return nil
	}
	for r.err == nil {
		args = append(args, r.expression(0))
		if r.take(")") {
			break
		}
		r.expect(",")
	}
	return args
}

// scan divides a text into words: names in small letters, numbers, texts, operators.
// Comments are left out, and the schema pg_catalog before a name.
func scan(source string) (words []string, err error) {
	for rest := source; rest != ""; {
		n := 1
		switch c := rest[0]; {
		case strings.ContainsRune(" \t\r\n", rune(c)):
			rest = rest[1:]
			continue
		case strings.HasPrefix(rest, "--"):
			_, rest, _ = strings.Cut(rest, "\n")
			continue
		case strings.HasPrefix(rest, "/*"):
			var ok bool
			if _, rest, ok = strings.Cut(rest, "*/"); !ok {
				return nil, errors.New("a comment does not end")
			}
			continue
		case isWord(c):
			for n < len(rest) && isWord(rest[n]) {
				n++
			}
			words = append(words, strings.ToLower(rest[:n]))
			rest = rest[n:]
			if strings.HasPrefix(rest, ".") && words[len(words)-1] == "pg_catalog" {
				words, rest = words[:len(words)-1], rest[1:]
			}
			continue
		case c == '\'':
			for n < len(rest) && rest[n] != '\'' || strings.HasPrefix(rest[min(n, len(rest)):], "''") {
				if rest[n] == '\'' {
					n++
				}
				n++
			}
			if n++; n > len(rest) {
				return nil, errors.New("a text does not end")
			}
		case strings.HasPrefix(rest, ":="), strings.HasPrefix(rest, "::"), strings.HasPrefix(rest, "<<"):
			n = 2
		case !strings.ContainsRune("()+-*%|&=,;", rune(c)):
			return nil, fmt.Errorf("there is %q in it, which is not known", rest[:1])
		}
		words = append(words, rest[:n])
		rest = rest[n:]
	}
	return words, nil
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
