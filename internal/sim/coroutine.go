package sim

import (
	"errors"
	"iter"
)

// A coroutine is code of firn that stands still where it waits, until the world resumes it. So
// anything may happen meanwhile, and the coroutine may be ended there.
type coroutine struct {
	next   func() (struct{}, bool) // nil: it has not begun, or is over
	stop   func()
	yield  func(struct{}) bool
	inside bool // it is running now
	turn   int  // number of the wait under way
}

// errKilled is what unwinds code that is ended where it stands.
var errKilled = errors.New("killed")

// begin makes it ready: the first resume runs work until it waits.
func (c *coroutine) begin(work func()) {
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if v := recover(); v != nil && v != errKilled {
				panic(v)
			}
		}()
		c.yield = yield
		work()
	})
}

// resume runs it until it waits again, or ends: then more is false.
func (c *coroutine) resume() (more bool) {
	c.turn++
	c.inside = true
	_, more = c.next()
	c.inside = false
	if !more {
		c.next = nil
	}
	return more
}

// stand waits until somebody resumes it. It is called by the coroutine itself.
func (c *coroutine) stand() {
	if !c.yield(struct{}{}) {
		panic(errKilled)
	}
}

// end ends it where it stands.
func (c *coroutine) end() {
	c.turn++
	c.next = nil
	if c.stop != nil && !c.inside {
		c.stop()
		c.stop = nil
	}
}
