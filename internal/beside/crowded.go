// Package beside says which worker numbers of a layout the other pools of a store leave free: two pools
// with the same layout and a worker number in common would repeat ids.
package beside

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// A CrowdedError says that a missing pool could not be created as it is set: it could repeat ids of
// another pool. A hint that creates it so would only lead to that refusal.
type CrowdedError struct {
	error
	Layout firn.Layout // that it is to have
	Other  pool.Info   // the first one whose ids it could repeat
	All    []string    // those whose ids it could repeat
	Free   string      // workers that it could have, such as 0-511; "": there are none
	Big    pool.Info   // one that can give some up; without a name there is none

	// InOther is the same with the layout of Other, where there is no worker with this one. Nil: there is none either.
	InOther *CrowdedError
	Leaving string // workers of the same layout that Other is giving up, such as 0-511; "": none
}

func (e *CrowdedError) Unwrap() error { return e.error }

// A createdPool is one of the store.
type createdPool struct {
	term.Pool
	name   string
	layout firn.Layout
	now    term.Range // that it leases
	claim  term.Range // those too that it is giving up
}

// info is what the record says of the pool.
func (p *createdPool) info() pool.Info {
	return pool.Info{Name: p.name, Layout: p.layout, First: p.now.First, Last: p.now.Last}
}

// createdPools are those of the records that can be read.
func createdPools(pools map[string]term.Pool) (all []createdPool) {
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		p := createdPool{Pool: pools[name], name: name}
		var err error
		if p.layout, err = firn.ParseLayout(p.Layout); err != nil || !p.Created() {
			continue
		}
		var failed error
		p.now, err = p.Range(p.layout)
		if p.claim, _, failed = p.Claim(p.layout); err == nil && failed == nil {
			all = append(all, p)
		}
	}
	return all
}

// Crowded adds to the error of a missing pool that its workers are those of others.
func Crowded(ctx context.Context, s store.Store, err error, o *config.LeaseOptions) error {
	var missing *lease.MissingPoolError
	if !errors.As(err, &missing) || missing.Creating {
		return err
	}
	if e := check(poolsOf(ctx, s), missing.Pool, o); e != nil {
		e.error = err
		return e
	}
	return err
}

// CheckOptions returns nil if a pool of that name can be created with these options beside the
// others.
func CheckOptions(ctx context.Context, s store.Store, name string, asked *pool.Options) *CrowdedError {
	o := &config.LeaseOptions{Options: lease.Options{Layout: asked.Layout}}
	if asked.Workers > 0 {
		o.Workers, o.Ranged = term.Range{First: asked.First, Last: asked.First + asked.Workers - 1}, true
	}
	others := slices.DeleteFunc(poolsOf(ctx, s), func(p createdPool) bool { return slices.Contains(asked.MayRepeat, p.name) })
	return check(others, name, o)
}

// CheckWhole returns nil if a pool of that name and layout can be created beside the others with
// every worker.
func CheckWhole(ctx context.Context, s store.Store, name string, layout firn.Layout) *CrowdedError {
	return check(poolsOf(ctx, s), name, &config.LeaseOptions{Options: lease.Options{Layout: layout}})
}

// poolsOf returns the pools of a store; none where it does not answer.
func poolsOf(ctx context.Context, s store.Store) []createdPool {
	records, err := s.List(ctx, term.KeyPools)
	if err != nil {
		return nil
	}
	pools := map[string]term.Pool{}
	for _, rec := range records {
		name := strings.TrimPrefix(rec.Key, term.KeyPools)
		if read, err := term.ReadPool(rec); err == nil && !strings.Contains(name, "/") {
			pools[name] = read
		}
	}
	return createdPools(pools)
}

// CheckRecords returns nil if a pool of these settings can be created beside those whose records
// these are, by their names.
func CheckRecords(pools map[string]term.Pool, name string, o *config.LeaseOptions) *CrowdedError {
	return check(createdPools(pools), name, o)
}

func check(all []createdPool, name string, o *config.LeaseOptions) *CrowdedError {
	l := o.Layout
	if !l.IsValid() {
		l = firn.Default()
	}
	whole := term.Range{First: 0, Last: l.Workers() - 1}
	want := whole
	if o.Ranged {
		want = o.Workers
	}
	e := &CrowdedError{Layout: l}
	var taken []term.Range
	for _, other := range all {
		if other.Repeats(name) {
			continue
		}
		theirs := other.taken(l)
		if term.CouldRepeat(l, want, other.layout, theirs) {
			if e.All = append(e.All, other.name); len(e.All) == 1 {
				e.Other = other.info()
				if other.layout == l {
					e.Leaving = leaving(other)
				}
			}
		}
		if !term.SameWorkerBits(l, other.layout) {
			theirs = whole
		}
		taken = append(taken, theirs)
		if (other.layout == l || !o.Layout.IsValid()) && other.canHalve(all, name) && other.now.Count() > e.Big.Workers() {
			e.Big = other.info()
		}
	}
	if e.Other.Name == "" {
		return nil
	}
	free, some := gap(whole, taken)
	if !some && o.Layout.IsValid() && e.Other.Layout != l {
		same := check(all, name, &config.LeaseOptions{Options: lease.Options{Layout: e.Other.Layout}})
		if same != nil && same.Free != "" {
			e.InOther = same
		}
	}
	if some {
		if o.Ranged { // a pool gets no more workers than it asked for
			free.Last = min(free.Last, free.First+want.Count()-1)
		}
		e.Free = free.String()
	}
	return e
}

// taken are the workers that no other pool of a layout can have.
func (p *createdPool) taken(l firn.Layout) term.Range {
	// By another layout the same bits are of another time, which may yet come.
	if ever, err := p.Ever(p.layout); err == nil && p.layout != l {
		return ever
	}
	return p.claim
}

// canHalve reports whether another pool of that name can have the upper half of the pool's
// workers, once the pool has given it up.
func (p *createdPool) canHalve(all []createdPool, name string) bool {
	if p.Reserved != "" || p.now.Count() < 2 {
		return false
	}
	_, upper := Halves(p.info())
	return !slices.ContainsFunc(all, func(other createdPool) bool {
		return other.name != p.name && !other.Repeats(name) && term.CouldRepeat(p.layout, upper, other.layout, other.taken(p.layout))
	})
}

// Accepted reports whether two pools could make equal ids, and somebody has accepted that.
func Accepted(a, b pool.Info) bool {
	said := slices.Contains(a.MayRepeat, b.Name) || slices.Contains(b.MayRepeat, a.Name)
	return said && term.CouldRepeat(a.Layout, term.Range{First: a.First, Last: a.Last}, b.Layout, term.Range{First: b.First, Last: b.Last})
}

// Halves are the two halves of the workers of a pool that has at least two.
func Halves(p pool.Info) (lower, upper term.Range) {
	middle := p.First + p.Workers()/2
	return term.Range{First: p.First, Last: middle - 1}, term.Range{First: middle, Last: p.Last}
}

// leaving returns the workers that a pool is giving up; "" where there are none.
func leaving(p createdPool) string {
	left := term.Range{First: p.claim.First, Last: p.now.First - 1}
	if left.First > left.Last {
		left = term.Range{First: p.now.Last + 1, Last: p.claim.Last}
	}
	if p.claim == p.now || left.First > left.Last {
		return ""
	}
	return left.String()
}

// gap returns the longest range of whole that none of the others overlaps.
func gap(whole term.Range, others []term.Range) (longest term.Range, ok bool) {
	slices.SortFunc(others, func(a, b term.Range) int { return cmp.Compare(a.First, b.First) })
	next := whole.First
	for _, r := range append(others, term.Range{First: whole.Last + 1, Last: whole.Last + 1}) {
		if free := (term.Range{First: next, Last: r.First - 1}); free.First <= free.Last && (!ok || free.Count() > longest.Count()) {
			longest, ok = free, true
		}
		next = max(next, r.Last+1)
	}
	return longest, ok
}
