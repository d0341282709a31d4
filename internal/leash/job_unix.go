//go:build !windows

package leash

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A job is the program's part in the job control of a terminal, where there is one.
//
// The program has a process group of its own, so that all of it can be killed. That
// begins in the background, where the kernel stops whoever reads from the
// terminal or sets it up. The program is given the terminal then, and continued; keys
// reach it by themselves from there on. The terminal is taken back when the program
// is stopped by a key, or ends. A program that does not ask for the terminal
// leaves it to its neighbours in a pipe, such as a pager.
type job struct {
	tty   int // file descriptor; -1: there is no terminal
	group int

	mu    sync.Mutex
	wants bool // the program has asked for the terminal
}

func newJob(group int) *job {
	tty, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return &job{tty: -1, group: group}
	}
	// Neither a warning written from the background nor the terminal being taken
	// back is to stop this process. The program, which runs by now, is not concerned.
	signal.Ignore(syscall.SIGTTOU)
	return &job{tty: tty, group: group}
}

// stopped is called when a signal has stopped the program.
func (j *job) stopped(s syscall.Signal) {
	j.mu.Lock()
	switch {
	case j.tty < 0, s == syscall.SIGSTOP: // somebody means the program, and will continue it
		j.mu.Unlock()
		return
	case s == syscall.SIGTTIN, s == syscall.SIGTTOU:
		j.wants = true
		if j.give() {
			j.mu.Unlock()
			return
		}
	}
	j.take()
	j.mu.Unlock()
	if !suspend() {
		j.resume()
	}
}

// suspend stops this process's own group, so that the shell in front notices and
// can continue it. Where there is no such shell it does nothing, like the key on
// a program that has the terminal to itself.
func suspend() bool {
	session, err := unix.Getsid(0)
	if err != nil || session == syscall.Getpgrp() {
		return false
	}
	if s, err := unix.Getsid(os.Getppid()); err != nil || s != session {
		return false
	}
	// SIGTSTP would do nothing: the Go runtime keeps its handler once it has one.
	return syscall.Kill(0, syscall.SIGSTOP) == nil
}

// resume is called when this process is continued: the program is too, with the terminal
// if it wants that and this process has it.
func (j *job) resume() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.wants || !j.give() {
		syscall.Kill(-j.group, syscall.SIGCONT)
	}
}

// ended is called when the program has ended.
func (j *job) ended() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.take()
}

// give gives the terminal to the program and continues it, if this process has it.
func (j *job) give() bool { return j.pass(syscall.Getpgrp(), j.group) }

// take takes the terminal back from the program, if that has it.
func (j *job) take() { j.pass(j.group, syscall.Getpgrp()) }

// pass passes the terminal on from a process group to another one.
func (j *job) pass(from, to int) bool {
	if j.tty < 0 {
		return false
	}
	if front, err := unix.IoctlGetInt(j.tty, unix.TIOCGPGRP); err != nil || front != from {
		return false
	}
	if err := unix.IoctlSetPointerInt(j.tty, unix.TIOCSPGRP, to); err != nil {
		return false
	}
	if to == j.group {
		syscall.Kill(-to, syscall.SIGCONT)
	}
	return true
}
