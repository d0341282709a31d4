package term_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// A script plays terms by hand, against a store that answers at once. Time
// passes only where an actor sleeps, or the script says so.
type script struct {
	*testing.T
	rules    term.Rules
	store    *memory.Store
	time     time.Duration // since start; what every boot clock says
	blind    bool          // the store has no clock
	durable  bool
	identity string // that it says it has
	actors   uint64
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newScript has a pool of 16 workers on a durable store with a clock.
func newScript(t *testing.T) *script {
	x := &script{T: t, rules: term.Default("pool", firn.Default(), store.Durability{}), durable: true}
	x.store = memory.NewClock(x.instant)
	x.write(term.KeyPool("pool"), pool("one", firn.Default(), 0).Encode())
	x.workers(0, 16)
	return x
}

func newLossyScript(t *testing.T) *script {
	x := newScript(t)
	x.durable = false
	x.write(term.KeyPool("pool"), lossyPool(firn.Default()).Encode())
	return x
}

func pool(id string, l firn.Layout, floor firn.Tick) term.Pool {
	return term.Pool{V: 1, ID: id, Layout: l.String(), Workers: fmt.Sprintf("0-%d", l.Workers()-1), Floor: floor, Outage: 300_000}
}

// workers changes the range of the pool.
func (x *script) workers(first, count int64) {
	x.Helper()
	p := x.pool()
	p.Workers = term.Range{First: first, Last: first + count - 1}.String()
	x.write(term.KeyPool("pool"), p.Encode())
}

// unasked makes the pool one whose members have not said yet how far their grants reach.
func (x *script) unasked() {
	x.Helper()
	p := x.pool()
	p.Outage = 0
	x.write(term.KeyPool("pool"), p.Encode())
}

// count is how many workers the pool has.
func (x *script) count() int64 {
	r, err := x.pool().Range(x.rules.Layout)
	if err != nil {
		x.Fatal(err)
	}
	return r.Count()
}

func lossyPool(l firn.Layout) term.Pool {
	p := pool("one", l, 0)
	p.Outage, p.Lossy = 3000, "long ago"
	return p
}

// begin begins with what the store promises now.
func (x *script) begin() term.Begin {
	return term.Begin{View: term.View{Durability: x.promise(), Asked: x.time, Known: true}}
}

func (x *script) promise() store.Durability {
	return store.Durability{Durable: x.durable, Why: "test", Identity: x.identity}
}

func (x *script) instant() time.Time { return start.Add(x.time) }

// tick is the one d after the start of the script.
func (x *script) tick(d time.Duration) firn.Tick { return x.rules.Layout.Tick(start.Add(d)) }

func (x *script) read(key string) store.Record {
	rec, err := x.store.Get(context.Background(), key)
	if err != nil {
		x.Fatal(err)
	}
	return rec
}

// write puts a value, whatever is there.
func (x *script) write(key string, value []byte) {
	x.Helper()
	_, err := x.store.Put(context.Background(), key, value, store.Condition{Version: x.read(key).Version})
	if err != nil {
		x.Fatal(err)
	}
}

func (x *script) worker(n int64) term.Record {
	r, err := term.ReadRecord(x.read(term.KeyWorker("pool", n)))
	if err != nil {
		x.Fatal(err)
	}
	return r
}

func (x *script) setWorker(n int64, r term.Record) {
	r.V = 1
	x.write(term.KeyWorker("pool", n), r.Encode())
}

// An actor is a process with a term.
type actor struct {
	*script
	name  string
	rules term.Rules // its own copy
	ahead time.Duration
	s     term.State
	do    term.Action
}

// actor returns one that has not begun.
func (x *script) actor(name string) *actor {
	x.actors++
	a := &actor{script: x, name: name, rules: x.rules}
	a.s = term.Start(a.seed(), name, "")
	return a
}

func (a *actor) seed() (b [32]byte) {
	a.actors++
	binary.BigEndian.PutUint64(b[:], a.actors)
	return b
}

func (a *actor) now() term.Now { return term.Now{Wall: a.instant().Add(a.ahead), Boot: a.time} }

func (a *actor) step(e term.Event) *actor {
	a.s, a.do = a.s.Step(&a.rules, a.now(), e)
	return a
}

// perform does what is to be done, and returns what comes of it.
func (a *actor) perform() term.Event {
	a.Helper()
	ctx := context.Background()
	switch do := a.do; do.Op {
	case term.Get:
		return term.Found{Record: a.dim(a.read(do.Key))}
	case term.List:
		list, err := a.store.List(ctx, do.Key)
		if err != nil {
			a.Fatal(err)
		}
		for i := range list {
			list[i] = a.dim(list[i])
		}
		return term.Listed{Records: list}
	case term.Put:
		rec, err := a.store.Put(ctx, do.Key, do.Value, do.Cond)
		if errors.Is(err, store.ErrConflict) {
			return term.Conflict{}
		} else if err != nil {
			a.Fatal(err)
		}
		return term.Wrote{Record: a.dim(rec)}
	case term.Ask:
		return term.Promised{Durability: a.promise()}
	case term.Sleep:
		a.time = max(a.time, do.Until)
		return term.Woke{}
	}
	a.Fatalf("%s: nothing to do in phase %s: %v", a.name, a.s.Phase, a.s.Err)
	return nil
}

// dim takes the store's clock away from a record, where it has none.
func (x *script) dim(rec store.Record) store.Record {
	if x.blind {
		rec.Written, rec.Read = time.Time{}, time.Time{}
	}
	return rec
}

// answer performs what is to be done, and tells.
func (a *actor) answer() *actor {
	a.Helper()
	return a.step(a.perform())
}

// until goes on until one of the phases, at most 10,000 actions.
func (a *actor) until(phases ...term.Phase) *actor {
	a.Helper()
	if a.do.Op == term.None && !a.s.Over() {
		a.step(a.begin())
	}
	for range 10_000 {
		if slices.Contains(phases, a.s.Phase) {
			return a
		}
		if a.s.Over() {
			a.Fatalf("%s: %s, not %v: %v", a.name, a.s.Phase, phases, a.s.Err)
		}
		a.answer()
	}
	a.Fatalf("%s: still %s", a.name, a.s.Phase)
	return nil
}

// pending goes on until a Put of this phase is to be sent.
func (a *actor) pending(phase term.Phase) *actor {
	a.Helper()
	a.until(phase)
	for a.do.Op != term.Put {
		a.answer()
		a.is(phase)
	}
	return a
}

func (a *actor) is(phase term.Phase) *actor {
	a.Helper()
	if a.s.Phase != phase {
		a.Fatalf("%s: %s, not %s: %v", a.name, a.s.Phase, phase, a.s.Err)
	}
	return a
}

// does checks what is to be done.
func (a *actor) does(op term.Op, key string) *actor {
	a.Helper()
	if a.do.Op != op || a.do.Key != key {
		a.Fatalf("%s: to do: %s %q, not %s %q; phase %s: %v", a.name, ops[a.do.Op], a.do.Key, ops[op], key, a.s.Phase, a.s.Err)
	}
	return a
}

// fails checks why the term is over.
func (a *actor) fails(phase term.Phase, text string) *actor {
	a.Helper()
	a.is(phase)
	if a.s.Err == nil || a.s.Err.Error() != text {
		a.Fatalf("%s: %v\nwant: %s", a.name, a.s.Err, text)
	}
	if a.do.Op != term.None {
		a.Fatalf("%s: over, and to do: %s", a.name, ops[a.do.Op])
	}
	return a
}

// sent is the record that a Put under way would write.
func (a *actor) sent() term.Record {
	a.Helper()
	if a.do.Op != term.Put {
		a.Fatalf("%s: to do: %s", a.name, ops[a.do.Op])
	}
	r, err := term.ReadRecord(store.Record{Key: a.do.Key, Value: a.do.Value, Version: "sent"})
	if err != nil {
		a.Fatal(err)
	}
	return r
}

// pass lets time pass.
func (x *script) pass(d time.Duration) { x.time += d }

var errAway = errors.New("away")

var ops = [...]string{"nothing", "get", "list", "put", "ask", "sleep"}
