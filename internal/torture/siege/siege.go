//go:build linux

package siege

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/torture/ledger"
	"github.com/firn-id/firn/pool"
)

// Options of a siege.
type Options struct {
	Store   string        // one of Stores
	For     time.Duration // how long harm is done
	Workers int           // how many processes; there are workers for three quarters of them
	Seed    uint64        // of what is done to whom, and when. What a process does at that instant is not the same again
	Faults  int           // after how many harms it ends, at the latest after For; 0: after For
	Broken  string        // a fault that the processes have, so that ids repeat; see Faults
	Live    *Live         // nil, or what shows how far it is
	Given   *Given        // nil, or the store, which was not started by the siege; Store is not used
}

// Command is what to type to have the same faults again, on these stores.
func (o Options) Command(stores ...string) string {
	which := "-stores " + strings.Join(stores, ",")
	if o.Given != nil {
		which = "-store '" + o.Given.String() + "'"
	}
	text := fmt.Sprintf("go run ./internal/torture %s -workers %d -for %s -seed %d", which, o.Workers, o.For, o.Seed)
	if o.Broken != "" {
		text += " -broken " + o.Broken
	}
	return text
}

// Live is how far a siege is.
type Live struct {
	Begun               atomic.Int64 // by the boot clock, in nanoseconds; 0: harm has not begun
	IDs, Harms, Repeats atomic.Int64
	Doing               atomic.Value // string: the faults of this moment
}

// does tells Live what is done.
func (s *siege) does(what string) {
	if s.Live != nil {
		s.Live.Doing.Store(what)
	}
}

// The faults of operators: the word that a store forgets nothing which does, and the word
// that a pool that was lost never existed, as a hint that offers it has them give.
const (
	Vouched = "vouched"
	Lied    = "lied"
)

// Faults are those that Options.Broken names. The others are those of a process: it has
// two generators for one grant, a store of its own, or extensions that it does not write.
var Faults = []string{"twice", "private", "unwritten", Vouched, Lied}

// A siege is a store and the processes that use it, and what is done to both.
type siege struct {
	Options
	ctx    context.Context
	tb     testing.TB
	random *rand.Rand
	target target
	store  *victim
	world  *world
	slots  []slot
	pool   string
	series string
	places int // for how many of them there is a worker
	deck   *deck
	out    *Outcome

	begun  time.Duration // when harm began
	first  int           // which loss comes first
	losses int           // how many there were
	waited time.Duration // when the last of them that was waited out was over, since harm began

	checked time.Duration // when all ids were compared last
	costs   time.Duration // how long that took

	background sync.WaitGroup // commands that run
	mu         sync.Mutex     // guards the rest
	commands   []Issuer
}

// A slot is where a process runs, and after it another one.
type slot struct {
	proc       *proc
	containers int // how often what it has on its disk was made anew
}

// Run does harm to a store and to processes that use it, for as long as options say or
// until ctx ends, and then looks at all that was issued. What is wrong is in the outcome.
// What it starts ends with tb; it ends tb where it cannot go on.
func Run(ctx context.Context, tb testing.TB, options Options) *Outcome {
	tb.Helper()
	s := &siege{Options: options, ctx: ctx, out: newOutcome(options), random: newRandom(options.Seed)}
	s.tb = &recorder{tb, s.out}
	s.target = options.target()
	program(s.tb, "holder") // is not to be built on the time of the siege
	if ctx.Err() != nil {
		tb.Fatal(context.Cause(ctx))
	}
	s.begin()
	s.begun = now()
	if s.Live != nil {
		s.Live.Begun.Store(int64(s.begun))
	}
	for ctx.Err() == nil && !s.out.bad() {
		l, wait := s.nextLoss()
		if s.over() && (l == nil || s.losses > 0) {
			break
		}
		if l != nil {
			s.lose(l, wait)
		} else {
			s.round()
		}
	}
	s.out.Lasted = now() - s.begun
	s.end()
	return s.out
}

// over reports whether harm was done for as long, or as often, as options say.
func (s *siege) over() bool {
	return now()-s.begun >= s.For || s.Faults > 0 && s.out.faults() >= s.Faults
}

// begin starts the store and the processes.
func (s *siege) begin() {
	s.tb.Helper()
	s.pool, s.series, s.places = pool.Default, "numbers", placesFor(s.Workers, s.target.lossy)
	s.world = newWorld(s.tb, "-insist", "-hands", strconv.Itoa(hands),
		"-outage", budget.String(), "-renew", "300ms")
	if s.Broken != Vouched && s.Broken != Lied {
		s.world.args = append(s.world.args, "-broken", s.Broken)
	}
	s.world.lossy = s.target.lossy
	s.store = s.target.start(s)
	s.world.args = append(s.world.args, "-pool", s.pool)
	s.deck = newDeck(s.store.harms)
	if s.Broken == Lied {
		s.store.losses = slices.DeleteFunc(s.store.losses, func(l loss) bool { return !l.nothing })
	}
	s.first = placeOf(s.Store) + int(s.Seed%60) // not the same for all stores
	if s.target.lossy {
		// Ids come in batches that fill most of a tick: two processes that issue from
		// the same ticks of a worker repeat each other's for sure.
		s.world.args = append(s.world.args, "-ttl", "10s", "-draw", "append", "-batch", "2500", "-rate", "40")
	} else {
		s.world.args = append(s.world.args, "-ttl", "900ms", "-wait", "1s", "-draw", "mixed", "-batch", "16", "-rate", "200", "-series", s.series)
	}
	s.slots = make([]slot, s.Workers)
	for i := range s.slots {
		s.start(i, s.apart())
	}
	s.recovers(now())
	if s.store.save != nil {
		s.store.save()
	}
}

// placesFor is how many workers there are for so many processes: for three quarters of them.
// Where the store is lossy, who comes in another's place waits long enough as it is.
func placesFor(workers int, lossy bool) int {
	if lossy {
		return 2 * workers
	}
	return max(1, workers*3/4)
}

const (
	hands  = 3
	budget = 3 * time.Second // outage budget
)

// apart is how far a process's clock is off when it starts: not at all, for most. Where
// the store is lossy, that is nearly as far as may be.
func (s *siege) apart() time.Duration {
	agrees, off := s.random.IntN(4) > 0, time.Duration(s.random.Int64N(int64(2*time.Second)))-time.Second
	switch {
	case s.target.lossy && off < 0:
		return -mostSkew
	case s.target.lossy:
		return mostSkew
	case agrees:
		return 0
	}
	return off
}

const mostSkew = 4500 * time.Millisecond

// start starts a process in a slot. Those in every other slot have a grant file, and go
// on with the grant of the one before.
func (s *siege) start(i int, off time.Duration) {
	s.tb.Helper()
	how, heirs := launch{off: off}, ""
	if i%2 == 0 {
		heirs = s.grantFile(i)
		how.args = []string{"-file", heirs}
	}
	p := s.world.start(how)
	p.heirs = heirs
	s.slots[i].proc = p
}

func (s *siege) grantFile(slot int) string {
	return fmt.Sprintf("%s/grant-%d-%d", s.world.dir, slot, s.slots[slot].containers)
}

// replace kills a process and starts another.
func (s *siege) replace(i int, off time.Duration) {
	s.tb.Helper()
	s.slots[i].proc.kill()
	s.start(i, off)
}

// A step is the beginning or the end of a harm.
type step struct {
	at   time.Duration
	harm bool // it begins
	do   func()
}

// steps are what is done in a round, in order. Each harm that strikes meets those that last.
func (s *siege) steps(harms []harm) (steps []step) {
	draws := s.drawAll(harms)
	var lasting []string
	for i, h := range harms {
		d, undo := draws[i], func() {}
		steps = append(steps, step{d.after, true, func() {
			s.out.did(h.name)
			s.deck.strikes(h.name, lasting)
			lasting = append(lasting, h.name)
			undo = h.do(s, d)
		}}, step{d.after + d.length, false, func() {
			if at := slices.Index(lasting, h.name); at >= 0 {
				lasting = slices.Delete(lasting, at, at+1)
			}
			undo()
		}})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return steps
}

// A round is some harm, done and undone, and the wait until all is well again.
func (s *siege) round() {
	s.tb.Helper()
	harms := s.deck.deal(s.random)
	steps := s.steps(harms)
	s.does(namesOf(harms))
	places, begun := s.heard(), now()
	for _, st := range steps {
		s.wait(begun + st.at)
		if s.ctx.Err() == nil || !st.harm { // what was done is undone
			st.do()
		}
	}
	ended := now()
	if s.ctx.Err() != nil {
		return
	}
	s.does("recovery")
	name := Several
	if len(harms) == 1 {
		name = harms[0].name
		s.judge(harms[0], places, begun, ended)
	}
	if took, ok := s.recovers(ended); ok {
		s.out.recovered(name, took)
	}
	s.compare()
}

// heard is how much each process has said so far.
func (s *siege) heard() map[*proc]int {
	places := map[*proc]int{}
	for i := range s.slots {
		places[s.slots[i].proc] = s.slots[i].proc.seen()
	}
	return places
}

// wait waits until an instant, or until ctx ends.
func (s *siege) wait(until time.Duration) {
	for now() < until && s.ctx.Err() == nil {
		s.count()
		time.Sleep(min(until-now(), 50*time.Millisecond))
	}
}

// judge looks at what an outage of the store did to the calls for ids.
func (s *siege) judge(h harm, places map[*proc]int, begun, ended time.Duration) {
	if !h.outage {
		return
	}
	failed := false
	for p, place := range places {
		for _, e := range p.find(place, named(ledger.Failed)) {
			if e.Hand >= hands || e.Kind != ledger.Outage || time.Duration(e.Boot) > ended {
				continue
			}
			failed = true
			at := time.Duration(e.Boot) - begun
			// The last extension before is up to a renewal old; on a busy machine it is
			// older, and the horizon nearer. One that comes as late as the time to live
			// counts when the pool's record was read again, and for that the store must
			// not be away yet.
			if left := min(s.world.left(p, e, begun-250*time.Millisecond), p.ownLeft(e)); !s.target.lossy && at < budget-1500*time.Millisecond && left > 500*time.Millisecond {
				s.out.problem("%s: %s: a call fails after %s, with a budget of %s and %s before the horizon: %s\n%s",
					h.name, p.name, round(at), budget, round(left), e.Text, p.story())
			}
		}
	}
	s.out.Longest = max(s.out.Longest, ended-begun)
	if failed {
		s.out.Beyond++
	} else {
		s.out.Survived = max(s.out.Survived, ended-begun)
	}
}

// left is how long it was from an event of p's to the horizon that it had been granted
// by an instant.
func (w *world) left(p *proc, at ledger.Event, by time.Duration) time.Duration {
	granted := p.find(0, func(e ledger.Event) bool { return e.Event == ledger.Granted && time.Duration(e.Boot) <= by })
	if len(granted) == 0 {
		return 0
	}
	wall := time.Now().Add(time.Duration(at.Boot) - now() + p.skew.get())
	return w.layout.Time(granted[len(granted)-1].Horizon).Sub(wall)
}

// ownLeft is how long a process itself had to its horizon at an event, when it said last that
// the store is away. It may have taken a write for lost that the store acknowledged late.
func (p *proc) ownLeft(at ledger.Event) time.Duration {
	away := p.find(0, func(e ledger.Event) bool {
		return e.Event == ledger.Changed && e.Phase == "holding" && e.Degraded && e.Boot <= at.Boot
	})
	if len(away) == 0 {
		return time.Duration(math.MaxInt64)
	}
	last := away[len(away)-1]
	return time.Duration(last.Boot-at.Boot) + time.Duration(last.LeftMS)*time.Millisecond
}

// recovers waits until everybody for whom there is a worker issues, and has had the store
// extend its grant, since an instant. It returns how long that took.
func (s *siege) recovers(since time.Duration) (took time.Duration, ok bool) {
	s.tb.Helper()
	before := map[*proc]int64{}
	fine := func(p *proc) bool {
		n, seen := before[p]
		return seen && p.count() > n && (s.Broken != "" || p.extendedSince(since))
	}
	for deadline := time.Now().Add(2 * patience); s.ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		well := 0
		for i := range s.slots {
			p := s.slots[i].proc
			if p.finished() || len(s.world.eras) > 0 && p.stopped() {
				s.replace(i, 0) // as whoever watches over a program would
				continue
			}
			if _, seen := before[p]; !seen {
				before[p] = p.count()
			} else if fine(p) {
				well++
			}
		}
		s.count()
		if well >= min(s.places, len(s.slots)) {
			return now() - since, true
		}
		if time.Now().After(deadline) {
			s.out.problem("after %s only %d of %d processes issue again", 2*patience, well, len(s.slots))
			for i := range s.slots {
				if p := s.slots[i].proc; !fine(p) {
					s.out.problem("%s, with %d ids, %d before, said lately:\n%s", p.name, p.count(), before[p], p.story())
				}
			}
			return 0, false
		}
	}
	return 0, false
}

// stopped reports whether the process has stopped for good.
func (p *proc) stopped() bool {
	return len(p.find(0, func(e ledger.Event) bool { return e.Event == ledger.Changed && e.Phase == "forgotten" })) > 0
}

// extendedSince reports whether the store has acknowledged something to the process since
// an instant.
func (p *proc) extendedSince(since time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.events) - 1; i >= 0 && time.Duration(p.events[i].Boot) > since; i-- {
		if p.events[i].Event == ledger.Granted {
			return true
		}
	}
	return false
}

// count tells Live how far it is.
func (s *siege) count() {
	if s.Live == nil {
		return
	}
	var ids int64
	for _, p := range s.world.procs {
		ids += p.count()
	}
	s.Live.IDs.Store(ids)
	s.Live.Harms.Store(int64(s.out.faults()))
}

// compare looks for repeats now and then, and takes a twentieth of the time for it.
func (s *siege) compare() {
	if since := now() - s.checked; since < 5*time.Second || since < 20*s.costs {
		return
	}
	s.checked = now()
	s.look(s.world.soFar())
	s.costs = now() - s.checked
}

// end ends the processes, and looks at all that was issued.
func (s *siege) end() {
	s.tb.Helper()
	s.background.Wait()
	if s.Given != nil {
		s.giveBack()
	}
	all := s.world.gather()
	if s.Given != nil {
		var err error
		if s.out.Stays, err = s.Given.stays(); err != nil {
			s.out.problem("what stays in %s: %v", s.Given, err)
		}
	}
	s.survey()
	r := s.look(all)
	s.count()
	s.out.Processes, s.out.Workers, s.out.Terms = len(s.world.procs), r.Workers, r.Terms
	s.out.IDs, s.out.Numbers = r.IDs, r.Numbers
	s.out.Pairs = s.deck.pairs()
	s.out.Order = OrderOf(s.world.layout, all)
	right := slices.DeleteFunc(all, func(i Issuer) bool { return i.Off })
	s.out.Agreed = OrderOf(s.world.layout, right)
}

// look looks at ids.
func (s *siege) look(issuers []Issuer) *Report {
	s.mu.Lock()
	r := Check(s.world.layout, append(issuers, s.commands...))
	s.mu.Unlock()
	s.out.Repeats = r.Repeated
	if s.Live != nil {
		s.Live.Repeats.Store(r.Repeated)
	}
	told := map[*proc]bool{}
	for _, text := range r.Problems {
		s.out.problem("%s", text)
		for _, p := range s.world.procs {
			if !told[p] && slices.Contains(strings.Fields(text), p.name) {
				told[p] = true
				s.out.problem("%s said lately:\n%s", p.name, p.story())
			}
		}
	}
	return r
}

// survey looks at what the processes said.
func (s *siege) survey() {
	for _, p := range s.world.procs {
		for _, e := range p.find(0, named(ledger.Failed, "garbage")) {
			// Who has lost a worker and does not reach the store fails with what that says.
			strange := e.Kind == ledger.Other && s.Store == "sqlite"
			if e.Kind == ledger.Forgot {
				strange = !s.target.lossy && !s.world.outlived(p, e)
			}
			if e.Event == "garbage" || strange {
				s.out.problem("%s: %s %s: %s", p.name, e.Event, e.Kind, e.Text)
			}
		}
	}
}

// A recorder is a test whose errors are problems of the outcome.
type recorder struct {
	testing.TB
	out *Outcome
}

func (r *recorder) Log(...any)                        {}
func (r *recorder) Logf(string, ...any)               {}
func (r *recorder) Error(args ...any)                 { r.out.problem("%s", fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.out.problem(format, args...) }

func (r *recorder) TempDir() string {
	dir, err := testserver.MakeDir("torture")
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
