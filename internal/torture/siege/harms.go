//go:build linux

package siege

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A harm is done to a process or to the store, and undone.
type harm struct {
	name   string
	part   part          // what it is done to
	outage bool          // the store is away meanwhile
	first  bool          // it waits until all are well, so that of several it begins
	length time.Duration // at most
	least  time.Duration
	do     func(s *siege, d draw) (undo func())
}

// A draw is what chance says about a harm. It is drawn before anything is done, so that
// it depends on the seed alone.
type draw struct {
	slot          int
	after, length time.Duration
	pick          int
	off           time.Duration
}

// drawAll draws for the harms of a round, so that all last until the last of them strikes.
// Two of one name strike two processes.
func (s *siege) drawAll(harms []harm) []draw {
	draws := make([]draw, len(harms))
	var last time.Duration
	for i := range harms {
		d := harms[i].draw(s)
		if i == 0 {
			d.after = 0
		}
		for j := range i {
			if harms[j].name == harms[i].name && draws[j].slot == d.slot {
				d.slot = (d.slot + 1) % len(s.slots)
			}
		}
		draws[i], last = d, max(last, d.after)
	}
	for i := range draws {
		draws[i].length = max(draws[i].length, last-draws[i].after+time.Millisecond)
	}
	return draws
}

func namesOf(harms []harm) string {
	names := make([]string, len(harms))
	for i := range harms {
		names[i] = harms[i].name
	}
	return strings.Join(names, ", ")
}

func (h *harm) draw(s *siege) draw {
	return draw{
		slot:   s.random.IntN(len(s.slots)),
		after:  time.Duration(s.random.Int64N(int64(time.Second))),
		length: h.least + time.Duration(s.random.Int64N(int64(h.length-h.least))),
		pick:   s.random.IntN(1 << 20),
		off:    s.apart(),
	}
}

// What is done to processes. They are stopped for longer than a lease lasts, so that
// others take over, and for longer than their own grants last.
var (
	lossyProcessHarms = []harm{
		{name: "process killed", length: 2 * time.Second, do: killProcess},
		{name: "process ended", length: time.Second, do: endProcess},
		{name: "process stopped", least: time.Second, length: budget + 2*time.Second, do: stopProcess},
	}
	processHarms = slices.Concat(lossyProcessHarms, containerHarms, []harm{
		{name: "clock set back", length: 2 * time.Second, do: stepClock(-1)},
		{name: "clock set ahead", length: 2 * time.Second, do: stepClock(+1)},
		{name: "released by an operator", length: 500 * time.Millisecond, do: releaseWorker},
		{name: "as many ids as it gets", least: 100 * time.Millisecond, length: 500 * time.Millisecond, do: flood},
		{name: "firn next", length: time.Second, do: next},
	})
)

func killProcess(s *siege, d draw) func() {
	s.slots[d.slot].proc.kill()
	return func() { s.replace(d.slot, d.off) }
}

// endProcess has a process give its worker back. If it cannot in time, it is killed in
// the middle of that.
func endProcess(s *siege, d draw) func() {
	s.slots[d.slot].proc.say("close")
	return func() { s.replace(d.slot, d.off) }
}

func stopProcess(s *siege, d draw) func() {
	p := s.slots[d.slot].proc
	p.signal(syscall.SIGSTOP)
	return p.cont
}

// stepClock steps a clock under a process, and back. Where the store has no clock of its
// own, a worker that is taken while a clock is ahead is of no use to others for as long,
// and what is written to a SQLite file looks fresh: there it never is by much.
func stepClock(sign time.Duration) func(*siege, draw) func() {
	return func(s *siege, d draw) func() {
		by := []time.Duration{time.Hour, time.Minute, 5 * time.Second, time.Second}[d.pick%4]
		if most := s.target.ahead; most > 0 && sign > 0 {
			by = min(by, most)
		}
		p := s.slots[d.slot].proc
		p.skew.set(p.skew.get() + sign*by)
		return func() { p.skew.set(p.skew.get() - sign*by) }
	}
}

func flood(s *siege, d draw) func() {
	p := s.slots[d.slot].proc
	p.say("rate -1")
	return func() { p.say("rate 200") }
}

// releaseWorker takes a worker from its holder, as an operator may.
func releaseWorker(s *siege, d draw) func() {
	s.command("worker", "release", strconv.Itoa(d.pick%s.places), "--yes", "--pool", s.pool)
	return func() {}
}

// next draws ids with the command.
func next(s *siege, _ draw) func() {
	s.command("next", "-n", "1000", "--wait", "1s", "--pool", s.pool)
	return func() {}
}
