package leash

import (
	"os"
	"os/signal"
	"time"
)

// A system is the program as it runs.
type system struct {
	ended chan int // receives its exit status

	process *os.Process
}

func (p *system) start(path string, args, env []string, _ time.Time) error {
	process, err := os.StartProcess(path, args, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return err
	}
	p.ended, p.process = make(chan int, 1), process
	go func() {
		status := 1
		if state, err := process.Wait(); err == nil {
			status = state.ExitCode()
		}
		p.ended <- status
	}()
	return nil
}

// Signals keeps Ctrl-C and Ctrl-Break from ending this process: they reach the program
// by themselves, and it may have a mind of its own.
func Signals() <-chan os.Signal {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt)
	return signals
}

func (p *system) pid() int        { return p.process.Pid }
func (p *system) pass(os.Signal)  {}
func (p *system) end()            {} // there is no way to ask
func (p *system) kill()           { p.process.Kill() }
func (p *system) remains() bool   { return false }
func (p *system) until(time.Time) {}
func (p *system) off()            {}

// Become does nothing: only on Linux does another process become the program.
func Become() {}

// UnderFirst does nothing here.
func UnderFirst() (status int, ok bool) { return 0, false }
