package table

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
)

// An UnsentError is one before anything was sent that could write.
type UnsentError struct{ Err error }

func (e *UnsentError) Error() string { return e.Err.Error() }
func (e *UnsentError) Unwrap() error { return e.Err }

// Certain says that a Put that ended so was not and will not be carried out, whatever
// the server is: nothing was sent, or the condition did not hold.
func Certain(err error) bool {
	var unsent *UnsentError
	return errors.Is(err, store.ErrConflict) || errors.As(err, &unsent)
}

// Forgotten is the error of a table that was there before.
func Forgotten(server string) error {
	return &store.ForgotError{Store: server + " table firn_records", What: "the table is missing"}
}

// Explain has an error of a server say what to do, where advice knows. What is already
// an error of the contract comes back as it is. Where denied says that the user lacks a right,
// the error is [store.ErrDenied].
func Explain(server string, err error, advice func(error) string, denied func(error) bool) error {
	var unsent *UnsentError
	if errors.As(err, &unsent) {
		err = unsent.Err
	}
	var forgot *store.ForgotError
	if err == nil || errors.Is(err, store.ErrConflict) || errors.As(err, &forgot) {
		return err
	}
	return &explained{server, advice(err), err, denied(err)}
}

// An explained error prints where, what to do, and the cause.
type explained struct {
	server string
	advice string // may be empty
	cause  error
	denied bool
}

func (e *explained) Error() string {
	if e.advice == "" {
		return fmt.Sprintf("store/%s: %v", e.server, e.cause)
	}
	return fmt.Sprintf("store/%s: %s (%v)", e.server, e.advice, e.cause)
}

func (e *explained) Unwrap() error { return e.cause }

func (e *explained) Is(target error) bool { return e.denied && target == store.ErrDenied }
