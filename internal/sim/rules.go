package sim

import (
	"math"
	"slices"
	"sync"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A rule is one that ids and numbers rest on, and the mutants that break it.
type rule struct {
	says    string
	mutants []mutant
}

// rules are all there are; each has a mutant.
func allRules() []rule {
	return slices.Concat(storeRules, leaseRules, clockRules, fileRules, operatorRules, poolRules, lossyRules, counterRules)
}

// allMutants are those of all rules.
var allMutants = sync.OnceValue(func() (all []*mutant) {
	for _, r := range allRules() {
		for i := range r.mutants {
			all = append(all, &r.mutants[i])
		}
	}
	return all
})

var storeRules = []rule{
	{"a Put is carried out on the version that it names, or not at all", []mutant{
		{name: "a Put ignores the version", ignoreVersion: true},
		{name: "a Put of the counter ignores the version", in: counter, blind: func(*memory, *process, string, []byte, store.Condition) bool { return true }},
	}},
	{"a version names one write, and is never a count", []mutant{
		{name: "versions are counts, and the store is restored", countVersions: true, in: restoring},
		{name: "versions of the counter are counts", countVersions: true, in: counterRestored},
	}},
	{"a conflict says that the write was not carried out; no other write is taken for one's own", []mutant{
		{name: "a conflict is taken for success", event: func(h *holder, e term.Event) term.Event {
			if _, ok := e.(term.Conflict); ok && h.p.Term.Phase >= term.Taking {
				return term.Wrote{Record: store.Record{Key: h.sent.Key, Value: h.sent.Value, Version: "?", Read: h.w.store.clock()}}
			}
			return e
		}},
		{name: "whatever is found is adopted", event: func(h *holder, e term.Event) term.Event {
			if _, ok := reread(h, e); ok {
				return adopted(h, e)
			}
			return e
		}},
	}},
	{"a file that is not the one at its path any more is not written", []mutant{
		{name: "a file that was replaced is written on", kind: embedded, ignoreInode: true, in: replacing},
	}},
}

var leaseRules = []rule{
	{"a horizon is written down and acknowledged before anything up to it is issued", []mutant{
		{name: "a horizon is used before it is acknowledged", action: func(h *holder, do term.Action) term.Action {
			if r, ok := extension(h, do); ok && h.gen != nil {
				h.gen.extend(r.Horizon)
			}
			return do
		}},
		{name: "a horizon is written down after the ids", action: func(h *holder, do term.Action) term.Action {
			if r, ok := extension(h, do); ok && r.Owner != "" && h.gen != nil {
				r.Horizon = h.gen.last
				do.Value = r.Encode()
			}
			return do
		}, grant: func(h *holder, g firn.Grant) firn.Grant {
			g.Horizon = max(g.Horizon, h.w.tick(h.now().Wall.Add(h.rules.Reach)))
			return g
		}},
	}},
	{"a new holder starts above the record's horizon", []mutant{
		{name: "ids start at the clock, not at the base", grant: func(h *holder, g firn.Grant) firn.Grant {
			g.Base = min(g.Base, h.w.tick(h.now().Wall)-1)
			return g
		}},
	}},
	{"a new holder starts above the floors of the pool and of the store, read again after the acknowledgement", []mutant{
		{name: "the floor is read before the Put only", in: restoring, event: func(h *holder, e term.Event) term.Event {
			found, ok := e.(term.Found)
			switch {
			case ok && h.p.Doing.For == term.JoinPool:
				h.cached = &found
			case ok && h.p.Doing.For == term.ConfirmPool && h.cached != nil:
				return *h.cached
			case ok && h.p.Doing.For == term.ConfirmStore:
				return term.Found{Record: store.Record{Key: term.KeyStore}}
			}
			return e
		}},
	}},
	{"the owner token is new for every Put that takes a worker", []mutant{
		{
			name: "one owner token for all attempts", oneToken: true, in: staged, scene: ghost,
			action: func(h *holder, do term.Action) term.Action {
				if r, ok := written(h, do); ok && r.Owner != "" {
					r.Owner = h.name
					do.Value = r.Encode()
				}
				return do
			},
			event: func(h *holder, e term.Event) term.Event {
				if r, ok := reread(h, e); ok && r.Owner == h.name {
					return adopted(h, e)
				}
				return e
			},
		},
	}},
	{"a worker is taken with a higher term", []mutant{
		{name: "a worker is taken with the term that it had", shows: misstep, action: func(h *holder, do term.Action) term.Action {
			if r, ok := written(h, do); ok && do.For == term.TakeWorker {
				r.Term--
				do.Value = r.Encode()
			}
			return do
		}},
	}},
	{"a worker whose holder is dead is taken in the end, also by who ends and is started again each time that none is free", []mutant{
		{name: "the dead hold their workers for ever", in: mourning, shows: starved, event: func(h *holder, e term.Event) term.Event {
			if h.p.Term.Phase != term.Seeking {
				return e
			}
			return reclocked(e, func(rec *store.Record) {
				if r, err := term.ReadRecord(*rec); err == nil && r.Owner != "" {
					r.TTL = math.MaxInt32
					rec.Value = r.Encode()
				}
			})
		}},
	}},
	{"an id is tested on its own tick, after that was taken", []mutant{
		{name: "ids are not tested", manner: unbounded},
		{name: "ids are tested before the clock is read", manner: unfenced},
	}},
	{"tick and sequence are one word", []mutant{
		{name: "tick and sequence are two words", manner: twoWords},
	}},
	{"a refused call does not move the word on", []mutant{
		{name: "a refused call moves the word on", manner: reckless, shows: stamp, in: clocksOnly},
	}},
	{"an id is ahead of the clock by the borrow at most", []mutant{
		{name: "ids are taken from the end of the grant", manner: hasty, shows: stamp, in: clocksOnly},
	}},
	{"a release is sent after the generator is closed for good", []mutant{
		{name: "a release is sent before the generator is closed", openEnd: true},
	}},
	{"a release goes down to the last tick that was taken, and never below the base", []mutant{
		{name: "a release is below an id that was taken and not handed out yet", last: func(h *holder, last firn.Tick) firn.Tick {
			if h.gen != nil {
				return h.gen.handed
			}
			return last
		}},
		{name: "a release without an id says 0", action: func(h *holder, do term.Action) term.Action {
			if r, ok := written(h, do); ok && r.Owner == "" && (h.gen == nil || h.gen.last == h.gen.base) {
				r.Horizon = 0
				do.Value = r.Encode()
			}
			return do
		}},
	}},
	{"the first grant is short, so that a crash loop does not use up the workers", []mutant{
		{
			name: "the first grant is as long as any", in: crashing, scene: crashLoops, shows: starved,
			rules: func(r *term.Rules) { r.Reach = term.OutageDurable },
		},
	}},
	{"a process whose store was away goes on by itself when it is back", []mutant{
		{name: "a store that was away is not asked again", in: living, shows: starved, action: func(h *holder, do term.Action) term.Action {
			if h.p.Term.Phase == term.Holding && h.p.Term.Fails > 0 {
				do.Op = term.None
			}
			return do
		}},
	}},
	{"a pool's layout never changes, and who has another one is refused", []mutant{
		{name: "a process with another layout is let in", anyLayout: true, in: twoLayouts, event: func(h *holder, e term.Event) term.Event {
			return repooled(h, e, h.p.Term.Phase, func(p *term.Pool) { p.Layout, p.Workers = h.rules.Layout.String(), "0-31" })
		}},
		{name: "a pool that was created anew with another layout is joined", in: relaying, scene: relaid, event: func(h *holder, e term.Event) term.Event {
			return repooled(h, e, h.p.Term.Phase, func(p *term.Pool) { p.Layout, p.Workers = h.rules.Layout.String(), "0-1" })
		}},
	}},
	{"a fresh worker is granted by the Put that creates its record; the counter is a hint", []mutant{
		{name: "a fresh worker is granted by the counter", in: freshly, blind: func(_ *memory, _ *process, _ string, _ []byte, c store.Condition) bool { return c.Version == "" }},
	}},
}

var clockRules = []rule{
	{"a clock that is set back is held: ids go on from the last", []mutant{
		{name: "a clock that was set back is followed", manner: backward, shows: order},
	}},
	{"a step of the system's clock is not followed blindly", []mutant{
		{name: "a step of the clock is followed at once", steppingClock: true, shows: stamp, in: clocksOnly},
	}},
	{"no horizon is further ahead of the store's clock than the outage budget and the bound on clocks", []mutant{
		{name: "a horizon goes by the own clock alone", in: wrongClocks, shows: reach, event: ownClock},
		{name: "a horizon goes by the own clock alone, and the store is restored", in: wrongClocks, event: ownClock},
	}},
}

// ownClock makes the store's clock look as if it agreed with the process's.
func ownClock(h *holder, e term.Event) term.Event {
	return reclocked(e, func(r *store.Record) {
		if !r.Read.IsZero() {
			r.Written, r.Read = r.Written.Add(h.now().Wall.Sub(r.Read)), h.now().Wall
		}
	})
}

var fileRules = []rule{
	{"nothing above the mark of a grant file is issued before the mark is written", []mutant{
		{name: "a grant file is marked late", lateMark: true, in: files},
	}},
	{"who goes on with a grant file starts above its mark", []mutant{
		{name: "a grant file is gone on with from its base", fromBase: true, in: files},
	}},
	{"a grant file is void before a release is sent", []mutant{
		{name: "a grant file is good after the release", staleFile: true, in: files},
	}},
	{"a grant file is one process's, by a lock held for life", []mutant{
		{name: "two processes have one grant file", kind: embedded, sharedFile: true, in: files},
	}},
	{"a grant file is void after a reboot, and a copy of one is", []mutant{
		{name: "a grant file is good after a reboot", anyBoot: true, in: rebooting},
		{name: "a copy of a grant file is good", kind: embedded, anyCopy: true, in: copying},
	}},
	{"a grant file that is damaged or cannot be read is of no use, and neither is what was there before", []mutant{
		{name: "what was in a grant file before it was damaged is good", olderFile: true, in: spoiling},
	}},
	{"who goes on with a grant file of before a restore that was repaired begins another term in the end", []mutant{
		{name: "a floor that was raised above the grant repairs nothing", in: resuming, scene: resumedAfterRestore, shows: starved, event: func(h *holder, e term.Event) term.Event {
			return repooled(h, e, term.Holding, func(p *term.Pool) { p.Floor = 0 })
		}},
	}},
}
