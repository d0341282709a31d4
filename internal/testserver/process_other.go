//go:build !linux && !darwin

package testserver

import (
	"os"
	"syscall"
	"time"
)

// Other systems have neither these signals nor these servers: nothing is started, and
// what asks for a server is skipped.

type identity struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

type process struct{ identity }

type credential struct{}

const supported = false

func identify(int) (identity, error)                                  { return identity{}, errUnsupported }
func alive([]identity) []identity                                     { return nil }
func killFamily(identity)                                             {}
func killProgramsIn(string)                                           {}
func stopFamily(identity) error                                       { return errUnsupported }
func continueFamily(identity)                                         {}
func spawn([]string, string, *os.File, *credential) (*process, error) { return nil, errUnsupported }

func account([]string) (*credential, error) { return nil, errUnsupported }
func mine(os.FileInfo) bool                 { return false }
func give(string, *credential) error        { return errUnsupported }

func lock(string) (func(), error)          { return nil, errUnsupported }
func tryLock(string) (func(), bool, error) { return nil, false, errUnsupported }
func forgetMemory(string)                  {}
func (p *process) exited() bool            { return true }
func (p *process) wait(time.Duration) bool { return true }
func (p *process) kill()                   {}
func (p *process) signal(syscall.Signal)   {}
func (p *process) succeeded() bool         { return false }
func (p *process) String() string          { return "" }
