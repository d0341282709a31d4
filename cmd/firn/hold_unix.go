//go:build !windows

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// A program is COMMAND as it runs, in a process group of its own.
type program struct {
	ended chan int // receives its exit status

	process *os.Process
	group   int
	others  []int // children that this process had before
	asked   []int // who was asked to end
	leash   *leash
	job     *job
}

// startProgram starts COMMAND, on a leash until an instant.
func startProgram(path string, args, env []string, until time.Time) (*program, error) {
	l, err := newLeash(until)
	if err != nil {
		return nil, fmt.Errorf("nothing would stop it if firn could not: %w", err)
	}
	if err := adopt(); err != nil {
		l.off()
		return nil, fmt.Errorf("what it leaves behind would not be known: %w", err)
	}
	p := &program{ended: make(chan int, 1), leash: l, others: children()}
	started := make(chan error, 1)
	go p.run(path, args, env, started)
	if err := <-started; err != nil {
		l.off()
		return nil, err
	}
	return p, nil
}

// run starts COMMAND and waits until it ends. It does so in one thread, because
// the kernel means that one by the parent whose death kills COMMAND.
func (p *program) run(path string, args, env []string, started chan<- error) {
	runtime.LockOSThread()
	var err error
	p.process, err = p.leash.start(path, args, env)
	if err != nil {
		started <- err
		return
	}
	p.group = p.process.Pid
	p.job = newJob(p.group)
	started <- nil
	for {
		// All children, not only COMMAND: this process inherits orphans, and has to
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

// pid is the number of COMMAND's process.
func (p *program) pid() int { return p.group }

// exitStatus is how shells tell the end of a process.
func exitStatus(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// relay returns the signals that are passed on to COMMAND, from now on.
func relay() <-chan os.Signal {
	// COMMAND is to die of a closed pipe, as ever. A signal that a process
	// ignores it would ignore too; one that is caught is put back for it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	signals := make(chan os.Signal, 16)
	for _, s := range []syscall.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGTSTP,
	} {
		if !signal.Ignored(s) { // as under nohup(1): COMMAND ignores it too
			signal.Notify(signals, s)
		}
	}
	return signals
}

// pass passes a signal on to COMMAND. Those of the keyboard are for the whole
// process group; they come here only while that has not got the terminal, so
// nobody gets one twice.
func (p *program) pass(s os.Signal) {
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
func (p *program) signal(s syscall.Signal) { syscall.Kill(-p.group, s) }

// end asks COMMAND to end, and all that is known of what it has started, each
// once: of what those had started more becomes known with each that ends.
func (p *program) end() {
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

// kill ends COMMAND, even one that is stopped, and all that is known of what it
// has started.
func (p *program) kill() {
	p.signal(syscall.SIGKILL)
	for _, pid := range p.orphans() {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// remains reports whether anything is left of COMMAND.
func (p *program) remains() bool {
	return !errors.Is(syscall.Kill(-p.group, 0), syscall.ESRCH) || len(p.orphans()) > 0
}

// orphans are the processes that COMMAND has left behind, where the system makes
// them known.
func (p *program) orphans() []int {
	return slices.DeleteFunc(children(), func(pid int) bool {
		return pid == p.group || slices.Contains(p.others, pid)
	})
}

// until moves the instant on at which the kernel kills COMMAND, unless it is
// moved on again. If it cannot be moved, it stays.
func (p *program) until(at time.Time) { p.leash.until(at) }

// off lets firn live on when COMMAND has ended.
func (p *program) off() { p.leash.off() }
