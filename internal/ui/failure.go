package ui

import "fmt"

// Exit codes besides those of signals.
const (
	ExitFailed = 1 // it could not be done
	ExitUsage  = 2 // what it was given is wrong
	ExitFound  = 3 // a check found a problem
)

// A Failure is an error with an exit code and what to do about it.
type Failure struct {
	Code  int
	Err   error
	Place []string // lines that show where the fault is
	Table []string // lines below the error; as JSON its facts have what they say
	Hints []Hint
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Retryable is false: a setting is wrong, or a person has to decide; see firn.Retryable.
func (*Failure) Retryable() bool { return false }

// Bad says that what the command was given is wrong.
func Bad(format string, args ...any) *Failure {
	return &Failure{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// Failed says that something could not be done.
func Failed(format string, args ...any) *Failure {
	return &Failure{Code: ExitFailed, Err: fmt.Errorf(format, args...)}
}

// An Exit ends the command with a code and without a word.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// A Hint is a line that says what to do next.
type Hint struct {
	Text   string
	Script string // instead of text where nobody can be asked; empty: text
	Flag   string // the hint is only for commands with this flag; empty: for all

	// OtherKind says that the commands are about a series of another kind than the settings that
	// were given, which they do not repeat.
	OtherKind bool

	// Guess says that the command is what may have been meant, and not what to type next: it stays as it is.
	Guess bool
}

// Hint adds a line that says what to do.
func (f *Failure) Hint(format string, args ...any) *Failure {
	f.Hints = append(f.Hints, Hint{Text: fmt.Sprintf(format, args...)})
	return f
}

// HintGuess adds a line with a command that may have been meant.
func (f *Failure) HintGuess(format string, args ...any) *Failure {
	f.Hints = append(f.Hints, Hint{Text: fmt.Sprintf(format, args...), Guess: true})
	return f
}

// HintFlag adds a line for commands that have a flag.
func (f *Failure) HintFlag(flag, format string, args ...any) *Failure {
	f.Hints = append(f.Hints, Hint{Text: fmt.Sprintf(format, args...), Flag: flag})
	return f
}

// HintOtherKind adds a line with commands that do not repeat the settings of a series.
func (f *Failure) HintOtherKind(format string, args ...any) *Failure {
	f.Hints = append(f.Hints, Hint{Text: fmt.Sprintf(format, args...), OtherKind: true})
	return f
}

// HintAsking adds a line with a command that asks, and what the line is where nobody
// answers.
func (f *Failure) HintAsking(text, script string) *Failure {
	f.Hints = append(f.Hints, Hint{Text: text, Script: script})
	return f
}

// Rename gives an error a text of its own. It still is the error that it was.
func Rename(text string, err error) error { return &renamed{text, err} }

type renamed struct {
	text string
	err  error
}

func (r *renamed) Error() string { return r.text }
func (r *renamed) Unwrap() error { return r.err }
