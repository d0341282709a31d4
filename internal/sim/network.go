package sim

import (
	"errors"
	"time"

	"github.com/firn-id/firn/store"
)

// A kind says what is asked of the store.
type kind uint8

const (
	get kind = iota
	list
	put
	update
	promise
)

func (k kind) writes() bool { return k == put || k == update }

// A request is one of a process's.
type request struct {
	kind    kind
	key     string // or prefix of a list
	value   []byte
	cond    store.Condition
	version store.Version                      // of a put: it is known to the sender, whatever comes of it
	taking  bool                               // it takes a worker
	change  func(store.Record) ([]byte, error) // of an update: what replaces the record, called once or not at all
}

// A reply is what the sender is told: the truth, or an error that says nothing.
type reply struct {
	rec     store.Record
	list    []store.Record
	promise store.Durability
	tried   store.Version // of a put that may have been sent
	err     error
}

var (
	errTimeout  = errors.New("timeout")
	errReset    = errors.New("connection reset")
	errStopped  = errors.New("context canceled")
	errReplaced = &store.ForgotError{Store: "the file", What: "another one is in its place"}
)

// send carries a process's request to the store and what comes of it back. A
// request arrives once, twice or never; what the sender is told is the truth
// or "unknown". It returns the version of a put.
func (w *world) send(p *process, rq request, patience time.Duration, deliver func(reply)) store.Version {
	w.total.Requests++
	if rq.kind.writes() {
		rq.version = w.newVersion()
	}
	reset := func(after time.Duration) {
		w.after(after, func() { deliver(reply{tried: rq.version, err: errReset}) })
	}
	request, back := w.upTo(w.fast)+time.Microsecond, w.upTo(w.fast)+time.Microsecond
	arrives, answered, twice := true, true, false
	f := &w.faults
	switch roll := w.rng.Float64(); {
	case w.cutOff && !w.wrong.hastens || p.apart > w.now || w.away > w.now:
		// What is sent now gets nowhere; now and then it waits in some buffer.
		arrives, answered = w.chance(0.1) && w.scene == nil, false
		request = w.late()
		if w.chance(0.5) {
			reset(w.upTo(time.Second))
		}
	case w.calm || !f.network || roll > f.loss:
	case roll < f.loss*0.05: // a copy stays behind somewhere
		twice = true
	case roll < f.loss*0.15:
		arrives = w.lost(requestLost)
	case roll < f.loss*0.25:
		arrives = w.lost(requestLost)
		reset(w.upTo(time.Second))
	case roll < f.loss*0.4:
		answered = w.lost(replyLost)
	case roll < f.loss*0.5:
		answered = w.lost(replyLost)
		reset(request + w.upTo(time.Second))
	case roll < f.loss*0.6: // the sender is told at once, the store does it later
		answered, request = w.lost(replyLost), w.late()
		reset(w.upTo(100 * time.Millisecond))
	case roll < f.loss*0.8:
		w.lost(delayed)
		request = w.late()
	case roll < f.loss*0.9:
		w.lost(delayed)
		back = w.upTo(ask)
	default:
		w.lost(delayed)
		request, back = w.upTo(ask), w.upTo(ask)
	}
	if f.takes > 0 && arrives && answered && rq.taking && w.chance(f.takes) {
		w.lost(delayed)
		request = pick(w.rng, w.upTo(ask), w.around(4*ask))
	}
	w.after(patience, func() { deliver(reply{tried: rq.version, err: errTimeout}) })
	if arrives {
		w.carry(p, rq, request, func(r reply) {
			// Who is cut off hears nothing of a store that has gone back.
			if answered && !(w.cutOff && !w.wrong.hastens && (w.wentBack || w.chance(0.7))) {
				w.after(back, func() { deliver(r) })
			}
		})
	}
	if twice {
		w.repeat(p, rq, request+w.late())
	}
	return rq.version
}

// repeat lets a copy of a request arrive. One that a store meets which has
// forgotten the first would be carried out: it is for adapters not to send any.
func (w *world) repeat(p *process, rq request, after time.Duration) {
	w.lost(duplicated)
	st, forgotten := p.store, w.total.Forgotten
	w.after(after, func() {
		if forgotten == w.total.Forgotten {
			st.answer(p, rq)
		}
	})
}

// lost counts a fault of the network, and is false.
func (w *world) lost(k fault) bool {
	w.total.Faults[k]++
	return false
}

// carry carries out a request after a while, and says what came of it.
func (w *world) carry(p *process, rq request, after time.Duration, then func(reply)) {
	life, st := p.life, p.store
	w.after(after, func() {
		if life != p.life && rq.kind.writes() {
			w.total.Faults[posthumous]++
		}
		if p.denied > w.now {
			then(reply{tried: rq.version, err: store.ErrDenied})
			return
		}
		r := st.answer(p, rq)
		w.follow(p, rq, r)
		then(r)
	})
}

// late draws after how long a request arrives that is not lost.
func (w *world) late() time.Duration {
	d := pick(w.rng, w.around(20*time.Millisecond), w.around(time.Second), w.upTo(2*ask), w.around(30*time.Second), w.around(w.rules.TTL))
	if end := w.ends - w.now; d > end {
		d = w.upTo(max(end, time.Second))
	}
	return d
}
