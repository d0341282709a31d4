// Package pool is what an operator does to a pool of workers: create it, list it, change
// its range, release a worker, and make it safe after its store lost something.
//
// Ids that must never be equal come from one pool of one store.
//
// A program needs [Create] only in the step that creates its database, once:
//
//	info, err := pool.Create(ctx, s, pool.Default, nil)
//
// It then leases a worker of the pool by package lease, which never creates a pool: a
// missing one may be one that the store has lost, with ids that are in use. Only a store
// in a file, or in memory, gets its first pool by itself, together with the file.
//
// All functions may be called at once, from any number of processes.
package pool

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// Default is the name of the pool that is meant where none is named.
const Default = "default"

// Options say how a pool is created. Nil, or a zero field, means the default.
type Options struct {
	// Layout is the layout of the pool's ids. It never changes. Zero means [firn.Default()].
	Layout firn.Layout

	// First is the lowest worker of the pool, and Workers how many there are. Workers zero
	// means all that the layout has from First on.
	First, Workers int64

	// Outage is the longest outage budget that a process may ever have in this pool: how
	// long it issues ids while the store is away. Zero means 5 min, and 3 s on a store that
	// can lose writes, where each process waits for the budget and 10 s before its first
	// id. Ensure and Recover delay ids by at least that long; so a pool with a longer one
	// than 5 min needs it in Ensure again.
	Outage time.Duration

	// MayRepeat names pools of this store whose ids may equal this pool's, since they
	// never meet.
	MayRepeat []string
}

// Info is what the store has written down about a pool.
type Info struct {
	Name        string        `json:"pool"`
	ID          string        `json:"id"` // random, made with the pool
	Layout      firn.Layout   `json:"layout"`
	First       int64         `json:"first"` // worker that can be leased
	Last        int64         `json:"last"`
	GivingUp    string        `json:"giving_up,omitzero"`  // "0-1023" while the range is being changed from or to that
	StartsAt    time.Time     `json:"starts_at,omitzero"`  // ids start then; zero: from the beginning
	OutageLimit time.Duration `json:"outage_limit_ns"`     // the longest outage budget that a process may have
	Lossy       string        `json:"lossy,omitzero"`      // which process saw, and when, that the store can lose acknowledged writes
	Store       string        `json:"store,omitzero"`      // the store that the pool was made in; empty where it cannot tell
	MayRepeat   []string      `json:"may_repeat,omitzero"` // pools whose ids may equal this one's

	// Created reports that the call of Create or Ensure that returned the Info created the
	// pool. The store does not keep it.
	Created bool `json:"-"`
}

// Workers is how many workers can be leased.
func (i Info) Workers() int64 { return i.Last - i.First + 1 }

// An ExistsError says that a pool cannot be created because it is there.
type ExistsError struct{ Info Info }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("pool: %q exists already, with layout %s and workers %d-%d",
		e.Info.Name, layoutName(e.Info.Layout), e.Info.First, e.Info.Last)
}

// A RemainsError says that a pool cannot be created at once because the store has records
// of an earlier one of that name: its ids may be in use. [Ensure] creates it safely.
type RemainsError struct {
	Pool    string
	Workers int // how many records of workers are left
}

func (e *RemainsError) Error() string {
	records := "a record"
	if e.Workers > 1 {
		records = fmt.Sprintf("%d records", e.Workers)
	}
	return fmt.Sprintf("pool: %q has no record, but the store has %s of an earlier pool of that name: its ids may be in use", e.Pool, records)
}

// An OverlapError says that a pool could make ids that another pool of the store makes.
type OverlapError struct {
	Pool   string
	Layout firn.Layout // of Pool
	Other  Info
	Same   string // workers that both would have, such as "0-511"; empty: the layouts have the worker in different bits
}

func (e *OverlapError) Error() string {
	if e.Same == "" {
		return fmt.Sprintf("pool: %q could repeat ids of pool %q: their layouts have the worker in different bits", e.Pool, e.Other.Name)
	}
	return fmt.Sprintf("pool: %q could repeat ids of pool %q: both would use workers %s", e.Pool, e.Other.Name, e.Same)
}

// Leased reports whether the other pool leases one of the workers of Same now. Otherwise it had
// them before, or is giving them up.
func (e *OverlapError) Leased() bool {
	same, err := term.ParseRange(e.Same, e.Other.Layout)
	if err != nil {
		return true
	}
	_, leased := same.Common(term.Range{First: e.Other.First, Last: e.Other.Last})
	return leased
}

// A MissingError says that a pool is not in the store, and which pools are.
type MissingError = term.MissingPoolError

// A LayoutError says that a pool has another layout than the one asked for.
type LayoutError = term.LayoutError

// A ClockError says that this host's clock and the store's differ, and one of the two is wrong.
type ClockError = term.ClockError

// An OptionError says which option or argument is not allowed, and why.
type OptionError struct {
	Option string // in lower case; "pool" is the pool's name
	Reason string
}

func (e *OptionError) Error() string { return "pool: " + e.Reason }

// ErrBusy says that another process changed the pool, or created one that overlaps it, at
// the same moment. Nothing was created or changed by this call: call again.
var ErrBusy = errors.New("pool: it was changed by another process at the same moment")

// checkName reports what is wrong with a pool's name: nil, or an [*OptionError].
func checkName(name string) error {
	if wrong := term.CheckName(name); wrong != "" {
		return &OptionError{"pool", wrong}
	}
	return nil
}

// List returns the store's pools by name. It reads every record.
func List(ctx context.Context, s store.Store) ([]Info, error) {
	all, err := list(ctx, s)
	if err != nil {
		return nil, err
	}
	var infos []Info
	for _, p := range all {
		if p.Created() {
			infos = append(infos, p.info())
		}
	}
	return infos, nil
}

// Show returns what the store has written down about a pool, or a [*MissingError].
func Show(ctx context.Context, s store.Store, name string) (Info, error) {
	p, err := existing(ctx, s, name)
	if err != nil {
		return Info{}, err
	}
	return p.info(), nil
}

// checkStore returns a [*store.OtherStoreError] where a pool of the store says that it was
// made in another store, so that this one is a copy, a restored dump, or was moved: ids and
// numbers that are made from both are equal. It is nil where the store or its pools cannot
// tell. It reads every record of a pool.
func checkStore(ctx context.Context, s store.Store) error {
	durability, err := s.Durability(ctx)
	if err != nil {
		return err
	}
	if durability.Identity == "" {
		return nil
	}
	all, err := list(ctx, s)
	if err != nil {
		return err
	}
	for _, p := range all {
		if !p.Created() {
			continue
		}
		if err := record.CheckOther(fmt.Sprintf("pool %q", p.name), durability.Identity, p.Store); err != nil {
			return err
		}
	}
	return nil
}

// A stored is a pool as its record has it.
type stored struct {
	term.Pool
	name    string
	layout  firn.Layout
	version store.Version // zero: there is none
	read    time.Time     // by the store's clock
}

// get reads a pool's record, which may be missing.
func get(ctx context.Context, s store.Store, name string) (stored, error) {
	if err := checkName(name); err != nil {
		return stored{}, err
	}
	rec, err := s.Get(ctx, term.KeyPool(name))
	if err != nil {
		return stored{}, err
	}
	return read(name, rec)
}

// existing reads the record of a pool that is there.
func existing(ctx context.Context, s store.Store, name string) (stored, error) {
	for {
		p, err := get(ctx, s, name)
		if err != nil || p.Created() {
			return p, err
		}
		err = missing(ctx, s, p)
		var e *term.MissingPoolError
		if errors.As(err, &e) && slices.Contains(e.Pools, name) {
			continue // it was created since
		}
		return p, err
	}
}

func read(name string, rec store.Record) (p stored, err error) {
	p = stored{name: name, version: rec.Version, read: rec.Read}
	if rec.Version == "" {
		return p, nil
	}
	if p.Pool, err = term.ReadPool(rec); err != nil {
		return p, err
	}
	if p.layout, err = firn.ParseLayout(p.Layout); err != nil {
		return p, fmt.Errorf("pool: %q: %w", name, err)
	}
	if _, _, err = p.Claim(p.layout); err == nil && p.Created() {
		_, err = p.Range(p.layout)
	}
	if err != nil {
		return p, fmt.Errorf("pool: %q: %w", name, err)
	}
	return p, nil
}

// list reads the records of all pools, those that are being created too.
func list(ctx context.Context, s store.Store) ([]stored, error) {
	recs, err := s.List(ctx, term.KeyPools)
	if err != nil {
		return nil, err
	}
	var all []stored
	for _, rec := range recs {
		name := strings.TrimPrefix(rec.Key, term.KeyPools)
		if strings.Contains(name, "/") {
			continue
		}
		p, err := read(name, rec)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// missing is the error for a pool that is not there.
func missing(ctx context.Context, s store.Store, p stored) error {
	all, err := list(ctx, s)
	if err != nil {
		return err
	}
	e := &term.MissingPoolError{Pool: p.name, Creating: p.Reserved != ""}
	for _, other := range all {
		if other.Created() {
			e.Pools = append(e.Pools, other.name)
		}
	}
	return e
}

// workers is the range of a pool that is there, which was checked when it was read.
func (p stored) workers() term.Range {
	r, _ := p.Range(p.layout)
	return r
}

func (p stored) info() Info {
	workers := p.workers()
	i := Info{
		Name: p.name, ID: p.ID, Layout: p.layout, First: workers.First, Last: workers.Last, GivingUp: p.Reserved,
		OutageLimit: p.OutageLimit(), Lossy: p.Lossy, Store: p.Store,
		MayRepeat: strings.Fields(p.MayRepeat),
	}
	if p.Floor > 0 {
		i.StartsAt = p.layout.Time(p.Floor + 1)
	}
	return i
}

// write replaces a pool's record by p, and finds out what became of a write whose answer
// was lost. [ErrBusy] says that the record is not the one that was read any more.
func (p *stored) write(ctx context.Context, s store.Store) error {
	rec, err := s.Put(ctx, term.KeyPool(p.name), p.Encode(), store.Condition{Version: p.version})
	if err != nil && !errors.Is(err, store.ErrConflict) && rec.Version != "" {
		// The outcome is unknown. A record under the version that was tried is ours.
		now, lost := s.Get(ctx, term.KeyPool(p.name))
		if lost != nil || now.Version != rec.Version {
			return err
		}
		rec, err = now, nil
	}
	if errors.Is(err, store.ErrConflict) {
		return ErrBusy
	}
	if err == nil {
		p.version, p.read = rec.Version, rec.Read
	}
	return err
}

func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// layoutName is a layout's name as a preset, or else its spec.
func layoutName(l firn.Layout) string {
	if name := l.Name(); name != "" {
		return name
	}
	return l.String()
}

func sorted(names []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), " ")
}
