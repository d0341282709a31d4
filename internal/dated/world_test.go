package dated

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A world is some processes with drawers, a store, and a network between, in
// simulated time. What happens follows from its seed.
type world struct {
	setup
	rng *rand.Rand
	now time.Duration // since the beginning
	due events

	start   time.Time     // of the store's clock
	ahead   time.Duration // of the store's clock, by steps
	steps   []step
	records map[string]store.Record
	writes  int
	history []store.Record // what the last writes replaced, for a store that forgets
	run     int            // of the store, its instance

	procs  []*process
	issued map[string]bool
	counts map[string][]int64 // by period
	burned int                // counts lost because the store's clock was set meanwhile
	errs   map[string]int
	faults []string
}

// A setup is what kind of world it is.
type setup struct {
	zone    string
	pattern string
	from    time.Time
	days    int
	calls   int // near each midnight, and half as many in between
	procs   int
	step    int64
	clock   bool // the store has one
	stepped bool // its clock is set now and then, and the processes'
	lost    int  // of 1000 messages, and as many crashes of 10000 calls
	lossy   bool // the store forgets now and then
	raise   int64
	mutant  mutant
}

// A mutant breaks a rule around the drawer.
type mutant struct {
	name   string
	action func(*world, *process, Action) Action
	answer func(*world, *process, Action, record.Answer) record.Answer
	stored func(*world, string) // after a write
}

type step struct {
	at            time.Duration
	before, after time.Time
}

// A process has one drawer and makes one call at a time.
type process struct {
	w       *world
	id      int
	d       *drawer // nil: it is starting
	ahead   time.Duration
	steps   []step
	booted  time.Duration
	begun   time.Duration // of the call
	want    int64
	busy    bool
	asked   bool // a counter was read or written for the call
	life    int  // changes with each crash, so that late answers reach nobody
	pending int  // calls that wait

	// For mutants.
	before string        // instance at the last write
	lost   block.Span    // what the last write was to grant whose outcome was unknown
	tried  store.Version // of that write
}

type event struct {
	at  time.Duration
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

func newWorld(s setup, seed uint64) *world {
	w := &world{
		setup: s, rng: rand.New(rand.NewPCG(seed, 7)), start: s.from,
		records: map[string]store.Record{}, issued: map[string]bool{}, counts: map[string][]int64{}, errs: map[string]int{},
	}
	for i := range s.procs {
		w.procs = append(w.procs, &process{w: w, id: i})
	}
	return w
}

func (w *world) after(d time.Duration, do func()) {
	w.writes++
	heap.Push(&w.due, event{w.now + d, w.writes, do})
}

func (w *world) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf("%s: ", w.clockTime().UTC().Format(time.RFC3339Nano))+fmt.Sprintf(format, args...))
}

// clockTime is what the store's clock says.
func (w *world) clockTime() time.Time { return w.start.Add(w.now + w.ahead) }

// play lets the calls of all days happen.
func (w *world) play() {
	zone, err := time.LoadLocation(w.zone)
	if err != nil {
		panic(err)
	}
	date := func(t time.Time) int { return t.In(zone).YearDay() }
	for day := range w.days {
		noon := w.from.AddDate(0, 0, day)
		// The next midnight: where the local date changes.
		var midnight time.Duration
		for h := time.Duration(0); h < 36*time.Hour; h += time.Minute {
			if date(noon.Add(h)) != date(noon.Add(h+time.Minute)) {
				midnight = noon.Sub(w.from) + h + time.Minute
				break
			}
		}
		for range w.calls {
			near := time.Duration(w.rng.Int64N(int64(6*time.Second))) - 3*time.Second
			if w.rng.IntN(3) == 0 {
				near /= 20
			}
			w.call(midnight + near)
		}
		for range w.calls / 2 {
			w.call(noon.Sub(w.from) + time.Duration(w.rng.Int64N(int64(24*time.Hour))))
		}
		if w.stepped && w.rng.IntN(4) == 0 {
			w.setClocks(midnight)
		}
		if w.lossy && w.rng.IntN(5) == 0 {
			at := midnight + time.Duration(w.rng.Int64N(int64(8*time.Second))) - 4*time.Second
			w.after(at, w.failOver)
			w.after(at+time.Duration(w.rng.Int64N(int64(4*time.Second))), w.restore)
			w.after(at+time.Minute, w.restore)
		}
	}
	for len(w.due) > 0 && len(w.faults) == 0 {
		e := heap.Pop(&w.due).(event)
		w.now = e.at
		e.do()
	}
}

// setClocks sets the store's clock near midnight and puts it right later, and a
// process's.
func (w *world) setClocks(midnight time.Duration) {
	by := time.Duration(w.rng.Int64N(int64(8*time.Second))) - 4*time.Second
	if w.rng.IntN(3) == 0 {
		by *= 20000 // days
	}
	at := midnight + time.Duration(w.rng.Int64N(int64(4*time.Second))) - 2*time.Second
	set := func(by time.Duration) func() {
		return func() {
			before := w.clockTime()
			w.ahead += by
			w.steps = append(w.steps, step{w.now, before, w.clockTime()})
		}
	}
	w.after(at, set(by))
	w.after(at+time.Duration(w.rng.Int64N(int64(3*time.Second))), set(-by))
	p := w.procs[w.rng.IntN(len(w.procs))]
	w.after(at, func() { p.set(p.ahead + by) })
}

// call lets a process make a call.
func (w *world) call(at time.Duration) {
	w.after(max(at, 0), func() {
		p := w.procs[w.rng.IntN(len(w.procs))]
		p.pending++
		p.next()
	})
}

// set sets a process's clock.
func (p *process) set(ahead time.Duration) {
	before := p.clocks().Wall
	p.ahead = ahead
	p.steps = append(p.steps, step{p.w.now, before, p.clocks().Wall})
}

func (p *process) clocks() Instant {
	return Instant{p.w.start.Add(p.w.now + p.ahead), p.w.now - p.booted}
}

// next begins the next call.
func (p *process) next() {
	w := p.w
	if p.busy || p.pending == 0 {
		return
	}
	p.pending--
	p.busy = true
	p.begun, p.want, p.asked = w.now, 1+w.rng.Int64N(3), false
	if w.lost > 0 && w.rng.IntN(10000) < w.lost {
		p.d = nil // it was killed and starts again
		p.life++
		p.set(time.Duration(w.rng.Int64N(int64(time.Second))))
		p.booted = w.now
	}
	if p.d != nil && p.d.ready(p.clocks()) {
		p.use()
		return
	}
	if p.d == nil {
		p.open()
		return
	}
	p.perform(p.d.begin(p.clocks(), p.want, 1))
}

// rules are those of every process.
func (w *world) rules() Rules {
	r := Rules{Name: "s", Max: 999_999, Step: w.step, Lossy: w.lossy}
	if strings.Contains(w.pattern, "yyyy") {
		r.Date = &Forms[0]
		r.Zone, _ = time.LoadLocation(w.zone)
	}
	return r
}

// open does what Open does; the definition is written by the first.
func (p *process) open() {
	w := p.w
	r := w.rules()
	rec := w.get(Key("s"))
	if rec.Version == "" {
		def := Definition{V: record.Format, ID: "one", Pattern: w.pattern, Zone: w.zone, Instance: w.durability().Instance}
		rec, _ = w.put(Key("s"), record.Encode(def), store.Condition{}, store.NewVersion())
		w.history = nil // nobody forgets that the series began
	}
	def, err := record.Read[Definition](rec)
	if err != nil {
		panic(err)
	}
	if w.lossy && def.Instance != w.durability().Instance {
		p.ended(&Refusal{Why: OtherInstance})
		return
	}
	d := newDrawer(r, def, w.durability(), p.clocks())
	p.d = &d
	p.perform(p.d.begin(p.clocks(), p.want, 1))
}

// perform sends an action over the network.
func (p *process) perform(do Action) {
	w := p.w
	if do.Op == record.None {
		p.ended(p.d.err)
		return
	}
	p.asked = p.asked || do.is == toRead || do.is == toGrant
	if w.mutant.action != nil {
		do = w.mutant.action(w, p, do)
	}
	if do.Pause > 0 {
		w.after(time.Duration(w.rng.Int64N(int64(do.Pause))), p.sent(do))
		return
	}
	p.sent(do)()
}

func (p *process) sent(do Action) func() {
	w, life := p.w, p.life
	version := store.NewVersion()
	request, reply := w.delay(), w.delay()
	reach := func(a record.Answer) {
		w.after(reply, func() {
			if p.life != life {
				return
			}
			if w.mutant.answer != nil {
				a = w.mutant.answer(w, p, do, a)
			}
			next := p.d.answer(p.clocks(), do, a)
			if do.Op == record.Put && a.Err == nil && p.d.proof.Left() <= 0 && p.d.hand.Left() <= 0 {
				w.burned += int(do.grant.Left())
			}
			p.perform(next)
		})
	}
	unknown := record.Answer{Record: store.Record{Version: version}, Err: errors.New("no reply")}
	return func() {
		if w.rng.IntN(1000) < w.lost {
			switch w.rng.IntN(3) {
			case 0: // the request is lost
				reach(unknown)
			case 1: // the reply is
				w.after(request, func() { w.answerOf(do, version); reach(unknown) })
			case 2: // the request is late
				reach(unknown)
				w.after(time.Duration(w.rng.Int64N(int64(5*time.Second))), func() { w.answerOf(do, version) })
			}
			return
		}
		w.after(request, func() { reach(w.answerOf(do, version)) })
	}
}

func (w *world) delay() time.Duration {
	d := time.Duration(w.rng.Int64N(int64(5 * time.Millisecond)))
	if w.rng.IntN(50) == 0 {
		d += time.Duration(w.rng.Int64N(int64(2 * time.Second)))
	}
	return d
}

// answerOf carries an action out in the store.
func (w *world) answerOf(do Action, version store.Version) (a record.Answer) {
	switch do.Op {
	case record.Get:
		a.Record = w.get(do.Key)
	case record.Put:
		a.Record, a.Err = w.put(do.Key, do.Value, do.Cond, version)
	case record.Ask:
		a.Durability = w.durability()
	}
	return a
}

func (w *world) get(key string) store.Record {
	rec := w.records[key]
	rec.Key = key
	if w.clock {
		rec.Read = w.clockTime()
	} else {
		rec.Written = time.Time{}
	}
	return rec
}

func (w *world) put(key string, value []byte, cond store.Condition, version store.Version) (store.Record, error) {
	if w.records[key].Version != cond.Version {
		return store.Record{}, store.ErrConflict
	}
	if w.lossy {
		old := w.records[key]
		old.Key = key
		w.history = append(w.history, old)
		if len(w.history) > 4 {
			w.history = w.history[1:]
		}
	}
	w.records[key] = store.Record{Key: key, Value: slices.Clone(value), Version: version, Written: w.clockTime()}
	if w.mutant.stored != nil {
		w.mutant.stored(w, key)
	}
	return w.get(key), nil
}

func (w *world) durability() store.Durability {
	if w.lossy {
		return store.Durability{Durable: false, Instance: fmt.Sprint("run ", w.run)}
	}
	return store.Durability{Durable: true}
}

// failOver lets another instance answer, which lacks the last writes. It keeps
// what no more than four writes changed, so at most that many grants are lost.
func (w *world) failOver() {
	for range 1 + w.rng.IntN(4) {
		n := len(w.history)
		if n == 0 {
			break
		}
		switch old := w.history[n-1]; {
		case old.Key == Key("s"):
		case old.Version == "":
			delete(w.records, old.Key)
		default:
			w.records[old.Key] = old
		}
		w.history = w.history[:n-1]
	}
	w.history = nil
	w.run++
}

// restore is the operator's.
func (w *world) restore() {
	rec := w.get(Key("s"))
	if rec.Version == "" {
		return
	}
	def, err := record.Read[Definition](rec)
	if err != nil {
		panic(err)
	}
	if def.Instance == w.durability().Instance {
		return
	}
	r := w.rules()
	now := w.clockTime()
	if !w.clock {
		now = w.start.Add(w.now)
	}
	def = def.Recovered(w.raise, r.Through(now), w.durability())
	if _, err := w.put(Key("s"), record.Encode(def), store.Condition{Version: rec.Version}, store.NewVersion()); err != nil {
		panic(err)
	}
}

// ended is the end of a call.
func (p *process) ended(err error) {
	w := p.w
	if err != nil {
		name := fmt.Sprintf("%T", err)
		if no, ok := err.(*Refusal); ok {
			name = fmt.Sprint(no.Why)
		}
		w.errs[name]++
		p.busy = false
		p.next()
		return
	}
	p.use()
}

// use gives out what is in hand, and looks whether it is right.
func (p *process) use() {
	w := p.w
	g := p.d.deal(p.want)
	for c := g.Next; c <= g.Last; c++ {
		text := fmt.Sprint(g.Period, "-", c)
		if w.issued[text] {
			w.fault("%s was given out twice", text)
		}
		w.issued[text] = true
		w.counts[g.Period] = append(w.counts[g.Period], c)
	}
	if g.Left() <= 0 {
		w.fault("neither numbers nor an error")
	}
	if dates := p.dates(); g.Left() > 0 && !slices.Contains(dates, g.Period) {
		w.fault("process %d gave out %s of %s, and from %s to %s it was %s", p.id, fmt.Sprint(g.Next), g.Period, p.begun, w.now, strings.Join(dates, ", "))
	}
	if short := p.want - g.Left(); short > 0 {
		p.want = short
		p.perform(p.d.begin(p.clocks(), p.want, 1))
		return
	}
	p.busy = false
	p.next()
}

// dates are those of the store's clock during the call: by package time's own
// calendar, in the way the pattern of these tests has them.
func (p *process) dates() []string {
	w := p.w
	if p.d.Date == nil {
		return []string{""}
	}
	from := p.begun
	if !p.asked || !w.clock { // what was in hand
		from -= sightFor
	}
	at := func(t time.Time) string {
		y, m, d := t.In(p.d.Zone).Date()
		return fmt.Sprintf("%04d%02d%02d", y, m, d)
	}
	now, steps := w.clockTime(), w.steps
	if !w.clock {
		now, steps = p.clocks().Wall, p.steps
	}
	dates, begun := []string{at(now)}, now.Add(from-w.now)
	for _, s := range slices.Backward(steps) {
		if s.at < from {
			break
		}
		dates = append(dates, at(s.before), at(s.after))
		begun = begun.Add(s.before.Sub(s.after))
	}
	return append(dates, at(begun))
}

// check runs a world, and reports what went wrong.
func check(t *testing.T, s setup, seed uint64) *world {
	t.Helper()
	w := newWorld(s, seed)
	w.play()
	for _, f := range w.faults {
		t.Errorf("seed %d, %+v\n%s", seed, s, f)
	}
	return w
}
