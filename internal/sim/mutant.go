package sim

import (
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A mutant breaks one rule, around the machines: in a driver, the generator, the
// store, or what an operator does. The zero mutant breaks none.
type mutant struct {
	name  string
	kind  storeKind    // of the store
	in    func(*setup) // what its schedules have in common
	scene func(*world) // stages what hardly ever comes by chance
	shows flaw         // what it does; repeats, where nothing is said

	// Of a lease: around its machine,
	rules  func(*term.Rules)
	action func(*holder, term.Action) term.Action                 // what is sent; with Op None nothing is
	event  func(*holder, term.Event) term.Event                   // what the machine is told
	behind func(*holder, time.Duration, term.Event) time.Duration // by how much the boot clock is behind then
	grant  func(*holder, firn.Grant) firn.Grant                   // what the generator is told
	last   func(*holder, firn.Tick) firn.Tick                     // what a Stop says

	// in the generator and its driver,
	manner        manner
	oneToken      bool // of a process, instead of one for each attempt
	openEnd       bool // a generator issues until its term is over
	steppingClock bool // the system's clock is followed at once
	lateMark      bool // a grant file's mark is not waited for
	staleFile     bool // a grant file is good after a release
	sharedFile    bool // a grant file is not locked
	anyBoot       bool // a grant file is good after a reboot
	anyCopy       bool // a copy of a grant file is good
	anyLayout     bool // a process with another layout than its pool's goes on
	olderFile     bool // what was in a grant file before it was damaged is good
	fromBase      bool // who goes on with a grant file begins with its grant

	// in the store and its operator.
	ignoreVersion bool
	ignoreWithin  bool
	ignoreInode   bool // a file that was replaced is written on
	countVersions bool
	blind         func(s *memory, by *process, key string, value []byte, cond store.Condition) bool // whether the version is ignored
	blindToo      bool                                                                              // also of what operators write
	notCutOff     bool                                                                              // processes are at work while the store is restored
	errand        func(*errand, *request) (reply, bool)                                             // what somebody asks by package pool; true: that is the answer

	// Of documents: what the driver is told.
	told func(*clerk, dated.Action, record.Answer) record.Answer

	// Of a counter.
	heard     func(*lane, block.Answer) block.Answer // what the machine is told
	put       func(*lane, block.Action) block.Action // what is written
	unacked   bool                                   // what calls return was used before
	unraised  bool                                   // a restored store is not raised
	unreached bool                                   // what was handed back is not thought of when it is
}

// draw draws schedules that give a mutant opportunity: few workers, much going on.
func (m *mutant) draw(rng *rand.Rand) setup {
	s := drawSetup(rng, m.kind)
	s.first, s.workers, s.pools = 0, 1+rng.Int64N(2), 1
	s.known, s.lives, s.faults.choices = true, false, false
	s.faults.remove, s.faults.drop, s.faults.reboots, s.faults.copies = false, false, false, false
	s.faults.damages, s.faults.denies = false, false
	s.faults.forget = m.kind.lossy()
	s.timing()
	if m.in != nil {
		m.in(&s)
	}
	s.layout2 = s.layout2 && s.rules.Layout == firn.Default()
	return s
}

// written is the record that a Put of a worker's record writes.
func written(h *holder, do term.Action) (r term.Record, ok bool) {
	if _, ok = term.WorkerOf(h.pool.name, do.Key); !ok || do.Op != term.Put {
		return r, false
	}
	r, err := term.ReadRecord(store.Record{Key: do.Key, Value: do.Value, Version: "sent"})
	return r, err == nil
}

func extension(h *holder, do term.Action) (r term.Record, ok bool) {
	r, ok = written(h, do)
	return r, ok && do.For == term.ExtendWorker
}

// reread is the record of one's own worker that was read because a write is in
// doubt, if it is another one than that replaces.
func reread(h *holder, e term.Event) (r term.Record, ok bool) {
	found, ok := e.(term.Found)
	if !ok || h.p.Doing.For != term.SettleWorker || found.Record.Version == h.sent.Cond.Version {
		return r, false
	}
	r, err := term.ReadRecord(found.Record)
	return r, err == nil
}

// adopted makes a record that was found look like the one that was sent.
func adopted(h *holder, e term.Event) term.Event {
	rec := e.(term.Found).Record
	rec.Value = h.meant
	return term.Found{Record: rec}
}

// repooled changes the pool's record that was read in a phase.
func repooled(h *holder, e term.Event, phase term.Phase, change func(*term.Pool)) term.Event {
	found, ok := e.(term.Found)
	if !ok || found.Record.Key != h.pool.key || found.Record.Version == "" || h.p.Term.Phase != phase {
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

// reclocked changes what is read while a worker is sought or held: when the store
// says that it is, and when a record was written.
func reclocked(e term.Event, change func(*store.Record)) term.Event {
	switch e := e.(type) {
	case term.Found:
		change(&e.Record)
		return e
	case term.Wrote:
		change(&e.Record)
		return e
	case term.Listed:
		list := append([]store.Record(nil), e.Records...)
		for i := range list {
			change(&list[i])
		}
		return term.Listed{Records: list}
	}
	return e
}
