package move

import (
	"context"
	"fmt"
	"slices"
)

// This file is the protocol of a move: the table of the package's documentation, as data. What
// comes next is the first step whose work is not done yet, as next and streams say; a mover then
// runs that step.

// An action is one kind of thing that a mover does.
type action string

const (
	toEnd action = "end" // nothing

	toBegin action = "begin"
	toClaim action = "claim"
	toLoad  action = "load"

	toPublish   action = "publish"
	toMakeSlot  action = "makeSlot"
	toSubscribe action = "subscribe"
	toEnable    action = "enable"
	toWait      action = "wait"

	toPublishBack      action = "publishBack"
	toGuard            action = "guard"
	toSubscribeBack    action = "subscribeBack"
	toEmptyPublication action = "emptyPublication"
	toMakeSlotBack     action = "makeSlotBack"
	toEnableBack       action = "enableBack"

	toCut         action = "cut"
	toTake        action = "take"
	toRecordOwner action = "recordOwner"
)

// A protocolStep is a line of the table.
type protocolStep struct {
	do action
	on string // the server that changes: a is the source of the move, b its target

	calls []string // functions of owner.sql and stream.sql of package shard/install, or of PostgreSQL, in order

	// missing says of a step that replicates whether its work is still to be done, where that of
	// all steps before is. It is nil of a step that is one shard's: nextOf says when that comes.
	missing func(source, target stream) bool

	run func(m *Mover, ctx context.Context, w work) error
}

// Work is what a step is done with.
type work struct {
	goal
	facts  *facts
	shards []pairOf
}

// protocol is in the order of a move. To go back is begin, claim and cut, the other way.
var protocol = []protocolStep{
	{
		do: toBegin, on: "a", calls: []string{"begin_move"},
		run: func(m *Mover, ctx context.Context, w work) error { return m.begin(ctx, w.goal, w.shards) },
	},
	{
		do: toClaim, on: "b", calls: []string{"claim"},
		run: func(m *Mover, ctx context.Context, w work) error { return m.claim(ctx, w.goal, w.shards, true) },
	},
	{
		do: toLoad, on: "b", calls: []string{"begin_load", "end_load"},
		run: func(m *Mover, ctx context.Context, w work) error { return m.load(ctx, w.shards) },
	},
	{
		do: toPublish, on: "a", calls: []string{"publish"},
		missing: func(a, _ stream) bool { return !a.publication },
		run:     func(m *Mover, ctx context.Context, _ work) error { return m.publish(ctx, m.source) },
	},
	{
		do: toMakeSlot, on: "a", calls: []string{"pg_create_logical_replication_slot"},
		missing: func(a, _ stream) bool { return !a.slot },
		run:     func(m *Mover, ctx context.Context, _ work) error { return m.makeSlot(ctx, m.source, m.forth()) },
	},
	{
		do: toSubscribe, on: "b", calls: []string{"subscribe"},
		missing: func(_, b stream) bool { return !b.subscription },
		run: func(m *Mover, ctx context.Context, w work) error {
			return m.subscribe(ctx, m.target, m.source, w.facts.source.published)
		},
	},
	{
		do: toEnable, on: "b", calls: []string{"enable_subscription"},
		missing: func(_, b stream) bool { return !b.enabled },
		run:     func(m *Mover, ctx context.Context, _ work) error { return m.enable(ctx, m.target) },
	},
	{
		do: toWait, on: "b",
		missing: func(_, b stream) bool { return b.copying > 0 },
		run:     func(m *Mover, ctx context.Context, w work) error { return m.wait(ctx, w.goal, w.shards) },
	},
	{
		do: toPublishBack, on: "b", calls: []string{"publish"},
		missing: func(_, b stream) bool { return !b.publication },
		run:     func(m *Mover, ctx context.Context, _ work) error { return m.publish(ctx, m.target) },
	},
	{
		do: toGuard, on: "a", calls: []string{"guard"},
		missing: func(a, _ stream) bool { return !a.subscription && a.unguarded > 0 },
		run:     func(m *Mover, ctx context.Context, w work) error { return m.guard(ctx, w.shards) },
	},
	{
		do: toSubscribeBack, on: "a", calls: []string{"subscribe"},
		missing: func(a, _ stream) bool { return !a.subscription },
		run: func(m *Mover, ctx context.Context, w work) error {
			return m.subscribe(ctx, m.source, m.target, w.facts.target.published)
		},
	},
	{
		do: toEmptyPublication, on: "b", calls: []string{"empty_publication"},
		missing: func(_, b stream) bool { return !b.slot && b.published > 0 },
		run:     func(m *Mover, ctx context.Context, _ work) error { return m.emptyPublication(ctx, m.target) },
	},
	{
		do: toMakeSlotBack, on: "b", calls: []string{"pg_create_logical_replication_slot"},
		missing: func(_, b stream) bool { return !b.slot },
		run:     func(m *Mover, ctx context.Context, _ work) error { return m.makeSlot(ctx, m.target, m.back()) },
	},
	{
		do: toEnableBack, on: "a", calls: []string{"enable_subscription"},
		missing: func(a, _ stream) bool { return !a.enabled },
		run:     func(m *Mover, ctx context.Context, _ work) error { return m.enable(ctx, m.source) },
	},
	{
		do: toCut, on: "a, b", calls: []string{"lock_tables", "take", "lock_tables", "let_go", "take"},
		run: func(m *Mover, ctx context.Context, w work) error { return m.verifyAndCut(ctx, w.goal, w.shards[0]) },
	},
	{
		do: toTake, on: "b", calls: []string{"take"},
		run: func(m *Mover, ctx context.Context, w work) error { return m.take(ctx, w.goal, w.shards) },
	},
	{
		do: toRecordOwner, on: "a", calls: []string{"record_owner"},
		run: func(m *Mover, ctx context.Context, w work) error { return m.recordOwner(ctx, w.goal, w.shards) },
	},
}

// streams says what is missing of the streams, and else toCut: forth first, with the copy;
// then back, in an order in which nothing is sent back that was copied.
func (f *facts) streams() action {
	s, t := f.source, f.target
	if s.lost || t.lost || !s.slot && t.subscription || !t.slot && s.enabled { // a slot that is made anew begins too late
		return toEnd
	}
	for _, p := range protocol {
		if p.missing != nil && p.missing(s, t) {
			return p.do
		}
	}
	return toCut
}

// do does one step.
func (m *Mover) do(ctx context.Context, g goal, f *facts, s step) error {
	i := slices.IndexFunc(protocol, func(p protocolStep) bool { return p.do == s.do })
	if i < 0 {
		return fmt.Errorf("shard: no step %s", s.do)
	}
	return protocol[i].run(m, ctx, work{g, f, s.shards})
}
