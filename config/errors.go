package config

import (
	"errors"
	"fmt"
	"strings"
)

// An Error says what is wrong with the settings.
type Error struct {
	Err    error
	Advice []string // what to write instead, and where; it names no command
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Retryable is false: somebody has to write other settings; see firn.Retryable.
func (*Error) Retryable() bool { return false }

func faulty(format string, args ...any) *Error { return &Error{Err: fmt.Errorf(format, args...)} }

func (e *Error) advise(format string, args ...any) *Error {
	e.Advice = append(e.Advice, fmt.Sprintf(format, args...))
	return e
}

// line is the error with its advice, in one line.
func (e *Error) line() string { return strings.Join(append([]string{e.Error()}, e.Advice...), "; ") }

// oneLine is an error with its advice, if it has any.
func oneLine(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.line()
	}
	return err.Error()
}

// A ValueError says that the value of a setting cannot be.
type ValueError struct {
	From string // a flag, a variable, or a place in a file
	Err  error
}

func (e *ValueError) Error() string { return e.From + ": " + e.Err.Error() }
func (e *ValueError) Unwrap() error { return e.Err }

// A TrustError says that the firn.yaml of the working directory is not read, because
// somebody else may have written it.
type TrustError struct{ Path, Why string }

func (e *TrustError) Error() string { return fmt.Sprintf("./%s is not read: %s", e.Path, e.Why) }

// A FindError says why no config can be looked for, or why the one that is there cannot be read.
type FindError struct{ Err error }

func (e *FindError) Error() string { return "config: " + e.Err.Error() }
func (e *FindError) Unwrap() error { return e.Err }

// A NoFileError says that a file is named and not there.
type NoFileError struct{ Path string }

func (e *NoFileError) Error() string { return "there is no config " + e.Path }

// A WhichPoolError says that a file has several pools and none is named.
type WhichPoolError struct {
	Path  string
	Pools []string
}

func (e *WhichPoolError) Error() string {
	return fmt.Sprintf("which pool? %s has %s", e.Path, strings.Join(e.Pools, ", "))
}

// An UnlistedPoolError says that a pool is asked for that the file does not list.
type UnlistedPoolError struct {
	From, Path, Pool string
	Pools            []string // that it lists
	Nearest          string   // of these; "" where none is like it
	Listing          string   // how it is added to the file
	Default          string   // how the default pool is added, where its name is nearly the one asked for; else ""
}

func (e *UnlistedPoolError) Error() string {
	lists := "it lists: " + strings.Join(e.Pools, ", ")
	if e.Nearest != "" {
		lists = "is it " + e.Nearest + "?"
	}
	return fmt.Sprintf("%s: %s does not list pool %q; %s", e.From, e.Path, e.Pool, lists)
}

// A NoNameError says that a series of a kind that counts has no name.
type NoNameError struct{ Kind string }

func (e *NoNameError) Error() string {
	return fmt.Sprintf("which series? One of kind %s has a name", e.Kind)
}

// A NoSeriesError says that a public form, or the one that a series has, is asked for of no
// series.
type NoSeriesError struct{ Form string }

func (e *NoSeriesError) Error() string {
	if e.Form == "" {
		return "the public form of which series?"
	}
	return fmt.Sprintf("form %s needs the series of the ids: which?", e.Form)
}

// A NoPatternError says that a series of texts has no pattern.
type NoPatternError struct{ Series string }

func (*NoPatternError) Error() string {
	return "a document has a pattern, and neither a flag nor firn.yaml says which"
}

// A CounterError says that a series cannot be of a kind, because the store has a counter of
// its name that is of another one.
type CounterError struct{ From, Series, Kind, Have string }

func (e *CounterError) Error() string {
	return fmt.Sprintf("%s: series %s cannot be of kind %s: the store has a %s of that name", e.From, e.Series, e.Kind, e.Have)
}

// An OptionsError says what is wrong with the options of a lease or a series, a line for each.
type OptionsError struct {
	Err    error
	Faults []string
}

func (e *OptionsError) Error() string { return strings.Join(e.Faults, "\n") }
func (e *OptionsError) Unwrap() error { return e.Err }

// A PatternError says where the pattern of a series is wrong.
type PatternError struct {
	From string // "" where nobody says
	Err  error  // a *firn.SyntaxError
}

func (e *PatternError) Error() string { return e.Err.Error() }
func (e *PatternError) Unwrap() error { return e.Err }

// A KeysError says that the keys of a public form are not there, or are named nowhere.
type KeysError struct {
	Form   string // that needs them
	Series string // "": of none
	Source string // a file, or env:NAME; "": none is named
	Path   string // the firn.yaml that names none for a server; "": somebody else does not
}

func (e *KeysError) Error() string {
	name, variable := strings.CutPrefix(e.Source, KeysFromVariable)
	switch {
	case e.Path != "":
		return fmt.Sprintf("series %s: answers is public, and its form %s says nowhere where its keys are", e.Series, e.Form)
	case e.Source == "":
		return "there is no key"
	case variable:
		return "there are no keys in the variable " + name
	}
	return "there is no key file " + e.Source
}

// Somebody has to write other settings first; see firn.Retryable.
func (*ValueError) Retryable() bool        { return false }
func (*TrustError) Retryable() bool        { return false }
func (*FindError) Retryable() bool         { return false }
func (*NoFileError) Retryable() bool       { return false }
func (*WhichPoolError) Retryable() bool    { return false }
func (*UnlistedPoolError) Retryable() bool { return false }
func (*NoNameError) Retryable() bool       { return false }
func (*NoSeriesError) Retryable() bool     { return false }
func (*NoPatternError) Retryable() bool    { return false }
func (*CounterError) Retryable() bool      { return false }
func (*OptionsError) Retryable() bool      { return false }
func (*PatternError) Retryable() bool      { return false }
func (*KeysError) Retryable() bool         { return false }
