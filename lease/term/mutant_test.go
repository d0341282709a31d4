package term_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

// A mutant breaks one rule, around the machine: in the driver, the generator,
// the store, or what an operator does. The zero mutant breaks none.
type mutant struct {
	name  string
	in    func(*setup) // what its schedules have in common
	kind  storeKind
	scene func(*world) // stages what hardly ever comes by chance
	near  uint64       // a seed shortly before one that catches it, to save time

	rules  func(*term.Rules)
	action func(*process, term.Action) term.Action                          // what is sent
	event  func(*process, term.Event) term.Event                            // what the machine is told
	now    func(*process, term.Now, term.Event) term.Now                    // and at what time
	grant  func(*process, term.Action, firn.Grant, bool) (firn.Grant, bool) // what the generator is told
	last   func(*process, firn.Tick) firn.Tick                              // what a Stop says

	oneToken      bool // of a process, instead of one for each attempt
	openEnd       bool // a generator issues until its term is over
	unfenced      bool // a generator looks at the grant, and then at the clock
	lateMark      bool // a grant file's mark is not waited for
	staleFile     bool // a grant file is good after a release
	sharedFile    bool // a grant file is not locked
	ignoreVersion bool
	ignoreWithin  bool
	countVersions bool
	keepOwner     bool // a restore raises horizons, and no more
	lowFloor      bool // a restore raises the floor to its time
	freeAtOnce    bool // an operator's release forgets the time to live
}

// mutants are the rules that keep ids from being repeated, each broken in turn.
var mutants = []mutant{
	{
		name: "a horizon is used before it is acknowledged", kind: clocked,
		grant: func(p *process, do term.Action, g firn.Grant, ok bool) (firn.Grant, bool) {
			if r, sent := extension(p, do); sent && ok {
				g.Horizon = r.Horizon
			}
			return g, ok
		},
	},
	{
		name: "ids start at the clock, not at the base", kind: clocked,
		grant: func(p *process, _ term.Action, g firn.Grant, ok bool) (firn.Grant, bool) {
			g.Base = min(g.Base, p.w.tick(p.now().Wall)-1)
			return g, ok && g.Horizon > g.Base
		},
	},
	{
		name: "a release is below an id that was taken and not handed out yet", kind: clocked,
		last: func(p *process, last firn.Tick) firn.Tick {
			if p.gen != nil {
				return p.gen.handed
			}
			return last
		},
	},
	{
		name: "a release without an id says 0", kind: clocked,
		action: func(p *process, do term.Action) term.Action {
			if r, ok := written(p, do); ok && r.Owner == "" && (p.gen == nil || p.gen.last == p.gen.base) {
				r.Horizon = 0
				do.Value = r.Encode()
			}
			return do
		},
	},
	{name: "a release is sent before the generator is closed", kind: clocked, openEnd: true},
	{name: "a Put ignores the version", kind: clocked, ignoreVersion: true},
	{name: "versions are counts, and the store is restored", kind: clocked, countVersions: true, in: restored},
	{name: "a restore keeps owner and term", kind: clocked, keepOwner: true, in: restored},
	{name: "a restore raises the floor to now", kind: clocked, lowFloor: true, in: restored},
	{
		name: "the floor is read before the Put only", kind: clocked, in: restored,
		event: func(p *process, e term.Event) term.Event {
			found, ok := e.(term.Found)
			switch {
			case ok && p.s.Phase == term.Joining:
				p.cached = &found.Record
			case ok && p.s.Phase == term.Confirming && p.cached != nil:
				return term.Found{Record: *p.cached}
			}
			return e
		},
	},
	{
		name: "one owner token for all attempts", kind: clocked, oneToken: true, in: staged, scene: ghost,
		action: func(p *process, do term.Action) term.Action {
			if r, ok := written(p, do); ok && r.Owner != "" {
				r.Owner = p.name
				do.Value = r.Encode()
			}
			return do
		},
		event: func(p *process, e term.Event) term.Event {
			if r, ok := reread(p, e); ok && r.Owner == p.name {
				return adopted(p, e)
			}
			return e
		},
	},
	{
		name: "a conflict is taken for success", kind: clocked,
		event: func(p *process, e term.Event) term.Event {
			if _, ok := e.(term.Conflict); ok && p.s.Phase >= term.Taking {
				return term.Wrote{Record: store.Record{Key: p.sent.Key, Value: p.sent.Value, Version: "?", Read: p.w.store.clock()}}
			}
			return e
		},
	},
	{
		name: "whatever is found is adopted", kind: clocked,
		event: func(p *process, e term.Event) term.Event {
			if _, ok := reread(p, e); ok {
				return adopted(p, e)
			}
			return e
		},
	},
	{name: "ids are tested before the clock is read", kind: clocked, unfenced: true},
	{name: "a quarantine one tick too short", kind: lossy, now: shorten, in: exact(3)},
	{name: "a quarantine one second too short", kind: lossy, now: shorten, in: exact(2)},
	{
		name: "a quarantine from before the acknowledgement", kind: lossy, in: slow, near: 2180,
		now: func(p *process, now term.Now, e term.Event) term.Now {
			if _, ok := e.(term.Found); ok && p.s.Phase == term.Confirming {
				now.Wall = p.sentAt.Wall
			}
			return now
		},
	},
	{name: "a late acknowledgement is used", kind: lossy, near: 2700, now: neverLate, ignoreWithin: true, in: forgetful},
	{
		name: "a quarantine by the outage budget of one's own", kind: lossy, in: unequal,
		event: func(p *process, e term.Event) term.Event {
			return repooled(p, e, term.Confirming, func(r *term.Pool) {
				r.Outage = min(r.Outage, p.rules.Outage.Milliseconds())
			})
		},
	},
	{
		name: "an outage budget that the pool's record does not have", kind: shifting, in: unequal, near: 2480,
		event: func(p *process, e term.Event) term.Event {
			return repooled(p, e, p.s.Phase, func(r *term.Pool) {
				if !p.s.Lossy && r.Lossy == "" {
					r.Outage = max(r.Outage, p.rules.Outage.Milliseconds())
				}
			})
		},
	},
	{
		name: "a process goes by what it sees itself", kind: shifting, in: shifted,
		event: func(p *process, e term.Event) term.Event {
			return repooled(p, e, p.s.Phase, func(r *term.Pool) {
				if p.view.Promise.Class == store.Strict {
					r.Lossy = ""
				}
			})
		},
	},
	{
		name: "a late acknowledgement counts without a look at the pool", kind: shifting, in: shifted, ignoreWithin: true,
		event: func(p *process, e term.Event) term.Event {
			if p.s.Lossy {
				return e
			}
			return repooled(p, e, term.Holding, func(r *term.Pool) { r.Lossy = "" })
		},
	},
	{name: "an operator's release that is forgotten leaves no time", kind: lossy, near: 3130, freeAtOnce: true, in: forgetful},
	{name: "a grant file is marked late", kind: clocked, lateMark: true, in: files},
	{name: "a grant file is good after the release", kind: clocked, staleFile: true, in: files},
	{name: "two processes have one grant file", kind: embedded, sharedFile: true, in: files},
}

// written is the record that a Put of a worker's record writes.
func written(p *process, do term.Action) (r term.Record, ok bool) {
	if _, ok = term.WorkerOf(p.w.rules.Pool, do.Key); !ok || do.Op != term.Put {
		return r, false
	}
	r, err := term.ReadRecord(store.Record{Key: do.Key, Value: do.Value, Version: "sent"})
	return r, err == nil
}

func extension(p *process, do term.Action) (r term.Record, ok bool) {
	r, ok = written(p, do)
	return r, ok && p.s.Phase == term.Holding
}

// reread is the record of one's own worker that was read because a write is in
// doubt, if it is another one than that replaces.
func reread(p *process, e term.Event) (r term.Record, ok bool) {
	found, ok := e.(term.Found)
	if !ok || found.Record.Key != p.sent.Key || found.Record.Version == p.sent.Cond.Version {
		return r, false
	}
	if p.s.Phase != term.Taking && p.s.Phase != term.Holding && p.s.Phase != term.Releasing {
		return r, false
	}
	r, err := term.ReadRecord(found.Record)
	return r, err == nil
}

// adopted makes a record that was found look like the one that was sent.
func adopted(p *process, e term.Event) term.Event {
	rec := e.(term.Found).Record
	rec.Value = p.meant
	return term.Found{Record: rec}
}

// repooled changes the pool's record that was read in a phase.
func repooled(p *process, e term.Event, phase term.Phase, change func(*term.Pool)) term.Event {
	found, ok := e.(term.Found)
	if !ok || found.Record.Key != term.KeyPool(p.w.rules.Pool) || found.Record.Version == "" || p.s.Phase != phase {
		return e
	}
	r, err := term.ReadPool(found.Record)
	if err != nil {
		return e
	}
	change(&r)
	found.Record.Value = r.Encode()
	return found
}

func neverLate(p *process, now term.Now, e term.Event) term.Now {
	switch e.(type) {
	case term.Wrote, term.Found:
		if p.s.Phase == term.Holding {
			now.Boot = min(now.Boot, p.s.Since+time.Duration(p.s.Have.TTL)*time.Millisecond)
		}
	}
	return now
}

// shorten takes a second off the quarantine.
func shorten(p *process, now term.Now, e term.Event) term.Now {
	if _, ok := e.(term.Found); ok && p.s.Phase == term.Confirming {
		now.Wall = now.Wall.Add(-time.Second)
	}
	return now
}

// What schedules of a mutant have in common.
func restored(s *setup) {
	quick(&s.rules)
	s.faults = faults{restore: true, pauses: true, cuts: true, network: s.faults.network, loss: s.faults.loss}
	s.every, s.lasts = 3*time.Second, time.Minute
}

// staged schedules have no faults but those of the scene.
func staged(s *setup) {
	quick(&s.rules)
	s.rules.Layout, s.rules.Workers = layouts[2], 1
	s.procs, s.founded, s.known, s.faults = 2, true, false, faults{}
	s.fast, s.issues = 2*time.Millisecond, 200*time.Millisecond
}

// ghost is a scene: the first attempt of a process to take a worker is long on
// its way; the second one succeeds. While it is paused another process takes
// over. Then the store goes back to before all that, is repaired, and the first
// attempt arrives, just before its process goes on.
func ghost(w *world) {
	p, other := w.procs[0], w.procs[1]
	p.boot()
	for p.s.Phase < term.Seeking {
		w.until(w.now + 100*time.Microsecond)
	}
	w.away = w.now + 100*time.Millisecond
	if p.s.Phase > term.Seeking {
		return // it was sent too soon to be lost
	}
	for p.s.Phase < term.Taking {
		w.until(w.now + 100*time.Microsecond)
	}
	attempt := p.sent
	w.until(w.now + 10*time.Second + w.around(5*time.Second))
	p.pause(time.Hour, false)
	other.boot()
	w.until(w.now + 8*time.Second + w.around(5*time.Second))
	w.restore(1)
	for w.cutOff {
		w.until(w.now + time.Millisecond)
	}
	w.store.answer(p, attempt)
	p.resume()
	w.until(w.now + 10*time.Second)
}

func files(s *setup) { s.faults.files, s.faults.kills, s.faults.closes = true, true, true }

func forgetful(s *setup) {
	quick(&s.rules)
	s.rules.Layout, s.rules.Workers = pick(rand.New(rand.NewPCG(1, uint64(s.procs))), layouts[2], layouts[3]), 1
	s.rules.Skew, s.rules.Renew = 200*time.Millisecond, 500*time.Millisecond
	s.rules.Outage = 6 * time.Second
	s.faults = faults{forget: true, pauses: true, release: true}
	s.every, s.lasts, s.procs = time.Second, 40*time.Second, 3
}

func unequal(s *setup) {
	forgetful(s)
	s.founded, s.unequal, s.faults.shift = true, true, s.kind == shifting
}

func shifted(s *setup) {
	forgetful(s)
	s.founded, s.unequal, s.faults.shift, s.faults.kills = true, false, true, true
	s.rules.Outage, s.rules.Look = 2*time.Second, time.Second
}

func slow(s *setup) {
	forgetful(s)
	s.rules.Layout = layouts[2]
	s.faults, s.every, s.procs = faults{forget: true, takes: 0.6}, 2*time.Second, 6
}

func exact(layout int) func(*setup) {
	return func(s *setup) {
		forgetful(s)
		s.rules.Layout, s.rules.Workers, s.rules.Skew = layouts[layout], 1, time.Second
		s.rules.Outage = 3 * time.Second
		s.faults, s.every, s.procs = faults{forget: true}, 6*time.Second, 4
	}
}

// draw draws schedules that give a mutant opportunity: few workers, much going on.
func (m *mutant) draw(rng *rand.Rand) setup {
	s := drawSetup(rng, m.kind)
	s.rules.First, s.rules.Workers = 0, 1+rng.Int64N(2)
	s.known, s.lives, s.faults.choices = true, false, false
	s.faults.forget = m.kind.lossy()
	s.timing()
	if m.in != nil {
		m.in(&s)
	}
	return s
}

// TestMutants makes sure that the simulation finds what it is there for. In the
// long form it begins with the first seed.
func TestMutants(t *testing.T) {
	const most = 10_000
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			if *onlySeed != 0 {
				replay(t, *onlySeed, m.draw, m)
				return
			}
			first := max(m.near, 1)
			if *schedules > short {
				first = 1
			}
			done, seed, err := simulate(first, most, m.draw, m)
			switch {
			case err == nil:
				t.Errorf("not caught in %d schedules", done.schedules)
			case done.repeats == 0:
				t.Errorf("seed %d: %v", seed, err)
			default:
				t.Logf("seed %d: %v", seed, err)
			}
		})
	}
}
