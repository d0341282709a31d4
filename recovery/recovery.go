// Package recovery makes a whole store safe after it has lost writes: a backup was restored, a
// replica that lagged was promoted, a file was lost. All pools and all series are in one plan.
//
//	contents, err := recovery.Read(ctx, store)
//	plan, err := contents.Plan(ctx, &recovery.Options{Numbers: 100_000})
//	done, err := plan.Run(ctx) // with every process stopped that uses the store
//
// [AcceptMove] is for a store that was moved and has lost nothing. The command firn store
// recover does both.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// Contents is what a store has that a recovery changes.
type Contents struct {
	Pools     []pool.Info
	LostPools []string // pools without a record, of which the store has records of workers
	Sequences []sequence.Info
	Documents []document.Info

	// CopyOf says that records were made in another store, so that this one is a copy of that, or
	// was moved. It is nil where nothing says so.
	CopyOf *store.OtherStoreError

	store store.Store
}

// Read reads what a store has. It changes nothing.
func Read(ctx context.Context, st store.Store) (*Contents, error) {
	c := &Contents{store: st}
	var err error
	if _, err = record.RecoveredAt(ctx, st); err != nil { // it is written at the end
		return nil, err
	}
	if c.Pools, err = pool.List(ctx, st); err != nil {
		return nil, err
	}
	if c.LostPools, err = lostPools(ctx, st); err != nil {
		return nil, err
	}
	if c.Sequences, err = sequence.List(ctx, st); err != nil {
		return nil, err
	}
	if c.Documents, err = document.List(ctx, st); err != nil {
		return nil, err
	}
	p, err := st.Durability(ctx)
	if err != nil {
		return nil, err
	}
	errors.As(c.made(p.Identity), &c.CopyOf)
	return c, nil
}

// lostPools are the names of pools whose record is missing, while records of their workers
// are there.
func lostPools(ctx context.Context, s store.Store) ([]string, error) {
	list, err := s.List(ctx, term.KeyPools)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	var names []string
	for _, rec := range list {
		name, _, below := strings.Cut(strings.TrimPrefix(rec.Key, term.KeyPools), "/")
		there[name] = there[name] || !below
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return there[name] }), nil
}

// made returns an error where something was made in another store than the one of that name.
func (c *Contents) made(identity string) error {
	for _, p := range c.Pools {
		if err := record.CheckOther(fmt.Sprintf("pool %q", p.Name), identity, p.Store); err != nil {
			return err
		}
	}
	for _, s := range c.Sequences {
		if err := record.CheckOther(fmt.Sprintf("series %q", s.Name), identity, s.Store); err != nil {
			return err
		}
	}
	for _, d := range c.Documents {
		if err := record.CheckOther(fmt.Sprintf("document %q", d.Name), identity, d.Store); err != nil {
			return err
		}
	}
	return nil
}

// Series returns the names of all series that count.
func (c *Contents) Series() []string {
	var names []string
	for _, one := range c.Sequences {
		names = append(names, one.Name)
	}
	for _, one := range c.Documents {
		names = append(names, one.Name)
	}
	return names
}

// HasPools reports whether the store has a pool, or records of one.
func (c *Contents) HasPools() bool { return len(c.Pools)+len(c.LostPools) > 0 }

// MaxNumbers is how many numbers a series can leave out at most.
const MaxNumbers = dated.MaxRaise - 1

// ClockError is by how much the clocks of two processes may differ.
const ClockError = 2 * term.Skew

// Options say what the store may have lost.
type Options struct {
	// Outage is the longest outage budget that any process had which used the store. Zero means
	// 5 minutes. A pool that the store has counts with its own limit, if that is longer.
	Outage time.Duration

	// Numbers is how many numbers each series leaves out, and Each how many those that it names:
	// more than any of them can have lost. No clock and no record tells that, only a person. With
	// Numbers 0, Each has to name all series.
	Numbers int64
	Each    map[string]int64
}

// A Plan is what a recovery does to a store.
type Plan struct {
	*Contents
	Options Options
	Pause   time.Duration   // no ids are made for about so long; in a pool that Starts gives a reason for, longer
	Starts  []pool.Recovery // when the ids of each pool start, and why, where that is later than Pause
	UsedUp  []UsedUp        // series that have no number left after it
}

// Plan returns what a recovery with these options does. It changes nothing. A nil *Options is
// all defaults.
//
// Errors to tell apart, besides the store's: [*NumbersError], [*UnknownSeriesError] and
// [*UsedUpError].
func (c *Contents) Plan(ctx context.Context, o *Options) (p *Plan, err error) {
	p = &Plan{Contents: c}
	if o != nil {
		p.Options = *o
	}
	if p.Options.Outage <= 0 {
		p.Options.Outage = pool.DefaultOutage
	}
	if c.store != nil { // nil: there is no store yet, and its clock will be this host's
		if p.Starts, err = pool.PlanRecovery(ctx, c.store, p.Options.Outage); err != nil {
			return nil, err
		}
	}
	longest := p.Options.Outage
	for _, one := range c.Pools {
		longest = max(longest, one.OutageLimit)
	}
	p.Pause = longest + ClockError
	if err := p.checkNumbers(); err != nil {
		return nil, err
	}
	if len(c.Sequences)+len(c.Documents) == 0 {
		return p, nil
	}
	if p.UsedUp, err = p.usedUp(ctx); err != nil {
		return nil, err
	}
	return p, p.refuse()
}

// A Result is what [Plan.Run] has done.
type Result struct {
	Sequences []sequence.Recovery
	Documents []document.Recovery
	Pools     []pool.Recovery
	StartsAt  time.Time // the ids of all pools, and of one that is created now, start then
}

// Run makes the store safe: counters first, since pools say when programs may start. Cut every
// process off the store first, and let them back in when Run has returned: what is issued from
// the store in between may repeat. It may be repeated, and has to be after an error.
func (p *Plan) Run(ctx context.Context) (r Result, err error) {
	// Where there is nothing to raise, too: what is not there may be forgotten, and does not
	// begin again by itself.
	numbers := max(p.Options.Numbers, 1)
	if r.Sequences, err = sequence.Recover(ctx, p.store, numbers, p.Options.Each); err != nil {
		return r, err
	}
	if r.Documents, err = document.Recover(ctx, p.store, numbers, p.Options.Each); err != nil {
		return r, err
	}
	if r.Pools, err = pool.Recover(ctx, p.store, p.Options.Outage); err != nil {
		return r, err
	}
	rec, err := p.store.Get(ctx, term.KeyStore)
	if err != nil {
		return r, err
	}
	all, err := term.ReadStore(rec)
	if err != nil {
		return r, err
	}
	r.StartsAt = all.Floor
	for _, one := range r.Pools {
		if one.StartsAt.After(r.StartsAt) {
			r.StartsAt = one.StartsAt
		}
	}
	return r, record.MarkRecovered(ctx, p.store, time.Now())
}

// A Move is what [AcceptMove] has changed.
type Move struct {
	Pools     []pool.Info
	Sequences []sequence.Info
	Documents []document.Info
}

// AcceptMove accepts that all pools and series are in this store now, and changes nothing else.
// The caller states that the store was moved on purpose, that no process has used the old one
// since the copy was made, and that it is gone. Otherwise [Plan.Run] is right: ids and numbers
// that were issued since the copy would be issued again.
func AcceptMove(ctx context.Context, st store.Store) (m Move, err error) {
	if m.Pools, err = pool.AcceptMove(ctx, st); err != nil {
		return m, err
	}
	if m.Sequences, err = sequence.AcceptMove(ctx, st); err != nil {
		return m, err
	}
	m.Documents, err = document.AcceptMove(ctx, st)
	return m, err
}
