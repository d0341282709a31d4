package term_test

import (
	"errors"
	"time"

	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

// ask is how long a process waits for one request at most, as package lease does.
const ask = 5 * time.Second

var (
	errTimeout = errors.New("timeout")
	errReset   = errors.New("connection reset")
)

// send carries a process's request to the store and what comes of it back. A
// request is carried out once, or never; what the sender is told is the truth
// or "unknown".
func (w *world) send(p *process, do term.Action) {
	w.requests++
	p.requests.count(w, p)
	reply := p.await(do)
	request, back := w.upTo(w.fast)+time.Microsecond, w.upTo(w.fast)+time.Microsecond
	arrives, answered := true, true
	f := &w.faults
	switch roll := w.rng.Float64(); {
	case w.cutOff || p.apart > w.now || w.away > w.now:
		// What is sent now gets nowhere; now and then it waits in some buffer.
		arrives, answered = w.chance(0.1) && w.mutant.scene == nil, false
		request = w.late()
		if w.chance(0.5) {
			w.after(w.upTo(time.Second), func() { reply(term.Unknown{Err: errReset}) })
		}
	case w.calm || !f.network || roll > f.loss:
	case roll < f.loss*0.15:
		arrives = false
	case roll < f.loss*0.25:
		arrives = false
		w.after(w.upTo(time.Second), func() { reply(term.Unknown{Err: errReset}) })
	case roll < f.loss*0.4:
		answered = false
	case roll < f.loss*0.5:
		answered = false
		w.after(request+w.upTo(time.Second), func() { reply(term.Unknown{Err: errReset}) })
	case roll < f.loss*0.6: // the sender is told at once, the store does it later
		answered, request = false, w.late()
		w.after(w.upTo(100*time.Millisecond), func() { reply(term.Unknown{Err: errReset}) })
	case roll < f.loss*0.8:
		request = w.late()
	case roll < f.loss*0.9:
		back = w.upTo(ask)
	default:
		request, back = w.upTo(ask), w.upTo(ask)
	}
	if f.takes > 0 && arrives && answered && p.s.Phase == term.Taking && do.Op == term.Put && w.chance(f.takes) {
		request = pick(w.rng, w.upTo(ask), w.around(4*ask))
	}
	w.after(p.patience(), func() { reply(term.Unknown{Err: errTimeout}) })
	if !arrives {
		return
	}
	life, restores := p.life, w.restores
	w.after(request, func() {
		if do.Op == term.Put && do.Key == term.KeyPool(w.rules.Pool) && do.Cond.Version == "" && restores != w.restores {
			// A pool founded by a request that outlives a restore has its floor
			// from before, and nobody looks at the store's again. That is a
			// limit of the rules, not of this world.
			return
		}
		e := w.store.answer(p, do)
		if w.mutant.name == "" || life == p.life {
			w.follow(p, do, e)
		}
		// Who is cut off hears nothing of a store that has gone back.
		if answered && !(w.cutOff && (w.wentBack || w.chance(0.7))) {
			w.after(back, func() { reply(e) })
		}
	})
}

// late draws after how long a request arrives that is not lost.
func (w *world) late() time.Duration {
	d := pick(w.rng, w.around(20*time.Millisecond), w.around(time.Second), w.upTo(2*ask), w.around(30*time.Second), w.around(w.rules.TTL))
	if end := w.lasts - w.now; d > end {
		d = w.upTo(max(end, time.Second))
	}
	return d
}

// answer does what a request asks.
func (s *simStore) answer(by *process, do term.Action) term.Event {
	switch do.Op {
	case term.Get:
		return term.Found{Record: s.get(do.Key)}
	case term.Ask:
		return term.Promised{Promise: s.promise(by)}
	case term.List:
		return term.Listed{Records: s.list(do.Key)}
	}
	rec, err := s.put(by, do.Key, do.Value, do.Cond)
	if errors.Is(err, store.ErrConflict) {
		return term.Conflict{}
	}
	return term.Wrote{Record: rec}
}
