package leash

import (
	"errors"
	"os"
	"syscall"
)

// UnderFirst runs this command line again as a child where this process is the
// first one of a container, and returns the child's exit status. The kernel spares
// a first process the signal that a leash sends when it was stopped for too long;
// its child it does not spare. With a terminal, which the child would have to be
// given, this process does the work itself.
func UnderFirst() (status int, ok bool) {
	if os.Getpid() != 1 {
		return 0, false
	}
	if tty, err := os.Open("/dev/tty"); err == nil {
		tty.Close()
		return 0, false
	}
	self, err := os.Executable()
	if err != nil {
		return 0, false
	}
	signals := Signals()
	child, err := os.StartProcess(self, os.Args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 0, false
	}
	go func() {
		for s := range signals {
			child.Signal(s)
		}
	}()
	for { // all children: orphans come here when the child has ended
		var ws syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &ws, 0, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, true
		case pid == child.Pid:
			return exitStatus(ws), true
		}
	}
}
