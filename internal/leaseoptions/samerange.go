package leaseoptions

import (
	"fmt"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
)

// SameRange reports that the pool has other workers than the file says.
func SameRange(l *config.Leasing, info pool.Info) error {
	have, want := term.Range{First: info.First, Last: info.Last}, l.Options.Workers
	if !l.Options.Ranged || have == want || want.String() == info.GivingUp {
		return nil
	}
	return &RangeError{Pool: l.Pool, From: l.From["workers"], Have: have.String(), Want: want.String(), faults: config.Blame(l.From, "workers", fmt.Sprintf("workers %s: pool %q has workers %s", want, l.Pool, have))}
}

// A RangeError says that a pool has other workers than the settings say.
type RangeError struct {
	Pool       string
	From       string // where the settings say so
	Have, Want string // workers of the pool and of the settings, such as 0-511

	faults string
}

func (e *RangeError) Error() string { return e.faults }

// Retryable is false; see firn.Retryable.
func (*RangeError) Retryable() bool { return false }
