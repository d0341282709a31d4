package firn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

func TestRetryable(t *testing.T) {
	for want, all := range map[bool][]error{
		true: {
			io.ErrUnexpectedEOF, firn.ErrBusy, &firn.HorizonError{},
			&lease.OutageError{Err: context.DeadlineExceeded}, // of a request to the store
			&lease.NotYetError{}, &lease.FullError{}, &lease.LostError{}, &pool.InUseError{}, &lease.AwayError{Err: io.EOF},
			&sequence.OutageError{}, &client.OutageError{}, &client.Error{Code: "TRYAGAIN"},
			&client.Error{Code: "ERR", Text: "max number of clients reached"},
		},
		false: {
			nil, firn.ErrClosed, context.Canceled, fmt.Errorf("the call: %w", context.DeadlineExceeded),
			&firn.EndError{}, &firn.EpochError{}, &firn.SyntaxError{},
			&store.ForgotError{}, &store.OtherStoreError{}, &store.FormatError{}, &open.URLError{},
			&lease.MissingPoolError{}, &lease.LayoutError{}, &lease.WorkerError{}, &lease.FreshError{}, &lease.OptionError{},
			&sequence.MissingError{}, &sequence.EndError{}, &sequence.LossyError{}, &sequence.MismatchError{}, &sequence.OptionError{},
			&document.MissingError{}, &document.EndError{}, &document.LossyError{}, &document.DefinitionError{}, &document.InstanceError{}, &document.OptionError{},
			errors.Join(io.EOF, &sequence.MissingError{}),
			&client.Error{Code: "NOPERM"}, &client.AnswerError{},
		},
	} {
		for _, err := range all {
			if got := firn.Retryable(err); got != want {
				t.Errorf("%T: %v", err, got)
			}
			if err != nil && firn.Retryable(fmt.Errorf("a call: %w", err)) != want {
				t.Errorf("%T, wrapped: %v", err, !want)
			}
		}
	}
}
