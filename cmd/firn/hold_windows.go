package main

import (
	"os"
	"os/signal"
	"time"
)

// A program is COMMAND as it runs.
type program struct {
	ended chan int // receives its exit status

	process *os.Process
}

// startProgram starts COMMAND.
func startProgram(path string, args, env []string, _ time.Time) (*program, error) {
	process, err := os.StartProcess(path, args, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return nil, err
	}
	p := &program{ended: make(chan int, 1), process: process}
	go func() {
		status := exitFailed
		if state, err := process.Wait(); err == nil {
			status = state.ExitCode()
		}
		p.ended <- status
	}()
	return p, nil
}

// relay keeps Ctrl-C and Ctrl-Break from ending this process: they reach COMMAND
// by themselves, and it may have a mind of its own.
func relay() <-chan os.Signal {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt)
	return signals
}

func (p *program) pid() int        { return p.process.Pid }
func (p *program) pass(os.Signal)  {}
func (p *program) end()            {} // there is no way to ask
func (p *program) kill()           { p.process.Kill() }
func (p *program) remains() bool   { return false }
func (p *program) until(time.Time) {}
func (p *program) off()            {}

func becomeCommand()          {}
func underFirst() (int, bool) { return 0, false }
