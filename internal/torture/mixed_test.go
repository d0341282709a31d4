//go:build linux

package torture

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMixed does all harm at once, at random. FIRN_TORTURE is for how long,
// FIRN_TORTURE_SEED the seed of the choices of another run: what is done to whom
// is the same again, but not what the processes were doing at that instant.
func TestMixed(t *testing.T) {
	length, long := asked(t)
	if !long {
		length = 20 * time.Second
		t.Parallel()
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("FIRN_TORTURE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("FIRN_TORTURE_SEED=%d FIRN_TORTURE=%s", seed, length)
	program(t, "holder") // is not to be built on the time of the torture

	m := &mixed{t: t, random: rand.New(rand.NewPCG(seed, 0)), done: map[string]int{}}
	// Fewer workers than processes, and the command's own pool.
	m.world = newWorld(t, with(brisk, []string{
		"-pool", "firn", "-workers", strconv.Itoa(places), "-wait", "1s", "-insist",
		"-hands", "3", "-draw", "mixed", "-batch", "16", "-rate", "300",
	})...)
	for begun := now(); now()-begun < length; m.step++ {
		m.one()
		time.Sleep(time.Duration(m.random.IntN(50)) * time.Millisecond)
	}
	m.heal()
	m.background.Wait()
	m.survey()
	m.world.check(m.commands...)
}

const (
	slots  = 8 // processes at a time
	places = 6 // workers for them
)

// A mixed is a run of TestMixed.
type mixed struct {
	t      *testing.T
	world  *world
	random *rand.Rand
	step   int
	slots  [slots]slot
	lock   *proc
	unlock int // step in which the lock ends

	background sync.WaitGroup // commands that run
	mu         sync.Mutex     // guards the rest
	done       map[string]int
	commands   []Issuer
}

// A slot is where a process runs, and after it another one.
type slot struct {
	proc *proc
	cont int // step in which it is continued; 0: it is not stopped
}

// one does one thing.
func (m *mixed) one() {
	for i := range m.slots {
		if s := &m.slots[i]; s.cont != 0 && s.cont <= m.step {
			s.proc.cont()
			s.cont = 0
		}
	}
	if m.lock != nil && m.unlock <= m.step {
		m.lock.stdin.Close()
		m.lock = nil
	}
	// All that is random is drawn here, so that it does not depend on what was done.
	i, what, length, off := m.random.IntN(slots), m.random.IntN(100), 1+m.random.IntN(60), m.random.Int64N(2_000)
	s := &m.slots[i]
	if s.proc != nil {
		select {
		case <-s.proc.ended:
			*s = slot{}
		default:
		}
	}
	if s.proc == nil {
		m.did("start")
		m.start(i, time.Duration(off-1000)*time.Millisecond)
		return
	}
	switch {
	case what < 15:
		m.did("kill")
		s.proc.kill()
		*s = slot{}
	case what < 20:
		m.did("close")
		s.proc.say("close")
	case what < 50:
		m.did("stop")
		s.proc.signal(syscall.SIGSTOP)
		s.cont = m.step + length
	case what < 70:
		m.did("clock")
		m.shift(s.proc, length, off)
	case what < 75:
		m.did("lock")
		m.hold(length)
	case what < 85:
		m.did("operator's release")
		m.release(length % places)
	case what < 95:
		m.did("rate")
		s.proc.say("rate %d", []int{-1, 0, 100, 300, 2000}[length%5])
	default:
		m.did("command")
		m.next()
	}
}

func (m *mixed) did(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done[what]++
}

func (m *mixed) start(i int, off time.Duration) {
	how := launch{off: off}
	heirs := ""
	if i%2 == 0 { // goes on with the grant of the one before
		heirs = filepath.Join(m.world.dir, fmt.Sprintf("grant-%d", i))
		how.args = []string{"-file", heirs}
	}
	p := m.world.start(how)
	p.heirs = heirs
	m.slots[i].proc = p
}

// shift steps a clock under a process. What a process writes while its clock is
// ahead looks fresh to others for as long, so it never is by much.
func (m *mixed) shift(p *proc, length int, off int64) {
	switch length % 4 {
	case 0:
		p.skew.set(-time.Hour)
	case 1:
		p.skew.set(0)
	default:
		p.skew.set(time.Duration(off-1000) * time.Millisecond)
	}
}

// hold locks the store for some steps.
func (m *mixed) hold(length int) {
	if m.lock == nil {
		m.lock = m.world.locker("immediate")
		m.unlock = m.step + length/4
	}
}

// release takes a worker from its holder.
func (m *mixed) release(worker int) {
	m.command("workers", "release", strconv.Itoa(worker))
}

// next draws ids with the command.
func (m *mixed) next() {
	m.command("next", "-n", "1000", "--wait", "1s")
}

// command runs the command. It may fail, but not fall over.
func (m *mixed) command(args ...string) {
	args = append(args, "--store", "sqlite:"+m.world.path)
	cmd := exec.Command(program(m.t, "firn"), args...)
	m.background.Go(func() {
		out, err := cmd.Output()
		code := cmd.ProcessState.ExitCode()
		if code < 0 || code > 2 { // 2: the worker was never held
			m.t.Errorf("%s: %v", cmd, err)
		}
		m.did(fmt.Sprintf("firn %s: exit code %d", args[0], code))
		if args[0] != "next" {
			return
		}
		runs := parse(m.t, bytes.NewReader(out))
		m.mu.Lock()
		defer m.mu.Unlock()
		m.commands = append(m.commands, Issuer{Name: fmt.Sprintf("command %d", len(m.commands)), Hands: [][]Run{runs}})
	})
}

// heal ends all harm. As many processes as there are workers then have one.
func (m *mixed) heal() {
	if m.lock != nil {
		m.lock.stdin.Close()
	}
	begun := now()
	for i := range m.slots {
		p := m.slots[i].proc
		if p == nil {
			continue
		}
		p.skew.set(0)
		p.cont()
		p.say("rate 300")
	}
	for i := range m.slots {
		if p := m.slots[i].proc; p == nil || p.finished() {
			m.start(i, 0)
		}
	}
	// A process may be in the middle of closing, so that a place is free.
	before := map[*proc]int64{}
	for i := range m.slots {
		before[m.slots[i].proc] = m.slots[i].proc.count()
	}
	eventually(m.t, "everyone goes on for whom there is a worker", func() bool {
		issuing := 0
		for p, n := range before {
			if p.count() >= n+100 || p.finished() {
				issuing++
			}
		}
		return issuing >= places
	})
	m.t.Logf("all was well again after %s", round(now()-begun))
}

func (p *proc) finished() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// survey says what was done and what came of it.
func (m *mixed) survey() {
	m.t.Logf("%d processes in %d steps: %v", len(m.world.procs), m.step, m.done)
	kinds := map[string]int{}
	for _, p := range m.world.procs {
		for _, e := range p.find(0, named(Failed, Refused)) {
			kinds[e.Event+" "+e.Kind]++
			if e.Kind == Forgot || e.Kind == Other {
				m.t.Errorf("%s: %s: %s", p.name, e.Event, e.Text)
			}
		}
		for _, e := range p.find(0, named("garbage")) {
			m.t.Errorf("%s printed %s", p.name, e.Text)
		}
	}
	m.t.Logf("what the processes said: %v", kinds)
}
