//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/torture/ledger"
)

// A throttle is the rate of all hands.
type throttle struct {
	mu      sync.Mutex
	rate    int
	changed chan struct{}
}

func newThrottle(rate int) *throttle { return &throttle{rate: rate, changed: make(chan struct{})} }

func (t *throttle) set(rate int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rate = rate
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *throttle) get() (rate int, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rate, t.changed
}

// atOnce is done: with it an id is given at once or not at all.
var atOnce = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// A hand draws ids, one after the other.
type hand struct {
	n      int
	ids    firn.Source
	rate   *throttle
	pen    *ledger.Pen
	draw   string
	buf    []firn.ID
	failed string // kind of the last error, while calls fail
	closed *atomic.Bool
}

func newHand(set *settings, n int, ids firn.Source, rate *throttle) *hand {
	h := &hand{n: n, ids: ids, rate: rate, closed: &set.closed, pen: ledger.NewPen(set.ledger, n, ledger.Boot), draw: set.draw}
	h.buf = make([]firn.ID, 0, set.batch)
	if h.draw == "mixed" {
		h.draw = []string{"next", "append", "try"}[n%3]
	}
	return h
}

// newNumbersHand returns the hand that draws from a series. It is the last one.
func newNumbersHand(set *settings, numbers firn.Source, rate *throttle) *hand {
	h := newHand(set, set.hands, numbers, rate)
	h.pen, h.draw = ledger.NewPen(ledger.Numbers(set.ledger), 0, ledger.Boot), "next"
	return h
}

// run draws until the lease was given back. Errors it takes for what may pass,
// final or not: whatever comes after is written down too.
func (h *hand) run() {
	rate, changed := h.rate.get()
	for {
		select {
		case <-changed:
			rate, changed = h.rate.get()
		default:
		}
		if rate == 0 {
			<-changed
			continue
		}
		begun := time.Now()
		err := h.once()
		if !errors.Is(err, context.Canceled) { // by atOnce: neither well nor ill
			h.report(err)
		}
		if err != nil && h.closed.Load() {
			return
		}
		switch pause := time.Second / time.Duration(max(rate, 1)); {
		case err != nil:
			time.Sleep(200 * time.Microsecond)
		case rate > 0:
			time.Sleep(pause - time.Since(begun))
		}
	}
}

// once draws an id, or a batch, and writes down what it got, error or not.
func (h *hand) once() (err error) {
	h.buf = h.buf[:0]
	h.pen.Begin()
	switch h.draw {
	case "next":
		var id firn.ID
		if id, err = h.ids.Next(context.Background()); err == nil {
			h.buf = append(h.buf, id)
		}
	case "try":
		var id firn.ID
		if id, err = h.ids.Next(atOnce); err == nil {
			h.buf = append(h.buf, id)
		}
	case "append":
		h.buf, err = h.ids.Append(context.Background(), h.buf, cap(h.buf))
	default:
		panic("what is " + h.draw)
	}
	for _, id := range h.buf {
		if err := h.pen.Write(id); err != nil {
			panic(fmt.Sprintf("the ledger: %v", err))
		}
	}
	return err
}

// report says so when calls begin to fail, or to succeed.
func (h *hand) report(err error) {
	k := ""
	if err != nil {
		k = kind(err)
	}
	if k == h.failed {
		return
	}
	h.failed = k
	if k == "" {
		say(ledger.Event{Event: ledger.Fine, Hand: h.n})
		return
	}
	say(ledger.Event{Event: ledger.Failed, Hand: h.n, Kind: k, Text: err.Error()})
}
