package sim

import (
	"errors"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

var lossyRules = []rule{
	{"the rules for a store that can forget hold on one that does", []mutant{
		{name: "a store that forgets is taken for one that does not", kind: lossy, in: forgetful, event: func(_ *holder, e term.Event) term.Event {
			if heard, ok := e.(term.Promised); ok {
				heard.Durability.Durable = true
				return heard
			}
			return e
		}},
	}},
	{"a new holder issues nothing before its clock has passed the quarantine", []mutant{
		{name: "a quarantine one tick too short", kind: lossy, behind: shorten, in: exact(3)},
		{name: "a quarantine one second too short", kind: lossy, behind: shorten, in: exact(2)},
		{name: "a quarantine from before the acknowledgement", kind: lossy, in: slow, behind: func(h *holder, boot time.Duration, e term.Event) time.Duration {
			if _, ok := e.(term.Found); ok && h.p.Doing.For == term.ConfirmStore {
				return boot - h.sentAt
			}
			return 0
		}},
		{name: "a quarantine by the outage budget of one's own", kind: lossy, in: unequal, event: func(h *holder, e term.Event) term.Event {
			return repooled(h, e, term.Confirming, func(r *term.Pool) {
				r.Outage = min(r.LongestOutage(), h.rules.Outage).Milliseconds()
			})
		}},
	}},
	{"how long a new holder waits does not rest on a write of a member that the store may forget", []mutant{
		{name: "a member's own outage budget counts where the pool's record has none", kind: lossy, in: unequal, event: func(h *holder, e term.Event) term.Event {
			return repooled(h, e, h.p.Term.Phase, func(r *term.Pool) {
				if r.Outage == 0 {
					r.Outage = h.rules.Outage.Milliseconds()
				}
			})
		}},
	}},
	{"an extension after the time to live is refused by the store, and a late acknowledgement is not used", []mutant{
		{name: "a late extension is acknowledged and used", kind: lossy, behind: neverLate, ignoreWithin: true, in: brisk},
	}},
	{"a worker is taken when its holder is late by any clock", []mutant{
		{name: "a worker is taken from who may be alive", kind: lossy, in: brisk, event: func(_ *holder, e term.Event) term.Event {
			return reclocked(e, func(r *store.Record) { r.Written = r.Written.Add(-time.Hour) })
		}},
		{name: "an operator's release that is forgotten leaves no time", kind: lossy, in: releasing, errand: freed(func(r *term.Record, _ term.Record) { r.TTL = 0 })},
	}},
	{"no grant goes further than the pool's record says", []mutant{
		{name: "an outage budget that the pool's record does not have", kind: shifting, in: unequal, event: func(h *holder, e term.Event) term.Event {
			return repooled(h, e, h.p.Term.Phase, func(r *term.Pool) {
				if !h.p.Term.Lossy && r.Lossy == "" {
					r.Outage = max(r.LongestOutage(), h.rules.Outage).Milliseconds()
				}
			})
		}},
	}},
	{"what one member has seen of the store holds for all", []mutant{
		{name: "a process goes by what it sees itself", kind: shifting, in: shiftingOften, event: func(h *holder, e term.Event) term.Event {
			return repooled(h, e, h.p.Term.Phase, func(r *term.Pool) {
				if h.p.View.Durability.Durable {
					r.Lossy = ""
				}
			})
		}},
		{name: "a late acknowledgement counts without a look at the pool", kind: shifting, in: shiftingOften, ignoreWithin: true, event: func(h *holder, e term.Event) term.Event {
			if h.p.Term.Lossy {
				return e
			}
			return repooled(h, e, term.Holding, func(r *term.Pool) { r.Lossy = "" })
		}},
	}},
}

// neverLate makes an acknowledgement look as if it came in time.
func neverLate(h *holder, boot time.Duration, e term.Event) time.Duration {
	switch e.(type) {
	case term.Wrote, term.Found:
		if h.p.Term.Phase == term.Holding {
			return max(boot-h.p.Term.Since-time.Duration(h.p.Term.Have.TTL)*time.Millisecond, 0)
		}
	}
	return 0
}

// shorten takes a second off the quarantine.
func shorten(h *holder, _ time.Duration, e term.Event) time.Duration {
	if _, ok := e.(term.Found); ok && h.p.Doing.For == term.ConfirmStore {
		return time.Second
	}
	return 0
}

var counterRules = []rule{
	{"a block is used when its write was acknowledged, or found under its own version", []mutant{
		{name: "numbers are used before they are acknowledged", in: counter, unacked: true, put: func(l *lane, do block.Action) block.Action {
			if do.For == block.ToGrant {
				l.draw(l.State.Have.Granted, l.put.Granted)
			}
			return do
		}},
		{name: "a write of the counter is known by its value", in: counter, heard: func(l *lane, a block.Answer) block.Answer {
			if l.doing.For != block.ToSettle || a.Err != nil {
				return a
			}
			r, _ := block.Read(a.Record)
			if l.put.ID != "" && r.Granted == l.put.Granted {
				a.Record.Version = l.tried
			}
			return a
		}},
		{name: "a conflict over the counter is taken for success", in: counter, heard: func(l *lane, a block.Answer) block.Answer {
			if errors.Is(a.Err, store.ErrConflict) && !l.shut {
				return block.Answer{Record: store.Record{Key: counters[0], Version: "?"}}
			}
			return a
		}},
	}},
	{"a tail is handed back after the series is closed for good", []mutant{
		{name: "a tail is handed back while numbers are used", in: counter, put: func(l *lane, do block.Action) block.Action {
			if do.For == block.ToHandBack {
				l.draw(l.put.Granted, l.State.Have.Granted)
			}
			return do
		}},
	}},
	{"a tail is handed back on the version of the own latest grant", []mutant{
		{name: "a tail is handed back whoever has written since", in: counter, blind: func(s *memory, _ *process, _ string, value []byte, _ store.Condition) bool {
			r, _ := block.Read(store.Record{Version: "?", Value: value})
			return r.Granted < s.records[counters[0]].counter.Granted
		}},
	}},
	{"a tail is handed back to the unbroken run of own blocks, and not below", []mutant{
		{name: "a tail is handed back down to an older grant", in: counter, put: func(l *lane, do block.Action) block.Action {
			if l.shut && l.used > 0 && l.put.Granted < l.State.Have.Granted {
				l.put.Granted = l.used
				do.Value = l.put.Encode()
			}
			return do
		}},
	}},
	{"a counter goes on under the instance that it was begun with, looked at after the write", []mutant{
		{name: "the instance is not looked at", kind: lossy, in: counter, heard: func(l *lane, a block.Answer) block.Answer {
			if l.doing.For == block.ToProve || l.doing.For == block.ToLook {
				a.Durability.Instance = l.State.Have.Instance
			}
			return a
		}},
		{name: "the instance is looked at before the Put", kind: lossy, in: counter, heard: func(l *lane, a block.Answer) block.Answer {
			if l.doing.For == block.ToProve {
				a.Durability = l.promised
			}
			return a
		}},
	}},
	{"a counter belongs to one store: a copy of that is refused", []mutant{
		{name: "a copy of the counter's store is not told from it", in: counterTwinning, heard: func(l *lane, a block.Answer) block.Answer {
			if l.doing.Op == record.Ask {
				a.Durability.Identity = "store"
			}
			return a
		}},
	}},
	{"a restored counter is raised above what was granted and forgotten", []mutant{
		{name: "a restored counter is not raised", in: counterRestored, unraised: true},
		{name: "a restored counter is raised from where a tail was handed back to", kind: lossy, in: quiet, scene: handBack, unreached: true},
	}},
}

// draw issues the numbers above one and up to another, which no call has got.
func (l *lane) draw(above, to int64) {
	for n := above + l.put.Stride(); n <= to; n += l.put.Stride() {
		l.w.check.drawn(l.drawer, l.place, n)
	}
}
