//go:build !linux && !windows

package leash

import (
	"os"
	"syscall"
	"time"
)

// A strap does nothing: this system has no signal at the death of a parent.
type strap struct{}

func newStrap(time.Time) (*strap, error) { return &strap{}, nil }
func (*strap) until(time.Time) error     { return nil }
func (*strap) off()                      {}

// start starts the program in a process group of its own.
func (*strap) start(path string, args, env []string) (*os.Process, error) {
	return os.StartProcess(path, args, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
}

// Become does nothing: only on Linux does another process become the program.
func Become() {}

func adopt() error    { return nil }
func children() []int { return nil }

// UnderFirst does nothing here.
func UnderFirst() (int, bool) { return 0, false }
