package leash

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A strap is how the kernel stops the program when this process no longer can. It has
// two ends. A timer kills this process at an instant that is moved on as long as
// it is alive, and so even if it was stopped; and when this process dies, of that
// or anything else, the kernel kills the program and its process group.
type strap struct {
	timer int32
	read  int // a pipe that nobody ever writes to; the program has this end too
	write int
}

// sigevent is struct sigevent of sigevent(3type).
type sigevent struct {
	_      uintptr // value
	signo  int32
	notify int32
	_      [64 - 2*4 - unsafe.Sizeof(uintptr(0))]byte
}

// newStrap makes a strap that kills this process at an instant.
func newStrap(at time.Time) (*strap, error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	l := &strap{timer: -1, read: pipe[0], write: pipe[1]}
	ev := sigevent{signo: int32(unix.SIGKILL)}
	if _, _, errno := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_REALTIME,
		uintptr(unsafe.Pointer(&ev)), uintptr(unsafe.Pointer(&l.timer))); errno != 0 {
		l.off()
		return nil, fmt.Errorf("timer_create: %w", errno)
	}
	// Whoever has a pipe's end can have a signal when something happens at the
	// other one, and its being closed is something. So the kernel is told to send
	// SIGKILL, and by Become to whom. That lasts as long as somebody has this
	// end open, which is why the program inherits it.
	for _, set := range [][2]int{{unix.F_SETFD, 0}, {unix.F_SETSIG, int(unix.SIGKILL)}, {unix.F_SETFL, unix.O_ASYNC}} {
		if _, err := unix.FcntlInt(uintptr(l.read), set[0], set[1]); err != nil {
			l.off()
			return nil, fmt.Errorf("fcntl: %w", err)
		}
	}
	return l, l.until(at)
}

// until moves the instant on. It is one of the system's clock, so that the timer
// goes off early where that is set forward.
func (l *strap) until(at time.Time) error {
	const absolute = 1 // TIMER_ABSTIME
	spec := struct{ interval, value unix.Timespec }{value: unix.NsecToTimespec(max(at.UnixNano(), 1))}
	if _, _, errno := unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(l.timer), absolute,
		uintptr(unsafe.Pointer(&spec)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("timer_settime: %w", errno)
	}
	return nil
}

const (
	// tied is what this process is called that is to become the program.
	tied = "firn: about to be COMMAND"

	// notBecome is the exit status of one that could not: whoever started it has the reason.
	notBecome = 126
)

// start starts the program in a process group of its own. The kernel kills it when the
// thread dies that calls this. Its group is tied before it is the program: by the executable of
// this process, which is started first and then becomes it. Were it tied from here, the
// program could have started others by then, and they would outlive a process like this one
// that is killed at that moment.
func (l *strap) start(path string, args, env []string) (*os.Process, error) {
	var word [2]int // closed when it has become the program, and else has an Errno
	if err := unix.Pipe2(word[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	read := os.NewFile(uintptr(word[0]), "")
	defer read.Close()
	unix.FcntlInt(uintptr(word[1]), unix.F_SETFD, 0)
	process, err := os.StartProcess("/proc/self/exe",
		append([]string{tied, strconv.Itoa(l.read), strconv.Itoa(word[1]), path}, args...),
		&os.ProcAttr{
			Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
			Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		})
	unix.Close(word[1])
	if err != nil {
		return nil, fmt.Errorf("starting firn for it: %v", err)
	}
	said, _ := io.ReadAll(read)
	if errno, err := strconv.Atoi(string(said)); err == nil {
		process.Wait()
		return nil, syscall.Errno(errno)
	}
	return process, nil
}

// Become makes this process the program where that is what [Start] started it for, and
// otherwise returns. Every main that calls Start calls it before anything else, and so does
// the TestMain of its tests.
func Become() {
	if len(os.Args) < 5 || os.Args[0] != tied {
		return
	}
	read, _ := strconv.Atoi(os.Args[1])
	word, _ := strconv.Atoi(os.Args[2])
	unix.CloseOnExec(word)
	_, err := unix.FcntlInt(uintptr(read), unix.F_SETOWN, -os.Getpid())
	if err == nil {
		err = syscall.Exec(os.Args[3], os.Args[4:], os.Environ())
	}
	errno := syscall.EINVAL
	errors.As(err, &errno)
	unix.Write(word, []byte(strconv.Itoa(int(errno))))
	os.Exit(notBecome)
}

// off lets this process live.
func (l *strap) off() {
	if l.timer >= 0 {
		unix.Syscall(unix.SYS_TIMER_DELETE, uintptr(l.timer), 0, 0)
	}
	unix.Close(l.read)
	unix.Close(l.write)
}

// adopt makes this process the parent of what its children leave behind, even
// where that has left their process group.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// children are the processes that have this one for their parent and are alive.
func children() (pids []int) {
	self := []byte(strconv.Itoa(os.Getpid()))
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// PID (NAME) STATE PARENT ..., and a name may have anything in it.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 || fields[0][0] == 'Z' || !bytes.Equal(fields[1], self) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
