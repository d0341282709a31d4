package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// A crowdedError says that a missing pool could not be created as it is set: it could repeat ids of
// another pool. A hint that creates it so would only lead to that refusal.
type crowdedError struct {
	error
	layout firn.Layout // that it is to have
	other  createdPool // the first one whose ids it could repeat
	all    []string    // those whose ids it could repeat, as words of a shell
	free   term.Range  // workers that it could have
	some   bool        // there are some
	big    createdPool // one that can give some up; without a name there is none
}

func (e *crowdedError) Unwrap() error { return e.error }

// A createdPool is one of the store.
type createdPool struct {
	term.Pool
	name   string
	layout firn.Layout
	now    term.Range // that it leases
	claim  term.Range // those too that it is giving up
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

// crowded adds to the error of a missing pool that its workers are those of others.
func crowded(ctx context.Context, s store.Store, err error, o *poolOptions) error {
	var missing *lease.MissingPoolError
	if !errors.As(err, &missing) || missing.Creating {
		return err
	}
	if e := crowdedBy(poolsOf(ctx, s), missing.Pool, o); e != nil {
		e.error = err
		return e
	}
	return err
}

// freeBeside returns workers that a pool of that name could have; "" where that is not known or there
// are none.
func freeBeside(ctx context.Context, s store.Store, name string, asked *pool.Options) string {
	o := &poolOptions{Options: lease.Options{Layout: asked.Layout}}
	if asked.Workers > 0 {
		o.workers, o.ranged = term.Range{First: asked.First, Last: asked.First + asked.Workers - 1}, true
	}
	if e := crowdedBy(poolsOf(ctx, s), name, o); e != nil && e.some {
		return e.free.String()
	}
	return ""
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

// crowdedBy returns nil if a pool of these settings can be created beside the others.
func crowdedBy(all []createdPool, name string, o *poolOptions) *crowdedError {
	l := o.Layout
	if !l.IsValid() {
		l = firn.Default()
	}
	whole := term.Range{First: 0, Last: l.Workers() - 1}
	want := whole
	if o.ranged {
		want = o.workers
	}
	e := &crowdedError{layout: l}
	var taken []term.Range
	for _, other := range all {
		if other.Repeats(name) {
			continue
		}
		theirs := other.claim
		// By another layout the same bits are of another time, which may yet come.
		if ever, err := other.Ever(other.layout); err == nil && other.layout != l {
			theirs = ever
		}
		if term.CouldRepeat(l, want, other.layout, theirs) {
			if e.all = append(e.all, phrase.ShellWord(other.name)); len(e.all) == 1 {
				e.other = other
			}
		}
		if !term.SameWorkerBits(l, other.layout) {
			theirs = whole
		}
		taken = append(taken, theirs)
		if (other.layout == l || !o.Layout.IsValid()) && other.Reserved == "" && other.now.Count() > 1 && (e.big.name == "" || other.now.Count() > e.big.now.Count()) {
			e.big = other
		}
	}
	if e.other.name == "" {
		return nil
	}
	e.free, e.some = gap(whole, taken)
	if o.ranged { // a pool gets no more workers than it asked for
		e.free.Last = min(e.free.Last, e.free.First+want.Count()-1)
	}
	return e
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

// ways says how the pool of that name can be had beside the others. Place says where its settings
// are from.
func (e *crowdedError) ways(name string, at poolPlace) string {
	word, text := phrase.ShellWord(name), fmt.Sprintf("with these settings %s could repeat ids of pool %s, which has workers %s. ", name, e.other.name, e.other.now)
	workers, flag := e.free.String(), ""
	switch {
	case e.some:
		text += "To have a pool of its own, give it workers that no other pool has: if "
	case e.big.name != "":
		have := e.big.now
		middle := have.First + have.Count()/2
		workers = term.Range{First: middle, Last: have.Last}.String()
		if e.big.layout != e.layout { // its workers are its own in every other layout
			flag = " --layout " + phrase.ShellWord(layoutName(e.big.layout))
		}
		text += fmt.Sprintf("To have a pool of its own, pool %s has to give it workers. First: firn pool set %s --workers %d-%d. Then, if ", e.big.name, phrase.ShellWord(e.big.name), have.First, middle-1)
	default:
		return text + fmt.Sprintf("No worker is left for it with this layout. Only if their ids never meet in one table, queue or cache: firn pool ensure %s --may-repeat %s%s", word, strings.Join(e.all, " --may-repeat "), at.ensureNote())
	}
	text += fmt.Sprintf("this database was restored, or you are not sure: firn pool ensure %s --workers %s%s (ids start about 5 min later). Only if no id was ever drawn from %q, here or in a database that this one was restored from: firn pool create %s --workers %s%s --new",
		word, workers, flag, name, word, workers, flag)
	if from := at.from["workers"]; from != "" && from != byDefault {
		text += fmt.Sprintf(". And write %s in %s", workers, at.setting("workers"))
	}
	return text
}
