package block_test

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/firn-id/firn/segment/block"
	"github.com/firn-id/firn/store"
)

const key = "segment/world"

var errNoReply = errors.New("no reply")

// A world is one schedule: processes that draw from one counter on one store,
// over a network that loses and delays, with crashes, closes, restores and
// failovers. Its seed says everything.
type world struct {
	rng    *rand.Rand
	mutant *mutant
	lossy  bool // the store forgets by itself, and its instance changes then
	goBack bool // the store is restored, and repaired while everybody is cut off

	now    time.Duration
	events queue
	serial int // of events, so that their order is certain
	procs  []*process

	// The store.
	record   stored
	history  []stored // every record there was on this instance
	instance int
	versions int
	cutOff   bool
	lost     int64 // how far what was granted and forgotten reached above what was kept, all in all

	log     func(format string, args ...any) // nil: none
	issued  map[int64]string                 // by whom
	repeats []string
	drawn   int // numbers issued
	kinds   map[string]int
}

type stored struct {
	version store.Version
	value   []byte
}

type event struct {
	at     time.Duration
	serial int
	do     func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].serial < q[j].serial
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	e := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return e
}

func newWorld(seed uint64, m *mutant) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 1)), mutant: m,
		issued: map[int64]string{}, kinds: map[string]int{},
	}
	switch kind := w.rng.IntN(3); {
	case m.lossy, !m.strict && kind == 1:
		w.lossy = true
	case m.goBack, !m.strict && kind == 2:
		w.goBack = true
	}
	r := block.Record{
		ID: "world", First: 1 + w.rng.Int64N(3), Max: math.MaxInt64, Increment: 1 + w.rng.Int64N(2),
		Step: 1 + w.rng.Int64N(8), Lossy: w.lossy,
	}
	if w.rng.IntN(4) == 0 {
		r.Stores, r.Offset = 3, w.rng.Int64N(3)
	}
	if w.rng.IntN(20) == 0 {
		r.Max = r.First + 60
	}
	if w.lossy && w.rng.IntN(2) == 0 {
		r.Instance = w.promise().Instance // else it was begun on a strict one
	}
	w.write(r.New().Encode())
	for i := range 2 + w.rng.IntN(3) {
		p := &process{w: w, host: i}
		w.procs = append(w.procs, p)
		w.after(w.upTo(50*time.Millisecond), p.boot)
	}
	if w.goBack || w.lossy {
		for range 1 + w.rng.IntN(3) {
			w.after(w.upTo(8*time.Second), w.forget)
		}
	}
	return w
}

// run runs the schedule to its end.
func (w *world) run() {
	for len(w.events) > 0 && w.now < 10*time.Second {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
}

func (w *world) logf(format string, args ...any) {
	if w.log != nil {
		w.log("%s "+format, append([]any{w.now}, args...)...)
	}
}

func (w *world) after(d time.Duration, do func()) {
	w.serial++
	heap.Push(&w.events, event{w.now + max(d, 0), w.serial, do})
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d) + 1)) }
func (w *world) chance(p float64) bool              { return w.rng.Float64() < p }

func (w *world) promise() store.Promise {
	p := store.Promise{Class: store.Strict, Instance: "run " + strconv.Itoa(w.instance)}
	if w.lossy {
		p.Class = store.Lossy
	}
	return p
}

func (w *world) write(value []byte) store.Version {
	w.versions++
	v := store.Version("v" + strconv.Itoa(w.versions))
	if w.mutant.countVersions {
		r, _ := block.Read(store.Record{Value: value, Version: "?"})
		v = store.Version(strconv.FormatInt(r.Writes, 10))
	}
	w.record = stored{v, value}
	w.history = append(w.history, w.record)
	return v
}

func (w *world) counter() block.Record {
	r, err := block.Read(store.Record{Version: w.record.version, Value: w.record.value})
	if err != nil {
		panic(err)
	}
	return r
}

// forget sets the store back by some writes. A lossy one becomes another
// instance and goes on; of a strict one everybody is cut off until it was
// repaired.
func (w *world) forget() {
	w.kinds["forgot"]++
	w.logf("the store forgets")
	lost := 1 + w.rng.IntN(3)
	if w.goBack {
		lost = 1 + w.rng.IntN(12)
	}
	before := w.counter().Granted
	keep := max(len(w.history)-lost, 1)
	w.history = w.history[:keep:keep]
	w.record = w.history[keep-1]
	w.lost += max(before-w.counter().Granted, 0)
	if w.lossy {
		w.instance++
	}
	if w.goBack {
		w.cutOff = true
		for _, p := range w.procs {
			if w.chance(0.5) {
				p.crash()
			}
		}
	}
	w.after(w.upTo(2*time.Second), w.repair)
}

// repair is what segment.Restored does, with a margin that is above what was
// granted and forgotten.
func (w *world) repair() {
	r := w.counter()
	r = r.Raised(r.Reached)
	r.Reached = 0
	to := min(r.Granted+w.lost+r.Stride(), r.Max)
	if w.mutant.unraised {
		to = r.Granted
	}
	r = r.Raised(to)
	if w.lossy {
		r.Instance = w.promise().Instance
	}
	w.write(r.Encode())
	w.logf("repaired: %s", w.record.value)
	w.cutOff = false
}

// A process is a driver of the machine, as simple as one can be.
type process struct {
	w    *world
	host int
	life int

	rules *block.Rules
	s     block.State
	alive bool
	wait  int // serial of the answer that is waited for
	hand  []*hand
	used  int64

	closed   bool
	highest  int64         // ever granted here
	promised store.Promise // before the last Put
	put      block.Record  // that is under way
}

// A hand is a grant that numbers are used of.
type hand struct {
	block.Grant
	taken int64
}

func (p *process) name() string { return fmt.Sprintf("process %d.%d", p.host, p.life) }

func (p *process) boot() {
	if p.alive {
		return
	}
	w := p.w
	if w.cutOff {
		w.after(w.upTo(time.Second), p.boot)
		return
	}
	p.life++
	p.alive, p.closed, p.hand, p.used = true, false, nil, 0
	p.rules = &block.Rules{Name: "world", Key: key, By: p.name()}
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(w.rng.Uint32())
	}
	p.s = block.Start(seed, w.promise(), p.clocks())
	p.promised = w.promise()
	p.idle()
}

func (p *process) clocks() block.Now {
	return block.Now{Wall: time.Unix(1_800_000_000, 0).Add(p.w.now), Boot: p.w.now}
}

// crash ends the process; somebody starts another.
func (p *process) crash() {
	if !p.alive {
		return
	}
	p.alive, p.wait = false, 0
	p.w.kinds["crash"]++
	p.w.after(p.w.upTo(time.Second), p.boot)
}

// idle does what a program does between two requests.
func (p *process) idle() {
	w, life := p.w, p.life
	w.after(w.upTo(40*time.Millisecond), func() {
		if !p.alive || p.life != life || p.closed {
			return
		}
		p.draw()
		switch x := w.rng.Float64(); {
		case x < 0.03:
			p.crash()
		case x < 0.10:
			p.stop()
		case x < 0.2:
			p.idle()
		default:
			take := block.Take{Ahead: w.rng.Int64N(6)}
			if w.chance(0.5) {
				take.Need = w.rng.Int64N(10)
			}
			if w.chance(0.1) {
				take.Need = 30
				take.Least = 30
			}
			p.step(take)
		}
	})
}

// draw issues some numbers in hand.
func (p *process) draw() {
	for n := p.w.rng.IntN(8); n > 0 && len(p.hand) > 0; n-- {
		i := 0
		if p.w.chance(0.1) {
			i = p.w.rng.IntN(len(p.hand)) // as Reserve may
		}
		h := p.hand[i]
		id := h.First + h.taken*h.Stride
		if h.taken++; h.taken == h.Count {
			p.hand = slices.Delete(p.hand, i, i+1)
		}
		p.issue(id)
	}
}

func (p *process) issue(id int64) {
	w := p.w
	w.drawn++
	p.used = max(p.used, id)
	if by, twice := w.issued[id]; twice {
		w.repeats = append(w.repeats, fmt.Sprintf("%d: %s and %s, at %s", id, by, p.name(), w.now))
	}
	w.issued[id] = p.name()
}

// stop closes the process for good and hands back.
func (p *process) stop() {
	p.closed = true
	p.w.kinds["close"]++
	p.step(block.Stop{Used: p.used})
	life := p.life
	p.w.after(5*time.Second, func() {
		if p.life == life {
			p.crash()
		}
	})
}

func (p *process) step(e block.Event) {
	w := p.w
	if f := w.mutant.event; f != nil {
		e = f(p, e)
	}
	s, do := p.s.Step(p.rules, p.clocks(), e)
	p.s = s
	w.logf("%s: %T %+v: op %d %s if %q, grant %v, %v", p.name(), e, e, do.Op, do.Value, do.Cond.Version, do.Grant, do.Err)
	switch {
	case s.Over:
		var forgot *store.ForgotError
		if errors.As(s.Err, &forgot) {
			w.kinds["noticed"]++
		}
		p.hand = nil // nothing in hand may be issued
		p.crash()
	case do.Op == block.None:
		if do.Grant.Count > 0 {
			p.receive(do.Grant)
		}
		if do.Err != nil {
			w.kinds[fmt.Sprintf("%T", do.Err)]++
		}
		p.idle()
	case do.Op == block.Sleep:
		life := p.life
		w.after(do.For, func() {
			if p.alive && p.life == life {
				p.step(block.Woke{})
			}
		})
	default:
		if do.Op == block.Put {
			p.put, _ = block.Read(store.Record{Version: "?", Value: do.Value})
			p.promised = w.promise()
			if f := w.mutant.put; f != nil {
				do = f(p, do)
			}
		}
		w.send(p, do)
	}
	if p.alive && w.mutant.openBack && p.closed && w.chance(0.5) {
		p.draw()
	}
}

func (p *process) receive(g block.Grant) {
	if w := p.w.mutant; w.unacked {
		return // it has them already
	}
	p.hand = append(p.hand, &hand{Grant: g})
	p.highest = max(p.highest, g.Last())
}

// send carries a request to the store, once or never and whenever it likes, and
// tells the sender the truth or nothing.
func (w *world) send(p *process, do block.Action) {
	w.serial++
	ticket := w.serial
	p.wait = ticket
	version := store.Version("")
	reply := func(e block.Event) {
		if p.alive && p.wait == ticket {
			p.wait = 0
			p.step(e)
		}
	}
	request, back := w.upTo(5*time.Millisecond), w.upTo(5*time.Millisecond)
	carried, told := true, true
	switch x := w.rng.Float64(); {
	case x < 0.05:
		carried = false
	case x < 0.12:
		told = false
	case x < 0.16:
		request = w.upTo(3 * time.Second)
	case x < 0.18:
		back = w.upTo(3 * time.Second)
	}
	// The Version of a Put is known to who sends it.
	if do.Op == block.Put {
		w.versions++
		version = store.Version("t" + strconv.Itoa(w.versions))
	}
	if w.chance(0.02) {
		carried, version = false, ""
	}
	w.after(w.upTo(500*time.Millisecond)+100*time.Millisecond, func() {
		reply(block.Unknown{Tried: version, Err: errNoReply})
	})
	if !carried {
		return
	}
	w.after(request, func() {
		if w.cutOff {
			return
		}
		e := w.answer(p, do, version)
		if told {
			w.after(back, func() { reply(e) })
		}
	})
}

// answer does what a request asks.
func (w *world) answer(p *process, do block.Action, v store.Version) block.Event {
	switch do.Op {
	case block.Ask:
		return block.Promised{Promise: w.promise()}
	case block.Get:
		return block.Found{Record: store.Record{Key: key, Value: w.record.value, Version: w.record.version}}
	}
	cond := do.Cond.Version
	if w.mutant.blind != nil && w.mutant.blind(w, do) {
		cond = w.record.version
	}
	if cond != w.record.version {
		w.kinds["conflict"]++
		return block.Conflict{}
	}
	w.write(do.Value)
	if !w.mutant.countVersions {
		w.record.version = v
		w.history[len(w.history)-1] = w.record
	}
	return block.Wrote{Record: store.Record{Key: key, Value: do.Value, Version: w.record.version}}
}
