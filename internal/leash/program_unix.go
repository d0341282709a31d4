//go:build !windows

package leash

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A system is the program as it runs, in a process group of its own.
type system struct {
	ended chan int // receives its exit status

	process *os.Process
	group   int
	others  []int // children that this process had before
	strap   *strap
	job     *job

	asking sync.Mutex
	asked  []int // who was asked to end
}

func (p *system) start(path string, args, env []string, until time.Time) error {
	strap, err := newStrap(until)
	if err != nil {
		return fmt.Errorf("nothing would stop it if firn could not: %w", err)
	}
	if err := adopt(); err != nil {
		strap.off()
		return fmt.Errorf("what it leaves behind would not be known: %w", err)
	}
	p.ended, p.strap, p.others = make(chan int, 1), strap, children()
	started := make(chan error, 1)
	go p.run(path, args, env, started)
	if err := <-started; err != nil {
		strap.off()
		return err
	}
	return nil
}

// run starts the program and waits until it ends. It does so in one thread, because
// the kernel means that one by the parent whose death kills the program.
func (p *system) run(path string, args, env []string, started chan<- error) {
	runtime.LockOSThread()
	var err error
	p.process, err = p.strap.start(path, args, env)
	if err != nil {
		started <- err
		return
	}
	p.group = p.process.Pid
	p.job = newJob(p.group)
	started <- nil
	for {
		// All children, not only the program: this process inherits orphans, and has to
		// bury them.
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // nobody is left
			return
		case pid != p.group:
		case ws.Stopped():
			p.job.stopped(ws.StopSignal())
		default:
			p.job.ended()
			p.ended <- exitStatus(ws)
		}
	}
}

// pid is the number of the program's process.
func (p *system) pid() int { return p.group }

// exitStatus is how shells tell the end of a process.
func exitStatus(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// Signals returns the signals that are passed on to the program, and catches them from now
// on. It does not catch those that this process ignores.
func Signals() <-chan os.Signal {
	// The program is to die of a closed pipe, as ever. A signal that a process
	// ignores it would ignore too; one that is caught is put back for it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	signals := make(chan os.Signal, 16)
	for _, s := range []syscall.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGTSTP,
	} {
		if !signal.Ignored(s) { // as under nohup(1): the program ignores it too
			signal.Notify(signals, s)
		}
	}
	return signals
}

// pass passes a signal on to the program. Those of the keyboard are for the whole
// process group; they come here only while that has not got the terminal, so
// nobody gets one twice.
func (p *system) pass(s os.Signal) {
	switch s {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP:
		p.signal(s.(syscall.Signal))
	case syscall.SIGCONT:
		p.job.resume()
	default:
		p.process.Signal(s)
	}
}

// signal sends a signal to the process group.
func (p *system) signal(s syscall.Signal) { syscall.Kill(-p.group, s) }

// end asks the program to end, and all that is known of what it has started, each
// once: of what those had started more becomes known with each that ends.
func (p *system) end() {
	p.asking.Lock()
	defer p.asking.Unlock()
	if len(p.asked) == 0 {
		p.asked = []int{p.group}
		p.signal(syscall.SIGTERM)
	}
	for _, pid := range p.orphans() {
		if group, err := syscall.Getpgid(pid); err == nil && group != p.group && !slices.Contains(p.asked, pid) {
			p.asked = append(p.asked, pid)
			syscall.Kill(pid, syscall.SIGTERM)
		}
	}
}

// kill ends the program, even one that is stopped, and all that is known of what it
// has started.
func (p *system) kill() {
	p.signal(syscall.SIGKILL)
	for _, pid := range p.orphans() {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// remains reports whether anything is left of the program.
func (p *system) remains() bool {
	return !errors.Is(syscall.Kill(-p.group, 0), syscall.ESRCH) || len(p.orphans()) > 0
}

// orphans are the processes that the program has left behind, where the system makes
// them known.
func (p *system) orphans() []int {
	return slices.DeleteFunc(children(), func(pid int) bool {
		return pid == p.group || slices.Contains(p.others, pid)
	})
}

func (p *system) until(at time.Time) { p.strap.until(at) }
func (p *system) off()               { p.strap.off() }
