// Package takeover imports counters: it reads another system's table of counters, and begins a sequence for each row.
package takeover

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// An Error says why nothing is imported, and what can be done.
type Error struct {
	Usage  bool // the query or the URL cannot be; false: something failed
	Err    error
	Advice []string
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Retryable is false: somebody has to change the query, or look; see firn.Retryable.
func (*Error) Retryable() bool { return false }

func bad(format string, args ...any) *Error {
	return &Error{Usage: true, Err: fmt.Errorf(format, args...)}
}

func failed(format string, args ...any) *Error { return &Error{Err: fmt.Errorf(format, args...)} }

func (e *Error) hint(format string, args ...any) *Error {
	e.Advice = append(e.Advice, fmt.Sprintf(format, args...))
	return e
}

// CarryOut writes what is to be written, and counts in done the series that it has seen to. It may
// be called again after an error, with the imports of a new plan.
func CarryOut(ctx context.Context, st store.Store, all []Import, done *atomic.Int64) error {
	for _, m := range all {
		var err error
		switch m.Does {
		case Begin:
			m.options.New = true // the table says where the series is
			_, err = sequence.Create(ctx, st, m.Name, &m.options)
		case Raise:
			_, err = sequence.Raise(ctx, st, m.Name, firn.ID(m.First-1))
		}
		if err != nil {
			return failed("row %d, %s: %w\n%d of %d series were seen to", m.Row, m.Name, err, done.Load(), len(all)).
				hint("the same command again continues from here")
		}
		done.Add(1)
	}
	return nil
}
