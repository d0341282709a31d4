package pagefile

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/firn-id/firn"
)

// schedules is how many are run. A rule that is missing shows in some hundred, and one in 11,722.
const schedules = 15_000

// A world runs agents and clients as coroutines. Each access to a page, a mark, the store or the path is a step,
// and between two steps anybody else may take any number of steps. One memory for all is sequentially consistent.
type world struct {
	rng    *rand.Rand
	turns  []func() (struct{}, bool)
	stops  []func()
	yield  func(struct{}) bool // of the coroutine that runs
	now    int64
	speed  int64 // nanoseconds a step, at most
	noise  bool  // clocks and offsets say anything
	store  [2]record
	path   *file
	files  []*file
	issued map[firn.ID]string
	wrong  string
	ids    int
	moved  int // times that a process changed to another page
	closes int
}

type record struct {
	owner   int
	horizon firn.Tick
}

type file struct {
	header *Header
	memory Memory
}

func (w *world) fail(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

// errOver is what unwinds a coroutine at the end of its schedule.
var errOver = errors.New("the schedule is over")

func (w *world) step() {
	if !w.yield(struct{}{}) {
		panic(errOver)
	}
}

// words is a memory each access of which is a step.
type words struct {
	w *world
	m map[Word]uint64
}

func (m words) Load(w Word) uint64 {
	m.w.step()
	return m.m[w]
}

func (m words) Store(w Word, v uint64) {
	m.w.step()
	m.m[w] = v
}

func (m words) Swap(w Word, v uint64) uint64 {
	m.w.step()
	old := m.m[w]
	m.m[w] = v
	return old
}

func (m words) CompareAndSwap(w Word, old, v uint64) bool {
	m.w.step()
	if m.m[w] != old {
		return false
	}
	m.m[w] = v
	return true
}

type mark struct {
	w  *world
	is bool
}

func (m *mark) Load() bool {
	m.w.step()
	return m.is
}

func (m *mark) Store(is bool) {
	m.w.step()
	m.is = is
}

// spawn adds a coroutine.
func (w *world) spawn(work func()) {
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if v := recover(); v != nil && v != errOver {
				panic(v)
			}
		}()
		w.yield = yield
		work()
	})
	// Each coroutine has its own yield. The scheduler restores it when it resumes the coroutine.
	var own func(struct{}) bool
	w.turns = append(w.turns, func() (struct{}, bool) {
		if own != nil {
			w.yield = own
		}
		s, more := next()
		own = w.yield
		return s, more
	})
	w.stops = append(w.stops, stop)
}

// run lets the coroutines take turns until none is left, or for so many steps.
func (w *world) run(steps int) {
	for range steps {
		if len(w.turns) == 0 || w.wrong != "" {
			break
		}
		i := w.rng.IntN(len(w.turns))
		for burst := w.rng.IntN(12); burst >= 0; burst-- { // some run long, while others stand still
			if w.rng.IntN(4) == 0 {
				w.now += w.rng.Int64N(w.speed)
			}
			if _, more := w.turns[i](); !more {
				w.turns = append(w.turns[:i], w.turns[i+1:]...)
				w.stops = append(w.stops[:i], w.stops[i+1:]...)
				break
			}
		}
	}
	for _, stop := range w.stops {
		stop()
	}
}

const tick = 100 // nanoseconds

// agent holds a worker, term after term, with a page at the path.
func (w *world) agent(name int) {
	for term := range 3 {
		owner := 100 + name*10 + term
		worker := w.rng.IntN(2)
		w.step()
		rec := &w.store[worker]
		base := rec.horizon
		*rec = record{owner, w.ahead(base)}
		have := rec.horizon
		h := &Header{Tick: tick, Fixed: uint64(worker) << 2, Even: 3, Ahead: 2 * tick, SeqBits: 2, TimeShift: 3, Worker: int64(worker)}
		h.Base = h.Last(base)
		m := words{w, map[Word]uint64{}}
		a := NewAgent(h, m, have)
		w.offsets(m)
		w.step()
		f := &file{h, m}
		w.path, w.files = f, append(w.files, f)
		for range w.rng.IntN(8) {
			want := w.ahead(have)
			w.step()
			if rec.owner != owner {
				break
			}
			rec.horizon, have = want, want
			a.Extend(want)
			w.offsets(m)
			if err := a.Check(w.now); err != nil && !w.noise {
				w.fail("seen: %v", err)
			}
		}
		if w.rng.IntN(3) == 0 {
			continue // killed
		}
		last := a.Close()
		w.closes++
		w.step()
		if rec.owner == owner {
			*rec = record{0, max(base, min(last, have))}
		}
	}
}

// ahead is a horizon above another one, and mostly ahead of the clock.
func (w *world) ahead(of firn.Tick) firn.Tick {
	return max(of+1, firn.Tick(w.now/tick)+firn.Tick(w.rng.IntN(6)))
}

func (w *world) offsets(m Memory) {
	offset := uint64(0)
	if w.noise {
		offset = w.rng.Uint64()
	}
	m.Store(Monotonic, offset)
}

// remote is a holder on another host, which takes a worker and issues all that it may.
func (w *world) remote(name int) {
	for term := range 4 {
		for range w.rng.IntN(60) {
			w.step()
		}
		rec, worker := &w.store[w.rng.IntN(2)], 0
		if rec == &w.store[1] {
			worker = 1
		}
		h := &Header{Tick: tick, Fixed: uint64(worker) << 2, SeqBits: 2, TimeShift: 3}
		base := rec.horizon
		*rec = record{1000 + name*10 + term, base + 2}
		for n := h.Last(base) + 1; n <= h.Last(base+2); n++ {
			w.issue(h.ID(n), "a holder on another host")
		}
	}
}

func (w *world) issue(id firn.ID, by string) {
	if other, ok := w.issued[id]; ok {
		w.fail("repeat: %d by %s and by %s", id, other, by)
	}
	w.issued[id] = by
	w.ids++
}

// A process has threads that take ids from the page at the path.
type process struct {
	w       *world
	name    string
	client  *Client
	highest firn.ID // returned by a call that is over
	busy    bool    // a thread looks at the path
}

func (p *process) open() (c *Client, at *file) {
	p.w.step()
	f := p.w.path
	if f == nil {
		return nil, nil
	}
	return &Client{
		Header: f.header, Memory: f.memory, Left: &mark{w: p.w}, Offset: Monotonic,
		Clock: func() int64 {
			if p.w.noise {
				return p.w.rng.Int64()
			}
			return p.w.now
		},
	}, f
}

// look changes to the page at the path, as page.Source does.
func (p *process) look() {
	if p.busy {
		p.w.step()
		return
	}
	p.busy = true
	defer func() { p.busy = false }()
	next, _ := p.open()
	switch {
	case next == nil, p.client != nil && next.Header == p.client.Header:
		return
	case p.client != nil:
		next.Above = p.client.Leave()
		p.w.moved++
	}
	p.w.step()
	p.client = next
}

func (p *process) thread(calls int) {
	for range calls {
		c := p.client
		if c == nil {
			p.look()
			p.w.step()
			continue
		}
		before := p.highest
		first, last, do := c.Take(1 + uint64(p.w.rng.IntN(3)))
		switch do {
		case Wait:
			p.w.step()
			continue
		case Ended, Shut, Parted:
			p.look()
			continue
		}
		if ahead := int64(last>>2)*tick - p.w.now; !p.w.noise && ahead > c.Ahead {
			p.w.fail("an id is %d ns ahead of the clock", ahead)
		}
		for n := first; n <= last; n++ {
			id := c.ID(n)
			p.w.issue(id, p.name)
			if id <= before && !p.w.noise {
				p.w.fail("order: %s had %d, and got %d", p.name, before, id)
			}
		}
		p.highest = max(p.highest, c.ID(last))
	}
}

// schedule runs one schedule.
func schedule(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 54)), issued: map[firn.ID]string{}, now: 300}
	w.noise = w.rng.IntN(3) == 0
	w.speed = []int64{3, 30, 300}[w.rng.IntN(3)]
	for i := range 1 + w.rng.IntN(2) {
		w.spawn(func() { w.agent(i) })
	}
	w.spawn(func() { w.remote(0) })
	for i := range 1 + w.rng.IntN(3) {
		p := &process{w: w, name: fmt.Sprintf("process %d", i)}
		for range 1 + w.rng.IntN(2) {
			w.spawn(func() { p.thread(30) })
		}
	}
	w.run(1200)
	for _, f := range w.files {
		if word := f.memory.(words).m[Number]; word != Closed && word > f.memory.(words).m[Horizon] && word != f.header.Base {
			w.fail("the word ran away: %d, and the horizon is %d", word, f.memory.(words).m[Horizon])
		}
	}
	return w
}

// TestSchedules runs agents, processes and their threads in random interleavings: no id is issued twice, with any
// clocks; with right ones the ids of a process increase, and none is too far ahead.
func TestSchedules(t *testing.T) {
	ids, moved, closes := 0, 0, 0
	for seed := range uint64(schedules) {
		w := schedule(seed)
		if w.wrong != "" {
			t.Fatalf("schedule %d: %s", seed, w.wrong)
		}
		ids, moved, closes = ids+w.ids, moved+w.moved, closes+w.closes
	}
	t.Logf("%d ids, %d changes to another page, %d closed pages", ids, moved, closes)
	if ids < schedules*5 || moved < schedules/10 || closes < schedules/4 {
		t.Error("the schedules reach too little")
	}
}
