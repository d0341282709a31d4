package move

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/shard/topology"
)

// What servers say of a shard, in the order of a move.
var (
	nowhere  = copyOf{}
	open1    = copyOf{there: true, state: topology.StateOpen, here: true, term: 1}
	begun    = copyOf{there: true, state: topology.StateOpen, here: true, term: 2, attempt: "me", batch: "x", loaded: true}
	others   = copyOf{there: true, state: topology.StateOpen, here: true, term: 2, attempt: "other", batch: "x", loaded: true}
	claimed  = copyOf{there: true, state: topology.StateMoved, here: true, term: 2, attempt: "me", movedTo: "a", batch: "x"}
	loaded   = copyOf{there: true, state: topology.StateMoved, here: true, term: 2, attempt: "me", movedTo: "a", batch: "x", loaded: true}
	gone     = copyOf{there: true, state: topology.StateMoved, here: true, term: 2, attempt: "me", movedTo: "b", batch: "x", loaded: true}
	taken    = copyOf{there: true, state: topology.StateOpen, here: true, term: 3, attempt: "me+", batch: "x", loaded: true}
	promoted = copyOf{there: true, state: topology.StateOpen, here: false, term: 2, attempt: "me", batch: "x", loaded: true}
)

func TestNextOfAShard(t *testing.T) {
	with := func(c copyOf, f func(*copyOf)) copyOf { f(&c); return c }
	for _, tt := range []struct {
		name     string
		from, to copyOf
		back     bool
		want     action // empty: stuck
	}{
		{"nothing was done", open1, nowhere, false, toBegin},
		{"somebody else began", others, nowhere, false, toBegin},
		{"somebody else is half way", others, with(loaded, func(c *copyOf) { c.attempt = "other" }), false, toBegin},
		{"begun", begun, nowhere, false, toClaim},
		{"claimed by an earlier mover", begun, with(loaded, func(c *copyOf) { c.term, c.attempt = 1, "other" }), false, toClaim},
		{"claimed at this term by another mover", begun, with(loaded, func(c *copyOf) { c.attempt = "other" }), false, toClaim},
		{"claimed", begun, claimed, false, toLoad},
		{"loaded", begun, loaded, false, toCut},
		{"the target was promoted while it copied", begun, with(loaded, func(c *copyOf) { c.here = false }), false, ""},
		{"back: the source was promoted", with(taken, func(c *copyOf) { c.attempt = "me" }), with(gone, func(c *copyOf) { c.term, c.here = 3, false }), true, ""},
		{"let go", gone, loaded, false, toTake},
		{"let go by another", with(gone, func(c *copyOf) { c.attempt = "other" }), with(loaded, func(c *copyOf) { c.attempt = "other" }), false, toTake},
		{"taken", gone, taken, false, toEnd},
		{"taken, finished", with(gone, func(c *copyOf) { c.batch = "" }), with(taken, func(c *copyOf) { c.batch = "" }), false, toEnd},
		{"back: nothing was done", taken, gone, true, toBegin},
		{"back: begun", with(taken, func(c *copyOf) { c.attempt = "me" }), gone, true, toClaim},
		{"back: claimed", with(taken, func(c *copyOf) { c.attempt = "me" }), with(gone, func(c *copyOf) { c.term = 3 }), true, toCut},
		{"back: the copy was dropped", with(taken, func(c *copyOf) { c.attempt = "me" }), with(gone, func(c *copyOf) { c.term, c.loaded = 3, false }), true, ""},
		{"back: it is finished", with(taken, func(c *copyOf) { c.batch = "" }), with(gone, func(c *copyOf) { c.batch = "" }), true, ""},
		{"half given up", with(open1, func(c *copyOf) { c.term = 4 }), loaded, false, ""},
		{"the source was promoted before it let go, or after", promoted, loaded, false, toTake},
		{"the source was promoted and has forgotten", promoted, taken, false, toRecordOwner},
		{"open on both", begun, taken, false, ""},
		{"the source is closed", with(begun, func(c *copyOf) { c.state = topology.StateClosed }), loaded, false, ""},
		{"let go for a claim that was overtaken", gone, with(loaded, func(c *copyOf) { c.term = 7 }), false, ""},
		{"the target was promoted after it opened", gone, with(taken, func(c *copyOf) { c.here = false }), false, ""},
	} {
		p := pairOf{1, tt.from, tt.to}
		if tt.back {
			p = pairOf{1, tt.to, tt.from}
		}
		got, err := nextOf(goal{attempt: "me", back: tt.back}, p)
		if got != tt.want || (err != nil) != (tt.want == "") || err != nil && !errors.As(err, new(*StuckError)) {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestNext(t *testing.T) {
	done := pairOf{1, gone, taken}
	ready, fresh, claim := pairOf{2, begun, loaded}, pairOf{3, open1, nowhere}, pairOf{4, begun, nowhere}
	letGo := pairOf{5, gone, loaded}
	var all facts
	all.source = stream{publication: true, slot: true, subscription: true, enabled: true, published: 3, known: 3}
	all.target = stream{publication: true, slot: true, subscription: true, enabled: true, known: 3}
	with := func(f func(*facts)) facts { c := all; f(&c); return c }
	for _, tt := range []struct {
		name   string
		facts  facts
		shards []pairOf
		want   action
		of     []int64
	}{
		{"what was let go comes first", all, []pairOf{done, fresh, ready, letGo}, toTake, []int64{5}},
		{"all begin before one goes on", all, []pairOf{claim, fresh, ready}, toBegin, []int64{3}},
		{"all are claimed", all, []pairOf{done, claim, ready}, toClaim, []int64{4}},
		{"no publication", with(func(f *facts) { f.source, f.target = stream{}, stream{} }), []pairOf{ready}, toPublish, []int64{2}},
		{"no slot", with(func(f *facts) { f.source, f.target = stream{publication: true}, stream{} }), []pairOf{ready}, toMakeSlot, []int64{2}},
		{"no subscription", with(func(f *facts) { f.source, f.target = stream{publication: true, slot: true}, stream{} }), []pairOf{ready}, toSubscribe, []int64{2}},
		{"not enabled", with(func(f *facts) { f.target.enabled = false }), []pairOf{ready}, toEnable, []int64{2}},
		{"copying", with(func(f *facts) { f.target.copying = 1 }), []pairOf{ready}, toWait, []int64{2}},
		{"no way back", with(func(f *facts) {
			f.target.publication, f.target.slot, f.source.subscription, f.source.enabled = false, false, false, false
		}), []pairOf{ready}, toPublishBack, []int64{2}},
		{"nobody knows it", with(func(f *facts) {
			f.target.published, f.target.slot, f.source.subscription, f.source.enabled = 3, false, false, false
		}), []pairOf{ready}, toSubscribeBack, []int64{2}},
		{"it is not empty", with(func(f *facts) { f.target.published, f.target.slot, f.source.enabled = 3, false, false }), []pairOf{ready}, toEmptyPublication, []int64{2}},
		{"it has no slot", with(func(f *facts) { f.target.slot, f.source.enabled = false, false }), []pairOf{ready}, toMakeSlotBack, []int64{2}},
		{"it is not at work", with(func(f *facts) { f.source.enabled = false }), []pairOf{ready}, toEnableBack, []int64{2}},
		{"all is there", all, []pairOf{done, ready, {6, begun, loaded}}, toCut, []int64{2}},
		{"all has moved", with(func(f *facts) { f.source, f.target = stream{}, stream{} }), []pairOf{done}, toEnd, nil},
		{"the slot was dropped", with(func(f *facts) { f.source.slot = false }), []pairOf{ready}, "", nil},
		{"the slot back was dropped", with(func(f *facts) { f.target.slot = false }), []pairOf{ready}, "", nil},
		{"a slot was lost", with(func(f *facts) { f.source.lost = true }), []pairOf{ready}, "", nil},
		{"the slot back is gone, and nothing reads it, with shards that need it", with(func(f *facts) { f.target.slot, f.source.enabled = false, false }), []pairOf{done, ready}, "", nil},
		{"the slot back is gone, with shards that need it", with(func(f *facts) { f.target.slot = false }), []pairOf{done, ready}, "", nil},
	} {
		tt.facts.shards = tt.shards
		got, err := next(goal{attempt: "me"}, &tt.facts)
		var of []int64
		for _, p := range got.shards {
			of = append(of, p.shard)
		}
		if got.do != tt.want || (err != nil) != (tt.want == "") || len(of) != len(tt.of) || len(of) > 0 && of[0] != tt.of[0] {
			t.Errorf("%s: %q of %v, %v; want %q of %v", tt.name, got.do, of, err, tt.want, tt.of)
		}
	}
	all.shards = []pairOf{{1, gone, taken}}
	all.target.slot = false
	if got, err := next(goal{attempt: "me", back: true}, &all); err == nil && got.do != toBegin {
		t.Errorf("back without a stream: %v", got)
	}
}

// TestNextOfAPromoted: a mover names the server that was promoted while a shard was copied to it, and
// what opens it. Its copy takes no more rows, so to wait for the copy would be in vain.
func TestNextOfAPromoted(t *testing.T) {
	m := &Mover{source: &end{Server: topology.Server{Name: "a"}}, target: &end{Server: topology.Server{Name: "b"}}}
	lost := loaded
	lost.here = false
	f := &facts{shards: []pairOf{{1, begun, lost}}, source: stream{publication: true, slot: true}, target: stream{subscription: true, enabled: true, copying: 3}}
	_, err := next(goal{attempt: "me"}, f)
	var stuck *StuckError
	if !errors.As(m.withOpening(f, err), &stuck) || !strings.Contains(stuck.Do, "b is a copy, or was promoted or restored.") || !strings.Contains(stuck.Do, "firn shard reopen b") {
		t.Errorf("%v: %+v", err, stuck)
	}
}
