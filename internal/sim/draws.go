package sim

import (
	"math/rand/v2"

	"github.com/firn-id/firn"
)

// A draw is a situation: schedules in which certain things meet, with few workers and much going on.
type draw struct {
	name  string
	kind  storeKind    // of the store
	in    func(*setup) // what the schedules have in common
	scene func(*world) // stages what hardly ever comes by chance
	wrong wrong
}

// draws are the situations, in each of which a rule that is missing shows soon: package mutants says
// which one in which.
var draws = []draw{
	{name: "few workers and many faults"},
	{name: "the store is restored", in: restoring},
	{name: "the store is restored, and clocks step", in: wrongClocks},
	{name: "a write from before a restore arrives after it", in: staged, scene: ghost},
	{name: "the store is restored while a worker is taken", in: staged, scene: restoredWhileTaking},
	{name: "all records are deleted", in: dropping},
	{name: "all records are deleted, and grants reach far", in: droppingLong},
	{name: "a SQLite file is replaced", kind: embedded, in: replacing},
	{name: "a SQLite file is restored", kind: embedded, in: embeddedRestored},
	{name: "the store is copied", in: twinning},
	{name: "the store is copied, and grant files", in: twinningFiles},
	{name: "the store is away and back", in: living},
	{name: "holders die", in: mourning},
	{name: "processes crash again and again", in: crashing, scene: crashLoops},
	{name: "a virtual machine is cloned", in: clonedOnce},
	{name: "clocks step", in: clocksOnly},
	{name: "clocks step, and the store has none", kind: blind, in: clocksOnly},
	{name: "a clock is wrong for long", in: drifting, scene: misled},
	{name: "a process is paused for hours, and its boot clock is fast", in: drifting, scene: drifts},
	{name: "two layouts in one pool", in: twoLayouts},
	{name: "a pool is created anew with another layout", in: relaying, scene: relaid},
	{name: "fresh workers only", in: freshly},
	{name: "workers are held for other programs", in: holdingForOthers},

	{name: "grant files", in: files},
	{name: "grant files, and reboots", in: rebooting},
	{name: "grant files that are copied", kind: embedded, in: copying},
	{name: "grant files on a disk that fails", in: spoiling},
	{name: "a grant file from before a restore", in: resuming, scene: resumedAfterRestore},

	{name: "pools are created at the same time", in: creating},
	{name: "pools hand workers to each other", in: moving},
	{name: "pools hand workers to each other, and writes are late", in: movingLate},
	{name: "a pool's record is deleted", in: unpooling},

	{name: "a store that forgets", kind: lossy, in: forgetful},
	{name: "a store that forgets, and holders that are late", kind: lossy, in: brisk},
	{name: "a store that forgets, and an operator who releases workers", kind: lossy, in: releasing},
	{name: "a store that forgets, and ticks of a second", kind: lossy, in: exact(3)},
	{name: "a store that forgets a grant, and clocks that are as wrong as they may be", kind: lossy, in: worst, scene: forgetsGrant},
	{name: "a store that forgets, and ticks of 10 ms", kind: lossy, in: exact(2)},
	{name: "a store that forgets, and writes that are late", kind: lossy, in: slow},
	{name: "a store that forgets, and several outage budgets", kind: lossy, in: unequal},
	{name: "a store that forgets, and a holder that comes back", kind: lossy, in: late, scene: revives},
	{name: "a store that forgets, and continues on another clock", kind: lossy, in: skewed, scene: twoClocks},
	{name: "a store that can forget by turns, and a holder that comes back", kind: shifting, in: late, scene: revives},
	{name: "a store that can forget by turns, while a worker is taken", kind: shifting, in: patient, scene: markedMeanwhile},
	{name: "a store that can forget by turns", kind: shifting, in: shiftingOften},
	{name: "a store that can forget by turns, and grant files", kind: shifting, in: shiftingFiles},
	{name: "a store that forgets is recovered while a worker is taken", kind: lossy, in: outlasting, scene: outlasts},
	{name: "a store that can forget by turns, and several outage budgets", kind: shifting, in: unequal},

	{name: "numbers", in: counter},
	{name: "numbers of a store that forgets", kind: lossy, in: counter},
	{name: "numbers of a store that is restored", in: counterRestored},
	{name: "numbers of several stores that forget", kind: lossy, in: counterLanes},
	{name: "numbers, and a counter's record that is removed", in: uncounting},
	{name: "numbers of a store that is copied", in: counterTwinning},
	{name: "numbers handed back to a store that has forgotten", kind: lossy, in: quiet, scene: handBack},

	{name: "documents", in: documents},
	{name: "documents of a store that forgets", kind: lossy, in: documents},
	{name: "documents of a store that is restored", in: documentsRestored},
	{name: "documents of a store that is copied", in: documentsTwinning},
	{name: "documents, and a store's clock that is set", in: documentsDated},
}

// draw draws a schedule of the situation.
func (d *draw) draw(rng *rand.Rand) setup {
	s := drawSetup(rng, d.kind)
	s.first, s.workers, s.pools = 0, 1+rng.Int64N(2), 1
	s.known, s.lives, s.faults.choices = true, false, false
	s.faults.remove, s.faults.drop, s.faults.reboots, s.faults.copies = false, false, false, false
	s.faults.damages, s.faults.denies = false, false
	s.faults.forget = d.kind.lossy()
	s.timing()
	if d.in != nil {
		d.in(&s)
	}
	s.scene, s.wrong = d.scene, d.wrong
	if s.wrong != (wrong{}) {
		s.wrong.name = d.name
	}
	s.layout2 = s.layout2 && s.rules.Layout == firn.Default()
	return s
}
