// Package leash runs the program that firn run gives a worker number to, and ends it before that
// lease does: at a deadline, which firn run moves on with each extension of the lease.
//
// [Start] starts it with this process's standard input, output and error; [Program.Wait]
// passes signals on to it and returns when nothing is left of it; [Program.Stop] ends it.
// On Linux the kernel kills the program and its process group where this process
// cannot: when this process is killed, and at the instant, if that was not moved on; this
// process dies then too. On other systems nobody does that. On Unix the program has a
// process group, and the terminal when it asks for it; on Windows it can only be killed.
//
// A process runs one program at a time, and has no other children meanwhile: it buries all
// that it inherits. Its main calls [Become] first of all.
package leash

import (
	"os"
	"sync"
	"time"
)

const (
	look   = 100 * time.Millisecond // between two looks at what is left
	remain = 10 * time.Second       // for what a program leaves behind to end
	dead   = 2 * time.Second        // for the system to clear away what was killed: it runs no more
)

// A Program runs. All methods but Wait may be called from many goroutines at once.
type Program struct {
	system // what the system has of it

	mu     sync.Mutex
	killAt time.Time // zero: it is to run
	over   bool      // nothing is left of it
}

// Start starts the program at a path, on a leash until an instant. The arguments begin
// with its name. Call [Program.Off] when the program has ended.
func Start(path string, args, env []string, until time.Time) (*Program, error) {
	p := new(Program)
	if err := p.start(path, args, env, until); err != nil {
		return nil, err
	}
	return p, nil
}

// PID is the number of the program's process.
func (p *Program) PID() int { return p.pid() }

// Until moves the instant on. If it cannot be moved, it stays.
func (p *Program) Until(at time.Time) { p.until(at) }

// Off takes the leash off this process, which would die at the instant.
func (p *Program) Off() { p.off() }

// Wait passes the signals of [Signals] on, and returns the exit status, as a shell tells
// it, when nothing is left of the program. It stops what the program leaves behind, and
// then calls left.
func (p *Program) Wait(signals <-chan os.Signal, left func()) (status int) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	ended := false
	for {
		select {
		case s := <-signals:
			if !ended {
				p.pass(s)
			}
		case status = <-p.ended:
			if ended = true; p.remains() && p.stop(remain, true) {
				left()
			}
		case <-ticker.C:
			p.follow()
		}
		if ended && p.isOver() {
			return status
		}
	}
}

// Stop asks the program to end, and kills it after the grace if it has not ended; at once
// if there is none. It does not wait for either.
func (p *Program) Stop(grace time.Duration) { p.stop(grace, false) }

// stop reports false where nothing is left to stop, or, if that matters, it is being
// stopped already.
func (p *Program) stop(grace time.Duration, unlessStopped bool) bool {
	p.mu.Lock()
	if p.over || unlessStopped && !p.killAt.IsZero() {
		p.mu.Unlock()
		return false
	}
	p.killAt = time.Now().Add(grace)
	p.mu.Unlock()
	// By a timer, so that it happens even if whoever waits for the program is kept waiting.
	time.AfterFunc(grace, func() {
		if _, over := p.state(); !over { // or the numbers of its processes may be those of others
			p.kill()
		}
	})
	if grace > 0 {
		p.end()
	}
	return true
}

// follow stops what has become known of the program's since it was stopped.
func (p *Program) follow() {
	switch killAt, _ := p.state(); {
	case killAt.IsZero():
	case time.Now().Before(killAt):
		p.end()
	default:
		p.kill()
	}
}

func (p *Program) isOver() bool {
	killAt, _ := p.state()
	over := !p.remains() || !killAt.IsZero() && time.Since(killAt) > dead
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = over
	return over
}

func (p *Program) state() (killAt time.Time, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killAt, p.over
}
