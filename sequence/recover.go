package sequence

import (
	"context"
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A Recovery is what [Recover] did to one series, or would do.
type Recovery struct {
	Series string
	By     int64 // how many numbers are left out
	Info   Info  // the series after it; Left 0: it is used up, for ever
}

// Recover makes the series of a store safe after it lost something: a backup was restored,
// a replica that lagged was promoted, or a file was lost. Cut every process off the store
// first, and let them back in when Recover has returned: numbers issued from the store in
// between may repeat.
//
// Each series leaves out as many numbers as numbers says, or as each says of that series,
// counted from the highest that was granted, be it handed back since. That has to be more
// than what can have been granted and forgotten; nobody but the operator knows how much
// that is. It is at least 1. More than a series has left leaves it no number, for ever:
// [PlanRecovery] says so before. Recover accepts the store and its instance as they are now.
// It may be repeated, and has to be after an error: each time raises the series again. A
// series that the store has lost altogether does not begin again by itself.
func Recover(ctx context.Context, st store.Store, numbers int64, each map[string]int64) ([]Recovery, error) {
	if err := checkNumbers(numbers, each); err != nil {
		return nil, err
	}
	p, err := st.Durability(ctx)
	if err != nil {
		return nil, err
	}
	if err := record.MarkLost(ctx, st); err != nil {
		return nil, err
	}
	list, err := st.List(ctx, block.Keys)
	if err != nil {
		return nil, err
	}
	var done []Recovery
	for _, rec := range list {
		name := strings.TrimPrefix(rec.Key, block.Keys)
		by := numbersOf(name, numbers, each)
		in, err := change(ctx, st, name, func(r block.Record) (block.Record, error) {
			r = restored(r, by)
			r.Instance, r.Store = "", p.Identity
			if !p.Durable {
				r.Instance = p.Instance
			}
			return r, nil
		})
		if err != nil {
			return done, err
		}
		done = append(done, Recovery{name, by, in})
	}
	return done, nil
}

// PlanRecovery returns what [Recover] would do. It writes nothing.
func PlanRecovery(ctx context.Context, st store.Store, numbers int64, each map[string]int64) ([]Recovery, error) {
	if err := checkNumbers(numbers, each); err != nil {
		return nil, err
	}
	list, err := st.List(ctx, block.Keys)
	if err != nil {
		return nil, err
	}
	var plan []Recovery
	for _, rec := range list {
		r, err := block.Read(rec)
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(rec.Key, block.Keys)
		by := numbersOf(name, numbers, each)
		rec.Value = restored(r, by).Encode()
		plan = append(plan, Recovery{name, by, info(rec)})
	}
	return plan, nil
}

func checkNumbers(numbers int64, each map[string]int64) error {
	for _, own := range each {
		numbers = min(numbers, own)
	}
	if numbers < 1 {
		return &OptionError{"numbers", fmt.Sprintf("numbers %d: it is at least 1", numbers)}
	}
	return nil
}

func numbersOf(name string, numbers int64, each map[string]int64) int64 {
	if own, ok := each[name]; ok {
		return own
	}
	return numbers
}

// restored is a record that leaves out so many numbers.
func restored(r block.Record, numbers int64) block.Record {
	// What was handed back since the store went back is not part of them.
	r = r.Raised(r.Reached)
	r.Reached = 0
	to := r.Max
	if numbers < r.Left() && r.Granted+numbers*r.Stride() > 0 {
		to = r.Granted + numbers*r.Stride()
	}
	return r.Raised(to)
}
