// Command copied plays designs that many programs have copied from each other, each as a small
// model in simulated time, until it has repeated an id, and prints how.
//
//	cd bench && go run ./copied
package main

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "copied:", err)
		os.Exit(1)
	}
}

// A design is what somebody published, or what everybody writes.
type design struct {
	name string
	why  string // it repeats
	play func(*stage)
}

var designs = []design{
	{
		"time reported after the fact",
		"a process reports its time every 3 s, and starts where the report is not ahead of its clock; a clock set back by less than 3 s while it was down goes unnoticed",
		reportedTime,
	},
	{
		"lease checked, then the clock read",
		"a process is held up between the two, for longer than its lease; all clocks are right",
		checkedLease,
	},
	{
		"nextval % 1024 beside clock_timestamp",
		"one backend is held up between the two while others draw 1,023 numbers, at less than 1,024 a millisecond; all clocks are right",
		nextvalBesideClock,
	},
	{
		"versions that are counts",
		"a store is restored, and a write made since has the number of one that was forgotten",
		countedVersions,
	},
	{
		"SET NX PX of a worker id",
		"a process is held up for longer than its key lives, and issues before it finds out; all clocks are right",
		expiringWorker,
	},
}

// A stage is where one plays.
type stage struct {
	rng    *rand.Rand
	now    time.Duration
	queue  []event // in the order in which they come
	issued map[int64]string
	sound  bool   // what goes wrong does not: then nothing may repeat
	twice  string // what was issued twice, and by whom; empty: nothing
}

// An event is what happens at a time.
type event struct {
	at time.Duration
	do func()
}

// run plays a design from one seed and returns what it repeated.
func (d *design) run(seed uint64, sound bool) string {
	s := &stage{sound: sound, rng: rand.New(rand.NewPCG(seed, 0x636f7079)), issued: map[int64]string{}}
	d.play(s)
	for range 100_000 { // half a second of the fastest
		if s.twice != "" || len(s.queue) == 0 || s.now > 20*time.Second {
			break
		}
		e := s.queue[0]
		s.queue = s.queue[1:]
		s.now = e.at
		e.do()
	}
	return s.twice
}

func (s *stage) after(d time.Duration, do func()) {
	at := s.now + d
	i, _ := slices.BinarySearchFunc(s.queue, at, func(e event, at time.Duration) int {
		return cmp.Or(cmp.Compare(e.at, at), -1) // behind those of the same time
	})
	s.queue = slices.Insert(s.queue, i, event{at, do})
}

func (s *stage) upTo(d time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(d))) }

// millis is true time, as a tick of 1 ms.
func (s *stage) millis() int64 { return int64(1_700_000_000_000) + s.now.Milliseconds() }

func (s *stage) issue(id int64, by string) {
	if other, again := s.issued[id]; again && s.twice == "" {
		s.twice = fmt.Sprintf("id %d by %s, and id %d by %s", id, other, id, by)
	}
	s.issued[id] = fmt.Sprintf("%s at %s", by, s.now)
}

// An idMaker is the generator of 41 bits of time, 10 of worker and 12 of sequence
// that tutorials have. It refuses a clock that goes back.
type idMaker struct {
	worker, last, seq int64
}

func (m *idMaker) next(millis int64) (id int64, ok bool) {
	switch {
	case millis < m.last:
		return 0, false
	case millis > m.last:
		m.last, m.seq = millis, 0
	default:
		m.seq++
	}
	return (millis-1_600_000_000_000)<<22 | m.worker<<12 | m.seq, m.seq < 4096
}

// reportedTime: each life of a process starts with the time that the last one
// reported, and tests its clock against that.
func reportedTime(s *stage) {
	var reported, back int64
	var life func(n int)
	life = func(n int) {
		clock := func() int64 { return s.millis() - back }
		if clock() < reported {
			s.after(time.Second, func() { life(n) }) // as it should
			return
		}
		by, alive, m := fmt.Sprintf("life %d", n), true, idMaker{worker: 1}
		reported = clock()
		var report, work func()
		report = func() {
			if alive {
				reported = max(reported, clock())
				s.after(3*time.Second, report)
			}
		}
		work = func() {
			if !alive {
				return
			}
			if id, ok := m.next(clock()); ok {
				s.issue(id, by)
			}
			s.after(time.Millisecond, work)
		}
		report()
		work()
		s.after(time.Second+s.upTo(8*time.Second), func() {
			alive = false
			if !s.sound {
				back += s.rng.Int64N(2500) // as a time server does that is right
			}
			s.after(s.upTo(time.Second), func() { life(n + 1) })
		})
	}
	life(1)
}

// checkedLease: whoever holds the lease issues, by a clock that is right.
func checkedLease(s *stage) {
	const ttl = time.Second
	holder, until := "", time.Duration(0)
	for _, name := range []string{"A", "B"} {
		m := idMaker{worker: 1}
		var work func()
		work = func() {
			if s.now >= until { // it is free: by compare-and-set, say
				holder, until = name, s.now+ttl
			}
			if holder != name {
				s.after(10*time.Millisecond+s.upTo(10*time.Millisecond), work)
				return
			}
			if until-s.now < ttl/2 && s.rng.IntN(2) == 0 {
				until = s.now + ttl // extended
			}
			held := time.Duration(0) // between the check and the clock
			if !s.sound && s.rng.IntN(300) == 0 {
				held = s.upTo(3 * ttl) // a collection, a page fault, a machine that is moved
			}
			s.after(held, func() {
				if id, ok := m.next(s.millis()); ok {
					s.issue(id, name)
				}
				s.after(s.upTo(2*time.Millisecond), work)
			})
		}
		s.after(s.upTo(time.Second), work)
	}
}

// nextvalBesideClock is the function that a photo service published for its
// shards: 41 bits of time, 13 of shard, 10 of nextval.
func nextvalBesideClock(s *stage) {
	counter := int64(0)
	for n := range 8 {
		by := fmt.Sprintf("backend %d", n+1)
		var call func()
		call = func() {
			counter++
			seq := counter % 1024 // nextval('table_id_seq') % 1024
			held := 2 * time.Microsecond
			if !s.sound && s.rng.IntN(2000) == 0 {
				held = s.upTo(8 * time.Millisecond) // it has no processor
			}
			s.after(held, func() {
				millis := s.millis() // clock_timestamp()
				s.issue((millis-1_314_220_021_721)<<23|5<<10|seq, by)
				s.after(10*time.Microsecond+s.upTo(20*time.Microsecond), call)
			})
		}
		s.after(s.upTo(time.Millisecond), call)
	}
}

// countedVersions: blocks of 100 numbers are taken by compare-and-set on a version
// that counts the writes. After a restore an operator raises the record far above
// what was forgotten, with everybody cut off.
func countedVersions(s *stage) {
	type record struct{ version, max int64 }
	now := record{1, 0}
	history := []record{now}
	put := func(version int64, limit int64) bool {
		if now.version != version {
			return false
		}
		if version++; s.sound {
			version = s.rng.Int64()
		}
		now = record{version, limit}
		history = append(history, now)
		return true
	}
	for n := range 3 {
		by := fmt.Sprintf("process %d", n+1)
		seen := now
		var work func()
		work = func() {
			if put(seen.version, seen.max+100) {
				for id := now.max - 99; id <= now.max; id++ {
					s.issue(id, by)
				}
			}
			if s.rng.IntN(10) > 0 { // else the answer is lost, and what was known stays
				seen = now
			}
			s.after(s.upTo(200*time.Millisecond), work)
		}
		s.after(s.upTo(200*time.Millisecond), work)
	}
	var restore func()
	restore = func() {
		highest := int64(0)
		for _, r := range history {
			highest = max(highest, r.max)
		}
		now = history[max(len(history)-1-s.rng.IntN(4), 0)]
		put(now.version, highest+10_000)
		s.after(time.Second+s.upTo(time.Second), restore)
	}
	s.after(time.Second, restore)
}

// expiringWorker: SET worker:1 A NX PX 1000, and PEXPIRE every third of that.
func expiringWorker(s *stage) {
	const ttl = time.Second
	owner, until := "", time.Duration(0)
	for _, name := range []string{"A", "B"} {
		var held time.Duration // until then it does nothing at all
		var join, renew, work func()
		mine := false
		m := idMaker{worker: 1}
		join = func() {
			if s.now >= until {
				owner, until, mine = name, s.now+ttl, true
				m = idMaker{worker: 1}
				renew()
				work()
				return
			}
			s.after(ttl/4, join)
		}
		renew = func() {
			switch {
			case s.now < held:
				s.after(held-s.now+s.upTo(ttl/10), renew)
			case owner != name || s.now >= until:
				mine = false
				s.after(ttl/4, join)
			default:
				until = s.now + ttl
				s.after(ttl/3, renew)
			}
		}
		work = func() {
			switch {
			case !mine:
				return
			case s.now < held:
				s.after(held-s.now, work)
				return
			case !s.sound && s.rng.IntN(2000) == 0:
				held = s.now + s.upTo(4*ttl)
			}
			if id, ok := m.next(s.millis()); ok && s.now >= held {
				s.issue(id, name)
			}
			s.after(time.Millisecond, work)
		}
		s.after(s.upTo(ttl), join)
	}
}

// find returns the first seed from which a design repeats, and what.
func (d *design) find(most uint64) (seed uint64, twice string) {
	for seed = 1; seed <= most; seed++ {
		if twice = d.run(seed, false); twice != "" {
			return seed, twice
		}
	}
	return 0, ""
}

// write plays each design until it has repeated an id, and writes down how.
func write(to io.Writer) error {
	for _, d := range designs {
		seed, twice := d.find(1000)
		if twice == "" {
			return fmt.Errorf("%s: no id was repeated", d.name)
		}
		if _, err := fmt.Fprintf(to, "%s\n    %s\n    seed %d: %s\n", d.name, d.why, seed, twice); err != nil {
			return err
		}
	}
	return nil
}
