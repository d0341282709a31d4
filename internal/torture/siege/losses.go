//go:build linux

package siege

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/torture/ledger"
	"github.com/firn-id/firn/store/open"
)

// A loss is what befalls the store while processes issue from it. Somebody then types what
// the errors say, word by word. After that the ids of the pool start later than all that
// was ever granted, about five minutes.
type loss struct {
	name string
	do   func(s *siege)

	// silent: a process that starts may not notice. Then docs/guides/stores.md has everybody
	// stopped before, and "firn store recover" typed after.
	silent bool

	// nothing is left of the pool.
	nothing bool

	// keepsWorkers: holders go on, as their workers' records are there.
	keepsWorkers bool
}

// How long losses are dealt before the end, and how long one takes that is waited out.
const (
	lastLosses = 30 * time.Second
	waitedOut  = 6 * time.Minute
	longForm   = 7 * time.Minute
)

// nextLoss returns the loss that is due, if one is. At the end they follow on each other:
// the ids of the pool do not start before the siege has ended. In a siege of seven minutes
// or more some come before, and are waited out.
func (s *siege) nextLoss() (l *loss, wait bool) {
	n := len(s.store.losses)
	if n == 0 {
		return nil, false
	}
	at := now() - s.begun
	last := s.For-at <= min(s.For/4, lastLosses) || s.over() || s.Broken == Lied
	wait = !last && s.Faults == 0 && s.For >= longForm && s.For-at > waitedOut && at-s.waited > lastLosses
	if !last && !wait {
		return nil, false
	}
	return &s.store.losses[(s.first+s.losses)%n], wait
}

// The commands that stand before a program where a container starts.
var (
	createsPool = []string{"pool", "create", "--new"}
	ensuresPool = []string{"pool", "ensure"}
)

// come starts a process in a slot as a container does: with its grant file, or fresh, and
// after what stands before it in an entrypoint or an init container. Whether that worked
// does not count: "|| true".
func (s *siege) come(i int, off time.Duration, before []string, fresh bool) {
	s.tb.Helper()
	if fresh {
		s.slots[i].containers++
	}
	if before != nil {
		ctx, stop := context.WithTimeout(context.Background(), budget)
		defer stop()
		cmd := exec.CommandContext(ctx, program(s.tb, "firn"), append(slices.Clone(before), s.pool, "--store", s.store.url)...)
		cmd.SysProcAttr = ownGroup()
		_ = cmd.Run()
	}
	s.start(i, off)
}

// container is a harm to a process that comes again as a container does.
func container(name string, before []string, fresh bool) harm {
	return harm{name: name, length: time.Second, do: func(s *siege, d draw) func() {
		s.slots[d.slot].proc.kill()
		return func() {
			s.slots[d.slot].proc.kill() // another fault may have started one meanwhile
			s.come(d.slot, d.off, before, fresh)
		}
	}}
}

var containerHarms = []harm{
	container("container starts fresh", nil, true),
	container("create in an entrypoint", createsPool, false),
	container("ensure in an init container", ensuresPool, true),
}

// lose has the store lose something, and then somebody who does what the errors say. The
// processes go on meanwhile, unless they are to be stopped; one sleeps through it, and half
// of them may come anew before something is typed.
func (s *siege) lose(l *loss, wait bool) {
	s.tb.Helper()
	s.does(l.name)
	s.out.did(l.name)
	s.losses++
	random := rand.New(rand.NewPCG(s.Seed, uint64(s.losses)))
	before := s.entrypoint(random)
	s.store.cut()
	s.era()
	old := make([]*proc, len(s.slots))
	for i := range s.slots {
		old[i] = s.slots[i].proc
	}
	asleep := old[len(old)-1]
	s.stopBetweenWrites(asleep)
	stop := func() {
		for i := range len(old) - 1 { // nobody knows of the one that sleeps
			s.slots[i].proc.kill()
		}
	}
	first := draws
	if l.silent {
		first = "firn store recover"
		stop()
	}
	l.do(s)
	forgot := now()
	if s.Broken == "" && before != nil && !s.remains() {
		before = ensuresPool // nobody can refuse to create it
	}
	come := func(from int, fresh bool) {
		for i := from; i < len(s.slots); i++ {
			beside := s.slots[i].proc == asleep
			if !beside {
				s.slots[i].proc.kill()
			}
			s.come(i, s.apart(), before, fresh || beside)
		}
	}
	if !l.silent && random.IntN(2) == 0 {
		s.store.mend()
		come(len(old)/2, random.IntN(2) == 0)
	}
	o := s.operator(random, stop)
	o.follow(first)
	s.store.mend()
	starts := s.startsLate(l, o)
	if !l.keepsWorkers {
		last := &s.world.eras[len(s.world.eras)-1]
		last.forgot, last.cured = forgot, now()
	}
	asleep.cont()
	s.stopForGood(old)
	if s.Broken != "" || s.ctx.Err() != nil {
		return
	}
	if !s.target.lossy {
		o.drawsFrom(s.series)
	}
	s.out.types(o.typed)
	read := newReader(s.world.layout)
	_, top := read.span(append(s.world.soFar(), s.commands...))
	// Where a pool was lost, its grant files are removed: the help of store recover.
	come(0, true)
	if wait {
		s.waitOut(l, starts, top)
	}
}

// stopBetweenWrites stops a process. A process that is stopped while it writes to a file of SQLite keeps all others from
// writing, also the operator: it continues for a moment, and is stopped again.
func (s *siege) stopBetweenWrites(p *proc) {
	p.signal(syscall.SIGSTOP)
	for deadline := now() + patience; s.store.held != nil && s.store.held() && now() < deadline; p.signal(syscall.SIGSTOP) {
		p.cont()
		time.Sleep(20 * time.Millisecond)
	}
}

// entrypoint draws what stands before a program.
func (s *siege) entrypoint(random *rand.Rand) []string {
	if s.Broken == Lied {
		return createsPool
	}
	return [][]string{nil, createsPool, ensuresPool}[random.IntN(3)]
}

// remains reports whether the store has anything of the pool. Of a file, that is known
// without a look, and a look may be refused.
func (s *siege) remains() bool {
	if s.target.name == "sqlite" {
		return true
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	st, err := open.URL(ctx, s.store.url)
	if err != nil {
		s.tb.Fatal(err)
	}
	defer st.Close()
	list, err := st.List(ctx, "pool/"+s.pool)
	if err != nil {
		s.tb.Fatal(err)
	}
	return len(list) > 0
}

// startsLate looks at when the pool's ids start, and returns it.
func (s *siege) startsLate(l *loss, o *operator) time.Time {
	at, ok := o.starts()
	most, by := s.world.highest()
	if !ok || !at.After(most) {
		s.out.problem("%s: after %q ids start at %s, and %s was granted up to %s", l.name, o.typed, at, by, most)
		return at
	}
	s.world.eras[len(s.world.eras)-1].tick = s.world.layout.Tick(at) - 1
	return at
}

// highest is the last instant that a process was ever granted.
func (w *world) highest() (at time.Time, by string) {
	for _, p := range w.procs {
		for _, e := range p.find(0, named(ledger.Granted)) {
			if h := w.layout.Time(e.Horizon + 1); h.After(at) {
				at, by = h, p.name
			}
		}
	}
	return at, by
}

// operator is somebody who has just heard that something is wrong.
func (s *siege) operator(random *rand.Rand, stop func()) *operator {
	return &operator{
		tb: s.tb, url: s.store.url, home: s.tb.TempDir(), choose: random.IntN, lies: s.Broken == Lied,
		stop: stop, numbers: s.numbers,
		drew: func(ids Issuer) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.commands = append(s.commands, ids)
		},
	}
}

// numbers is more than has been given out of the series, or is in a process's hand.
func (s *siege) numbers() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var top firn.ID
	note := func(runs []ledger.Run) {
		for _, r := range runs {
			top = max(top, r.Last())
		}
	}
	for _, p := range s.world.procs {
		note(p.numbers())
	}
	for i := range s.commands {
		note(s.commands[i].Numbers)
	}
	return int64(top) + 100*block.DefaultMaxUnused
}

// waitOut waits until ids start, and everybody issues again: above all ids of before.
func (s *siege) waitOut(l *loss, starts time.Time, top firn.Tick) {
	s.tb.Helper()
	s.does(fmt.Sprintf("%s: ids start at %s", l.name, starts.Format(time.TimeOnly)))
	s.wait(now() + time.Until(starts))
	s.does("recovery from: " + l.name)
	took, ok := s.recovers(now())
	if !ok {
		return
	}
	s.out.recovered(l.name, took)
	s.waited = now() - s.begun
	read := newReader(s.world.layout)
	for i := range s.slots {
		p := s.slots[i].proc
		if first, last := read.span([]Issuer{{Hands: p.runs()}}); last > 0 && first <= top {
			s.out.problem("%s: %s issued at tick %d, and an id of before has tick %d", l.name, p.name, first, top)
		}
	}
	s.compare()
}

// span returns the lowest and the highest tick of ids; 0 and 0 where there are none.
func (d *reader) span(issuers []Issuer) (first, last firn.Tick) {
	for i := range issuers {
		for _, runs := range issuers[i].Hands {
			for _, r := range runs {
				_, low := d.of(r.First)
				_, high := d.of(r.Last())
				if last == 0 || low < first {
					first = low
				}
				last = max(last, high)
			}
		}
	}
	return first, last
}
