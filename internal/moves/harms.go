package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/firn-id/firn/shard/move"
)

// A harm is one thing that goes wrong while a shard moves.
type harm struct {
	name  string
	usual bool         // several of these come in each run; else one
	from  []move.Phase // the harm comes in one of these; none: at any time

	missing func(w *world) error                      // why it cannot be done here; nil: it can
	prepare func(ctx context.Context, s *scene) error // before the shard has rows; nil: nothing
	strike  func(ctx context.Context, s *scene) error // in the goroutine that waits for the mover
	settle  func(ctx context.Context, s *scene) error // when the shard has moved, struck or not; nil: nothing
	undo    func(ctx context.Context, s *scene) error // when the move is finished; nil: nothing
}

// harms are all of them. Those that are not usual are dealt, one to a run, each as often as the others.
var harms = []harm{
	{name: "mover killed", usual: true, strike: killMover},
	{name: "source killed", usual: true, missing: noControl, strike: killServer("a")},
	{name: "target killed", usual: true, missing: noControl, strike: killServer("b")},

	{name: "link hung", from: busy, missing: noLinks, strike: hangLinks},
	{name: "link cut", from: busy, missing: noLinks, strike: cutLinks},
	{name: "second mover", from: busy, strike: secondMover},
	{name: "other shard", from: busy, prepare: makeSpare, strike: moveSpare, settle: settleSpare},
	{name: "schema changed", from: early, strike: changeSchema},
	{name: "source promoted", from: busy, missing: noControl, prepare: makeStandby("a"), strike: promote("a"), settle: endStandby("a")},
	{name: "target promoted", from: busy, missing: noControl, prepare: makeStandby("b"), strike: promote("b"), settle: endStandby("b")},
	{name: "disk full", from: early, missing: noDisk, prepare: makeDisk, strike: fillDisk, undo: endDisk},
	{name: "slot lost", from: []move.Phase{move.Copying, move.Verifying}, missing: noControl, strike: loseSlot},
}

var (
	busy  = []move.Phase{move.Preparing, move.Copying, move.Copying, move.Verifying, move.Cutting}
	early = []move.Phase{move.Preparing, move.Copying, move.Copying}
)

// A scene is where a harm is done.
type scene struct {
	*world
	n          int64 // of the shard
	schema     string
	tablespace string // of its tables; empty: the usual one
	o          *outcome
	random     *rand.Rand
	hand       *writer // knows the rows that harms write
	m          *mover
	beside     []*mover // that were started beside it
}

// A blow is a harm and its instant.
type blow struct {
	*harm
	phase move.Phase
	delay time.Duration
}

// possible are the harms that can be done here, and why the others cannot. That of the setting -only has to be.
func (w *world) possible() (all []*harm, skipped []string, err error) {
	for i := range harms {
		h := &harms[i]
		if h.missing != nil {
			if err := h.missing(w); err != nil {
				if h.name == w.only {
					return nil, nil, fmt.Errorf("-only %q: %w", h.name, err)
				}
				skipped = append(skipped, fmt.Sprintf("%s: %v", h.name, err))
				continue
			}
		}
		all = append(all, h)
	}
	return all, skipped, nil
}

// ownHarms are the names of those that a run has one of.
func ownHarms() (names []string) {
	for _, h := range harms {
		if !h.usual {
			names = append(names, h.name)
		}
	}
	return names
}

// dealt are the blows of one run: some usual ones, and the run's own among them. After as many runs as
// there are harms each has come once, in an order that the seed chooses.
func (w *world) dealt(n int64, random *rand.Rand) []blow {
	var usual, own []*harm
	for _, h := range w.harms {
		if h.usual {
			usual = append(usual, h)
		} else {
			own = append(own, h)
		}
	}
	round := rand.New(rand.NewPCG(w.seed, uint64(n)/uint64(len(own))))
	round.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	all := []blow{w.orOnly(own[int(n)%len(own)]).at(random)}
	for range random.IntN(4) {
		all = append(all, blow{harm: usual[random.IntN(len(usual))]}.at(random))
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// orOnly is the blow of a run's own harm: that of the setting -only, if there is one.
func (w *world) orOnly(h *harm) blow {
	for _, other := range w.harms {
		if other.name == w.only {
			h = other
		}
	}
	return blow{harm: h}
}

// kills are blows against what ends a move or reverts it.
func (s *scene) kills() (all []blow) {
	if !s.faults {
		return nil
	}
	for range s.random.IntN(4) {
		if h := s.harms[s.random.IntN(len(s.harms))]; h.usual {
			all = append(all, blow{harm: h}.at(s.random))
		}
	}
	return all
}

// at chooses the instant.
func (b blow) at(random *rand.Rand) blow {
	b.delay = time.Duration(random.Float64() * random.Float64() * float64(3*time.Second))
	if len(b.from) > 0 {
		b.phase = b.from[random.IntN(len(b.from))]
		b.delay = time.Duration(random.Float64() * random.Float64() * float64(time.Second))
	}
	return b
}

// unnoticed says that the harm that was just done met nothing.
func (s *scene) unnoticed() { s.o.Struck[len(s.o.Struck)-1] += " (unnoticed)" }

// between is a time of chance.
func (s *scene) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Float64()*float64(most-least))
}

func killMover(_ context.Context, s *scene) error {
	if err := s.m.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// killServer ends a server at once and starts it again, and then the mover.
func killServer(name string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		s.servers[name].Kill(s.tb)
		time.Sleep(100 * time.Millisecond)
		s.servers[name].Start(s.tb)
		time.Sleep(100 * time.Millisecond)
		return killMover(ctx, s)
	}
}

// noControl: servers that somebody else started are not ended.
func noControl(w *world) error {
	if len(w.servers) == 0 {
		return errors.New("the servers are not ours")
	}
	return nil
}

// secondMover starts another mover of the same shard.
func secondMover(_ context.Context, s *scene) error {
	other, err := s.startMover("move", s.n)
	s.beside = append(s.beside, other)
	return err
}
