//go:build !linux && !windows

package main

import (
	"os"
	"syscall"
	"time"
)

// A leash does nothing: this system has no signal at the death of a parent.
type leash struct{}

func newLeash(time.Time) (*leash, error) { return &leash{}, nil }
func (*leash) until(time.Time) error     { return nil }
func (*leash) off()                      {}

// start starts COMMAND in a process group of its own.
func (*leash) start(path string, args, env []string) (*os.Process, error) {
	return os.StartProcess(path, args, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
}

func becomeCommand() {}

func adopt() error    { return nil }
func children() []int { return nil }

func underFirst() (int, bool) { return 0, false }
