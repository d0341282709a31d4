package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A setup is what a world is made of. It is drawn from the seed.
type setup struct {
	kind     storeKind
	leases   bool // processes hold workers
	series   bool // they draw from a counter
	rules    term.Rules
	faults   faults
	first    int64 // worker of the pool, or of the first of several,
	workers  int64 // and how many it has to begin with
	pools    int   // how many there may be
	procs    int
	fast     time.Duration // of a request, each way, at most
	lasts    time.Duration // until faults are over
	every    time.Duration // between two faults, on average
	long     time.Duration // the longest pauses and outages, on average
	issues   time.Duration // between two ids that a process wants, on average
	think    time.Duration // between two takes of numbers
	patience time.Duration // with a store that is asked for numbers
	founded  bool          // the first pool is there already
	named    bool          // the store says of itself which one it is
	unequal  bool          // members want different outage budgets
	fresh    bool          // every process wants a fresh worker
	layout2  bool          // every other process has another layout
	lanes    int           // of the counter, each with a store of its own
	updates  bool          // the counter's store can read and write at once
	begins   bool          // the first process that draws from the counter creates it
	last     bool          // the layout ends half-way through
	held     bool          // some processes hold workers for other programs
	lives    bool          // goes on after faults are over, until everybody has a worker
	known    bool          // faults may follow what the store has just done
	grace    time.Duration // a process that has no worker for so long, when it could, is stuck
	maxSpeed float64       // requests per process and second in the long run

	scene func(*world) // takes the place of faults; nil: none does
	wrong wrong

	documents bool  // processes give out texts of a series of documents,
	template  bool  // or of names of a template,
	calendar  int   // as this calendar has them,
	cache     int64 // with so many counts granted by a write,
	most      int64 // and so many in a period
}

type storeKind int

const (
	clocked  storeKind = iota // durable, with a clock
	blind                     // durable, without
	embedded                  // durable, on the clock of the one host
	lossy                     // forgets, with a clock
	lossyBlind
	shifting // durable and lossy by turns, and not to everybody alike; with a clock
)

func (k storeKind) String() string {
	return [...]string{"durable", "durable without a clock", "embedded", "lossy", "lossy without a clock", "shifting"}[k]
}

func (k storeKind) lossy() bool { return k >= lossy }
func (k storeKind) clock() bool { return k != blind && k != lossyBlind }

// Layouts with ticks from the shortest to the longest.
var layouts = []firn.Layout{
	firn.MustLayout("time:52@1us,worker:6,seq:5;epoch=2025-01-01T00:00:00Z"),
	firn.Default(),
	firn.MustLayout("time:39@10ms,seq:8,worker:16;epoch=2025-01-01T00:00:00Z"),
	firn.MustLayout("time:32@1s,worker:12,seq:19;epoch=2025-01-01T00:00:00Z"),
	firn.MustLayout("time:20@1h,worker:10,seq:33;epoch=2025-01-01T00:00:00Z"),
}

// layoutOfOthers is one that a pool of firn.Default() does not have: the ids of its
// worker 0 are those of the pool's workers 0 to 31.
var layoutOfOthers = firn.MustLayout("time:41@1ms,worker:5,seq:17;epoch=2025-01-01T00:00:00Z")

// anySetup draws what a schedule is made of.
func anySetup(rng *rand.Rand) setup {
	kind := pick(rng, clocked, clocked, clocked, blind, embedded, lossy, lossy, lossyBlind, shifting, shifting)
	s := drawSetup(rng, kind)
	if kind == shifting { // a counter is not for a store that says to others that it forgets
		return s
	}
	switch n := rng.IntN(20); {
	case n < 2:
		s.counting(rng)
	case n < 5:
		s.series = true
		s.think, s.founded = s.lasts/60, true
		s.faults.drop, s.faults.unpool, s.faults.twins = false, false, false
	case n < 6:
		s.documenting(rng)
		return s
	case n < 8:
		s.documents, s.calendar, s.cache, s.most = true, rng.IntN(3), pick[int64](rng, 1, 5), math.MaxInt64
		s.think, s.founded = s.lasts/60, true
		s.faults.drop, s.faults.unpool, s.faults.twins = false, false, false
	}
	if f := &s.faults; s.series && !f.restore && !f.forget && !f.drop && !f.remove && !f.twins {
		f.uncount = rng.IntN(3) == 0
		s.begins = !f.uncount && rng.IntN(3) == 0
	}
	if s.series && !s.begins && !s.faults.uncount && rng.IntN(4) == 0 {
		s.lanes = 2 + rng.IntN(2)
	}
	return s
}

// counting makes it a schedule of a counter alone: much happens in little time.
func (s *setup) counting(rng *rand.Rand) {
	s.leases, s.series = false, true
	s.procs = 2 + rng.IntN(3)
	s.lasts, s.every = pick(rng, 2*time.Second, 5*time.Second), pick(rng, 50*time.Millisecond, 100*time.Millisecond, 300*time.Millisecond)
	s.rules.TTL, s.rules.Outage, s.long = time.Second, time.Second, 2*time.Second
	s.think, s.patience, s.fast = 20*time.Millisecond, 500*time.Millisecond, 5*time.Millisecond
	f := &s.faults
	f.network, f.loss = true, pick(rng, 0.1, 0.2, 0.4)
	f.kills, f.closes, f.clocks, f.drop, f.files, f.reboots, f.copies, f.disks, f.release = true, true, false, false, false, false, false, false, false
	f.ranges, f.unpool, f.twins = false, false, s.named && !f.restore && rng.IntN(10) == 0
	f.caches, f.settles = rng.IntN(3) == 0, s.kind.lossy() && rng.IntN(4) == 0
	s.pools, s.updates = 1, !s.kind.lossy() && rng.IntN(3) == 0
}

func drawSetup(rng *rand.Rand, kind storeKind) setup {
	layout := pick(rng, layouts...)
	r := defaultRules(kind, layout)
	first, workers := drawRules(rng, &r)
	if kind == shifting || kind.lossy() && rng.IntN(2) == 0 { // the same in less time
		quick(&r)
		r.Skew = pick(rng, 200*time.Millisecond, time.Second)
		r.Outage = pick(rng, time.Second, 3*time.Second, 6*time.Second)
	}
	s := setup{
		kind: kind, rules: r, first: first, workers: workers, pools: 1, lanes: 1, procs: pick(rng, 2, 2, 3, 3, 4, 4, 6, 8), founded: rng.Float64() < 0.9, known: rng.IntN(2) == 0,
		fast:  pick(rng, 2*time.Millisecond, 20*time.Millisecond, 500*time.Millisecond),
		lasts: pick(rng, 3*time.Second, 5*time.Second, 5*time.Second, 10*time.Second, 10*time.Second, 20*time.Second, 40*time.Second),
		every: pick(rng, 300*time.Millisecond, time.Second, 4*time.Second),
		lives: rng.IntN(60) == 0, leases: true, patience: ask,
	}
	switch rng.IntN(600) {
	case 0:
		s.lasts, s.every, s.lives = 10*time.Minute, 5*time.Second, true
	case 1:
		s.lasts, s.every = 30*time.Minute, 20*time.Second
	}
	if kind.lossy() { // a new holder waits before it issues
		s.lasts = s.quarantine() + pick(rng, 4*time.Second, 10*time.Second, 20*time.Second, 40*time.Second)
		s.every = pick(rng, time.Second, 3*time.Second, 6*time.Second)
	}
	if s.fast > 100*time.Millisecond {
		s.rules.Wait, s.rules.Renew = max(s.rules.Wait, 2*time.Second), max(s.rules.Renew, 2*time.Second)
		s.rules.TTL = max(s.rules.TTL, 2*s.rules.Renew)
		s.rules.Outage = max(s.rules.Outage, 6*time.Second)
		if kind.lossy() { // who is late with the first extension loses the worker: it is the fourth request
			s.rules.Reach = max(s.rules.Reach, 5*time.Second)
			s.rules.TTL = max(s.rules.TTL, s.rules.Reach)
		}
	}
	if kind.lossy() && layout.Unit() == time.Second { // a quarantine ends with a tick
		s.rules.Wait = max(s.rules.Wait, layout.Unit())
	}
	s.faults = drawFaults(rng, kind)
	s.layout2 = s.founded && layout == firn.Default() && rng.IntN(10) == 0
	s.unequal = rng.IntN(3) == 0
	s.drawPools(rng)
	if r.Layout.Unit() == time.Hour && rng.IntN(100) == 0 { // long enough to see ticks pass
		scale(&s.rules, 60)
		s.lasts, s.every, s.lives = pick(rng, time.Hour, 2*time.Hour), pick(rng, 10*time.Second, time.Minute), false
		s.procs, s.workers = 2, 1+rng.Int64N(3)
	}
	s.timing()
	return s
}

// lastSetup draws schedules in which the layout ends.
func lastSetup(rng *rand.Rand) setup {
	s := anySetup(rng)
	s.last, s.layout2 = s.leases, false
	return s
}

// heldSetup draws schedules in which workers are held for other programs: as lease.Hold has it,
// clocks agree within the bound, and no program is paused.
func heldSetup(rng *rand.Rand) setup {
	s := anySetup(rng)
	s.held, s.faults.pauses = s.leases, false
	return s
}

// poolSetup draws schedules in which something is done to pools as such.
func poolSetup(rng *rand.Rand) setup {
	for {
		s := anySetup(rng)
		f := &s.faults
		if s.leases && (f.ranges || f.unpool || f.twins || f.drop || !s.founded) {
			return s
		}
	}
}

// drawPools draws what is done to pools as such.
func (s *setup) drawPools(rng *rand.Rand) {
	f, some := &s.faults, rng.IntN(4) == 0
	s.named = s.kind != embedded && rng.IntN(2) == 0
	switch {
	case s.workers > 16 || s.kind == shifting:
	case some:
		f.ranges, s.pools = true, 1+rng.IntN(3)
	case rng.IntN(10) == 0 && !s.kind.lossy() && s.kind != embedded && !f.restore:
		f.unpool = true
	case rng.IntN(10) == 0 && s.named:
		// Who goes on with a grant file on a copy, which did not answer at first, extends
		// before it asks which store that is: a limit, see docs/reference/guarantees.md.
		f.twins, f.files, f.copies, f.disks = true, false, false, false
	}
}

// defaultRules are those of a member where the store is of a kind.
func defaultRules(kind storeKind, layout firn.Layout) term.Rules {
	r := term.Default("pool", layout, store.Durability{LocalClock: kind == embedded, NoticesLoss: kind == embedded})
	r.Outage = term.OutageDurable
	if kind.lossy() {
		r.Outage = term.OutageLossy
	}
	return r
}

// quarantine is for how long a new holder waits at most.
func (s *setup) quarantine() time.Duration {
	if s.kind.lossy() {
		return max(s.rules.Outage, term.OutageLossy) + 2*s.rules.Skew // less, where the pool is created with less
	}
	return 0
}

// drawRules varies the rules of a pool, and draws its range.
func drawRules(rng *rand.Rand, r *term.Rules) (first, workers int64) {
	workers = 1 + rng.Int64N(4)
	switch rng.IntN(10) {
	case 0:
		first = 2
	case 1:
		if r.Layout.Workers() > 4096 { // looked up at random, not listed
			workers = r.Layout.Workers()
		}
	}
	if rng.IntN(2) == 0 {
		r.Outage = pick(rng, time.Second, 3*time.Second, 20*time.Second, time.Minute)
	}
	if rng.IntN(3) == 0 {
		r.Renew = pick(rng, 500*time.Millisecond, 2*time.Second, 5*time.Second)
		r.TTL = r.Renew * time.Duration(2+rng.IntN(3))
	}
	if rng.IntN(3) == 0 {
		r.Wait = pick(rng, 100*time.Millisecond, time.Second, 20*time.Second)
	}
	r.Look = pick(rng, time.Second, 5*time.Second, time.Minute)
	if rng.IntN(3) == 0 {
		r.Borrow = pick(rng, 0, time.Second)
	}
	return first, workers
}

// drawFaults chooses kinds of fault: a schedule that has few of them goes deeper.
func drawFaults(rng *rand.Rand, kind storeKind) faults {
	some := func() bool { return rng.IntN(2) == 0 }
	f := faults{
		network: some(), loss: pick(rng, 0.02, 0.1, 0.4), pauses: some(), kills: some(), closes: some(),
		clocks: some(), cuts: some(), release: some(),
		files: rng.IntN(4) == 0, choices: rng.IntN(5) == 0, reboots: rng.IntN(8) == 0,
	}
	f.copies = f.files && some()
	f.damages, f.denies = rng.IntN(5) == 0, rng.IntN(6) == 0
	f.disks = f.files && rng.IntN(3) == 0
	switch {
	case kind == shifting:
		f.forget, f.shift, f.takes = true, true, pick(rng, 0, 0, 0.3)
		f.restore = rng.IntN(4) == 0
	case kind.lossy():
		f.forget, f.takes = rng.IntN(4) > 0, pick(rng, 0, 0, 0.3)
	default:
		f.restore = rng.IntN(3) == 0
		f.remove = kind == embedded && rng.IntN(4) == 0
		f.drop = kind != embedded && !f.restore && rng.IntN(5) == 0
	}
	return f
}

// scale makes everything in a pool slower.
func scale(r *term.Rules, by time.Duration) {
	for _, d := range []*time.Duration{&r.Reach, &r.Outage, &r.Renew, &r.TTL, &r.Skew, &r.Wait, &r.Look} {
		*d *= by
	}
}

// timing works out what follows from the rest of a setup.
func (s *setup) timing() {
	r := &s.rules
	s.issues = s.every / 2
	s.long = 2 * (r.Outage + s.quarantine())
	s.grace = r.Wait + r.TTL + s.quarantine() + lapse + 4*ask
	if s.kind.lossy() {
		s.grace += 2 * r.Skew
	}
	s.maxSpeed = 4
	if s.faults.forget { // whenever it does a worker is lost
		s.maxSpeed = 6
	}
	if s.workers > 4096 {
		s.maxSpeed = 100
	}
}
