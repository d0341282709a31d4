package sim

import (
	"errors"
	"iter"
)

// A coroutine is code of firn that stands still where it waits, until the world resumes it. So
// anything may happen meanwhile, and the coroutine may be ended there.
type coroutine struct {
	thread *thread // nil: it has not begun
	over   bool    // it has ended, or was ended
	inside bool    // it is running now
	turn   int     // number of the wait under way
}

// errKilled is what unwinds code that is ended where it stands.
var errKilled = errors.New("killed")

// begin makes it ready: the first resume runs work until it waits.
func (c *coroutine) begin(of *threads, work func()) {
	c.thread, c.over = of.take(), false
	c.thread.work = work
}

// lives reports whether it has begun and is not over.
func (c *coroutine) lives() bool { return c.thread != nil && !c.over }

// resume runs it until it waits again, or ends: then more is false.
func (c *coroutine) resume() (more bool) {
	t := c.thread
	c.turn++
	c.inside = true
	t.next()
	c.inside = false
	switch {
	case t.work == nil:
		c.over = true
		t.rest()
		return false
	case c.over: // it was ended meanwhile
		t.kill()
	}
	return true
}

// stand waits until somebody resumes it. It is called by the coroutine itself.
func (c *coroutine) stand() { c.thread.stand() }

// end ends it where it stands.
func (c *coroutine) end() {
	c.turn++
	if c.lives() && !c.inside {
		c.thread.kill()
	}
	c.over = true
}

// threads are those that a simulation has no use for at the moment. A stack that has grown is
// worth keeping: to make one for each coroutine takes an eighth of the time of a schedule.
type threads struct{ spare []*thread }

// A thread runs the work of one coroutine after another.
type thread struct {
	of     *threads
	work   func() // nil: it has none, or that has ended
	begun  bool
	killed bool
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
}

func (of *threads) take() *thread {
	if last := len(of.spare) - 1; last >= 0 {
		t := of.spare[last]
		of.spare = of.spare[:last]
		return t
	}
	t := &thread{of: of}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		for more := true; more; more = yield(struct{}{}) {
			t.run()
		}
	})
	return t
}

// end ends the threads that have no work.
func (of *threads) end() {
	for _, t := range of.spare {
		t.stop()
	}
	of.spare = nil
}

// run does the work that there is.
func (t *thread) run() {
	defer func() {
		t.work, t.begun, t.killed = nil, false, false
		if v := recover(); v != nil && v != errKilled {
			panic(v)
		}
	}()
	t.begun = true
	t.work()
}

func (t *thread) rest() { t.of.spare = append(t.of.spare, t) }

// stand waits until the next call of next, unless that is to end the work.
func (t *thread) stand() {
	if !t.killed {
		t.yield(struct{}{})
	}
	if t.killed {
		panic(errKilled)
	}
}

// kill ends the work where it stands.
func (t *thread) kill() {
	if t.begun {
		t.killed = true
		t.next()
	}
	t.work = nil
	t.rest()
}
