// Package advice has the error type with which the stores say what to do about a fault of theirs.
package advice

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/firn-id/firn/store"
)

// An Error prints where something failed, what to do about it, and the cause.
type Error struct {
	Where  string // the store's package, and which store: "redis: key firn"
	Advice string // what is wrong and, after a semicolon, what to do; empty means that nothing is known
	Err    error
	Cause  string // of Err, where that says it badly; empty means its own text
	Denied bool   // the user lacks a right: the error is store.ErrDenied
	Away   bool   // the server cannot be reached or does not serve for now, which Err does not say in a way that all know
}

func (e *Error) Error() string {
	cause := e.Cause
	switch {
	case errors.Is(e.Err, syscall.ECONNREFUSED) && e.Advice != "" && !strings.Contains(e.Where, ","):
		cause = "connection refused" // drivers name the address up to four times, and Where has it
	case cause == "":
		cause = e.Err.Error()
	}
	if e.Advice == "" {
		return fmt.Sprintf("store/%s: %s", e.Where, cause)
	}
	return fmt.Sprintf("store/%s: %s (%s)", e.Where, e.Advice, cause)
}

func (e *Error) Unwrap() error { return e.Err }

// SaysWhatToDo reports whether the error says what to do, and not only what is wrong.
func (e *Error) SaysWhatToDo() bool { return strings.Contains(e.Advice, ";") }

// Unreachable reports whether the server cannot be reached, or does not serve for now.
func (e *Error) Unreachable() bool { return e.Away }

// Locate has the error name the servers that were asked, unless it names them. It is called before
// anybody else has the error.
func (e *Error) Locate(servers string) {
	if strings.Contains(e.Where, servers) {
		return
	}
	pkg, rest, more := strings.Cut(e.Where, ": ")
	if e.Where = pkg + ": " + servers; more {
		e.Where += ": " + rest
	}
}

// Is reports that a user who lacks a right is denied.
func (e *Error) Is(target error) bool { return e.Denied && target == store.ErrDenied }

// Done reports whether err needs no more advice: it is one of the contract's own, or has
// some already.
func Done(err error) bool {
	var forgot *store.ForgotError
	var done *Error
	return errors.Is(err, store.ErrConflict) || errors.As(err, &forgot) || errors.As(err, &done)
}
