package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/leaseoptions"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// This file checks whether a store has the pools that the settings name, as they name
// them, and whether two of its pools can make equal ids.

// missing says that there is no such pool. It returns whether the next process creates it.
func (c *poolCheck) missing(durability store.Durability) bool {
	ensure := "firn pool ensure " + phrase.ShellWord(c.name) + remedy.EnsureNote(c.leasing.From)
	switch {
	case c.records != nil && c.records.later: // said of its record
	case c.records != nil && len(c.records.workers) > 0:
		c.say(Bad, "record", "if there is a backup: restore it, then: "+remedy.Recover("")+"; only if there is no backup: "+ensure, "the record of the pool is missing or unreadable, and it has %s",
			phrase.Plural(len(c.records.workers), "worker"))
	case c.records != nil && c.records.begun:
		c.say(Bad, "record", "if nobody is creating it at this moment: "+ensure, "the pool is not created yet: that has begun, and has not ended")
	case durability.NoticesLoss && !c.others:
		c.say(OK, "record", "", "not created yet; the first process creates it with layout %s", layoutName(c.layout))
		return true
	case c.crowded != nil:
		c.say(Warning, "record", remedy.Beside(c.crowded, c.name, c.leasing.From), "the store has no pool %q", c.name)
	default:
		c.say(Warning, "record", fmt.Sprintf("if this database was restored, or you are not sure: %s; only if no id was ever drawn from it, here or in a database that this one was restored from: firn pool create %s", ensure, phrase.ShellWord(c.name)),
			"the store has no pool %q", c.name)
	}
	return false
}

// compare compares the pool's record with the settings. It returns whether the record can
// be read.
func (c *poolCheck) compare() bool {
	l, err := firn.ParseLayout(c.records.pool.Layout)
	if err != nil {
		c.say(Bad, "layout", "do other hosts have a later version of firn?", "%s cannot be read: %v", c.records.pool.Layout, err)
		return false
	}
	workers, err := c.records.pool.Range(l)
	if err != nil {
		c.say(Bad, "workers", "do other hosts have a later version of firn?", "%v", err)
		return false
	}
	if want := c.leasing.Options.Layout; want.IsValid() && want != l {
		c.say(Bad, "layout", "a pool's layout never changes: leave it out, or take another pool", "it is %s, and the settings say %s", layoutName(l), layoutName(want))
	} else {
		c.say(OK, "layout", "", "%s", layoutName(l))
	}
	c.layout, c.claim = l, workers
	info := pool.Info{Name: c.name, Layout: l, First: workers.First, Last: workers.Last, GivingUp: c.records.pool.Reserved}
	if info.GivingUp != "" {
		c.say(Warning, "range", "repeat the command: firn pool set "+phrase.ShellWord(c.name)+" --workers A-B", "the range of workers is being changed from or to %s", info.GivingUp)
	}
	o := c.leasing.Options
	choice, err := o.Choice.In(l)
	errs := []error{leaseoptions.SameRange(c.leasing, info), err}
	switch n, only := choice.Only(); {
	case o.Hostname:
		_, err := leaseoptions.HostWorker(info, c.hostname)
		errs = append(errs, err)
	case only && !workers.Has(n):
		errs = append(errs, &lease.WorkerError{Pool: c.name, Layout: l, Worker: n, First: info.First, Last: info.Last})
	}
	if err := errors.Join(errs...); err != nil {
		c.fails("pool "+c.name+", settings", err)
	}
	return true
}

// repeats says which pools of the store can make equal ids.
func (e *exam) repeats(found map[string]*poolRecords) {
	type member struct {
		term.Pool
		name   string
		layout firn.Layout
		claim  term.Range
	}
	var all []member
	for _, name := range slices.Sorted(maps.Keys(found)) {
		m := member{Pool: found[name].pool, name: name}
		var err error
		if m.layout, err = firn.ParseLayout(m.Layout); err != nil {
			continue // it was said before, or there is no record
		}
		var claims bool
		if m.claim, claims, err = m.Claim(m.layout); err == nil && claims {
			all = append(all, m)
		}
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !term.CouldRepeat(a.layout, a.claim, b.layout, b.claim) {
				continue
			}
			check := fmt.Sprintf("pools %s and %s", a.name, b.name)
			if a.Repeats(b.name) || b.Repeats(a.name) {
				e.say(OK, check, "", "their ids may be equal, as --may-repeat says: they must never meet in one table, queue or cache")
				continue
			}
			e.say(Warning, check, "use one of them, or give each its own workers, by firn pool set; to see those that they have: firn pool ls", "their ids may be equal")
		}
	}
}

// layoutName is what a layout is called: the preset's name, or its spec.
func layoutName(l firn.Layout) string { return cmp.Or(l.Name(), l.String()) }
