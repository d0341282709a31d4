package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
)

// Exit codes besides those of signals.
const (
	exitFailed = 1 // it could not be done
	exitUsage  = 2 // what it was given is wrong
	exitFound  = 3 // a check found a problem
)

// A failure is an error with an exit code and what to do about it.
type failure struct {
	code  int
	err   error
	place []string // lines that show where the fault is
	hints []hint
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// Retryable is false: a setting is wrong, or a person has to decide; see firn.Retryable.
func (*failure) Retryable() bool { return false }

// bad says that what the command was given is wrong.
func bad(format string, args ...any) *failure {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// failed says that something could not be done.
func failed(format string, args ...any) *failure {
	return &failure{code: exitFailed, err: fmt.Errorf(format, args...)}
}

// withHint adds a hint to the attributes of a log line, if there is one.
func withHint(hint string, attrs ...any) []any {
	if hint == "" {
		return attrs
	}
	return append(attrs, "hint", hint)
}

// An exit ends the command with a code and without a word.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// report prints an error as a person wants it, and returns the exit code. Its hints are for
// the command that has failed, if there is one.
func report(w io.Writer, cmd *cobra.Command, err error) int {
	var e exit
	var f *failure
	switch {
	case err == nil || errors.Is(err, errNoReader):
		return 0 // whoever read has had enough
	case errors.As(err, &e):
		return int(e)
	case !errors.As(err, &f):
		f = classify(err)
	}
	if server := awayServer(f.err); server != "" {
		f = &failure{code: f.code, err: f.err, place: f.place, hints: []hint{{text: startHint(server)}}} // whatever was done when it went away
	} else if text := refusalHint(f.err); text != "" && cmd != nil && flagOf(cmd, "server") != nil {
		f = &failure{code: f.code, err: f.err, place: f.place, hints: []hint{{text: text}}} // no command helps before
	}
	printError(w, f.err)
	for _, line := range f.place {
		fmt.Fprintf(w, "firn:     %s\n", withoutKeys(line))
	}
	for _, line := range (hinter{cmd}).lines(f) {
		fmt.Fprintf(w, "firn: hint: %s\n", withoutKeys(line))
	}
	return f.code
}

func printError(w io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "firn: error: %s\n", withoutKeys(withoutPackage(strings.TrimSuffix(line, "\n"))))
	}
}

func printWarning(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "firn: warning: %s\n", withoutKeys(fmt.Sprintf(format, args...)))
}

// withoutKeys hides the keys of public forms, wherever somebody put one by mistake.
func withoutKeys(text string) string { return keyText.ReplaceAllString(text, "${1}xxxxx") }

var keyText = regexp.MustCompile(`(firn-key-\d+:)[^\s"',]+`)

// withoutPackage cuts the name of the package that begins an error of a library:
// it tells a programmer where to look, and the user of a command nothing.
func withoutPackage(text string) string {
	if rest, ok := strings.CutPrefix(text, `pool: "`); ok { // it is also what the error is about
		return `pool "` + rest
	}
	return text[len(packagePrefix.FindString(text)):]
}

var packagePrefix = regexp.MustCompile(`^(firn|lease|pool|sequence|document|server|shard|plan|verify|(store|public)(/[a-z]+)?): `)

// classify finds the exit code and the hints of the libraries' errors.
func classify(err error) *failure {
	var syntax *firn.SyntaxError
	if errors.As(err, &syntax) {
		return syntaxFailure(syntax.Kind, syntax)
	}
	if f := poolFailure(err, poolPlace{}); f != nil {
		return f
	}
	f := failed("%w", err)
	var full *lease.FullError
	var ended *firn.EndError
	var early *firn.EpochError
	var ahead *lease.ClockError
	switch {
	case errors.As(err, &full):
		wait := time.Minute
		if len(full.Holders) > 0 { // by when they fall free
			wait = max(wait, full.Holders[0].Free.Truncate(10*time.Second)+10*time.Second)
		}
		f.hint("to see who holds them: firn worker ls; to wait until one falls free: --wait %s", durationText(wait))
		if full.Reserved != "" {
			f.hint("to see what the change of the pool's workers waits for: firn pool show %s", shellWord(full.Pool))
		}
		return f
	case errors.As(err, &ended):
		f.code = exitUsage
		return f.hint("to see when each layout ends: firn layout ls")
	case errors.As(err, &early):
		f.code = exitUsage
		return f.hint("is the clock right, or the epoch mistyped? %s", early.Layout)
	case errors.As(err, &ahead):
		return f.hint("set this host's clock")
	}
	return f
}

// shownLine is how much of a faulty text is shown around the fault, in bytes.
const shownLine = 100

// syntaxFailure shows a faulty text with a mark under the place of the fault.
func syntaxFailure(name string, e *firn.SyntaxError) *failure {
	f := bad("%s: %s", name, e.Reason)
	text, at := e.Text, e.Offset
	if len(text) > shownLine {
		from := max(0, min(at-shownLine/2, len(text)-shownLine))
		text, at = text[from:from+shownLine], at-from
	}
	// One column a byte, whatever the bytes are, so that the mark stands right.
	printable := []byte(text)
	for i, c := range printable {
		if c < ' ' || c > '~' {
			printable[i] = '?'
		}
	}
	if text != "" {
		f.place = []string{string(printable), strings.Repeat(" ", at) + "^"}
	}
	if e.Kind == "layout" {
		f = f.hint("to list the presets: firn layout ls")
	}
	return f
}
