package table

import (
	"context"
	"errors"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/advice"
)

// An UnsentError is one before anything was sent that could write.
type UnsentError struct{ Err error }

func (e *UnsentError) Error() string { return e.Err.Error() }
func (e *UnsentError) Unwrap() error { return e.Err }

// Forgotten is the error of a table that was there before.
func (t *Table) Forgotten() error {
	return &store.ForgotError{Store: t.Name + " table firn_records", What: "the table is missing"}
}

// Explain has an error of a server say what to do, where the server's Advice knows. It may
// ask the server over q. An error of the contract comes back as it is. Where the user lacks
// a right, the error is [store.ErrDenied].
func (t *Table) Explain(ctx context.Context, q Querier, err error) error {
	var unsent *UnsentError
	if errors.As(err, &unsent) {
		err = unsent.Err
	}
	if err == nil || advice.Done(err) {
		return err
	}
	e := &advice.Error{Where: t.Name, Advice: t.Advice(ctx, q, err), Err: err, Denied: t.Denied(err)}
	if t.Cause != nil {
		e.Cause = t.Cause(err)
	}
	return e
}
