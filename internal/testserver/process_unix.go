//go:build linux || darwin

package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// An identity names a process for good: a process id alone is used again.
type identity struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // when, as the system writes it
}

// running is a process as the system lists it.
type running struct {
	identity
	parent  int
	stopped bool
}

// identify returns the identity of a process that runs.
func identify(pid int) (identity, error) {
	list, err := processes(pid)
	if err != nil {
		return identity{}, err
	}
	for _, r := range list {
		if r.PID == pid {
			return r.identity, nil
		}
	}
	return identity{}, fmt.Errorf("testserver: process %d has ended", pid)
}

// family returns root, if it runs, and the processes below it. PostgreSQL's
// backends lead process groups of their own, so a signal to the group misses them.
func family(root identity) []running {
	list, _ := processes()
	i := slices.IndexFunc(list, func(r running) bool { return r.identity == root })
	if i < 0 {
		return nil
	}
	tree := []running{list[i]}
	for n := 0; n < len(tree); n++ {
		for _, r := range list {
			if r.parent == tree[n].PID {
				tree = append(tree, r)
			}
		}
	}
	return tree
}

// alive reports which of ids run; where that is not known, all.
func alive(ids []identity) []identity {
	pids := make([]int, len(ids))
	for i, id := range ids {
		pids[i] = id.PID
	}
	list, err := processes(pids...)
	if err != nil {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id identity) bool {
		return !slices.ContainsFunc(list, func(r running) bool { return r.identity == id })
	})
}

// killFamily ends root and all below it. It stops root first: what root starts between a look at its
// family and its end would be left, and might not notice that end for long.
func killFamily(root identity) {
	var ids []identity
	for _, r := range familyOfStopped(root) {
		ids = append(ids, r.identity)
		syscall.Kill(r.PID, syscall.SIGKILL)
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ids = alive(ids); len(ids) == 0 {
			return
		}
		for _, id := range ids {
			syscall.Kill(id.PID, syscall.SIGKILL)
		}
	}
}

// familyOfStopped stops root, and returns it and all below it.
func familyOfStopped(root identity) []running {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		list, _ := processes(root.PID)
		i := slices.IndexFunc(list, func(r running) bool { return r.identity == root })
		if i < 0 || list[i].stopped || time.Now().After(deadline) {
			return family(root) // once more: what it started before it stopped
		}
		syscall.Kill(root.PID, syscall.SIGSTOP)
	}
}

// stopFamily freezes root and all below it, and waits until they are.
func stopFamily(root identity) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		frozen := true
		for _, r := range family(root) {
			if !r.stopped {
				frozen = false
				syscall.Kill(r.PID, syscall.SIGSTOP)
			}
		}
		if frozen {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("testserver: the server does not stop")
		}
		time.Sleep(time.Millisecond)
	}
}

// continueFamily is the opposite of stopFamily.
func continueFamily(root identity) {
	for _, r := range family(root) {
		syscall.Kill(r.PID, syscall.SIGCONT)
	}
}

// A process is a server that was started. Nothing waits for it in the background:
// its end is seen by asking.
type process struct {
	identity
	ended  bool
	status syscall.WaitStatus
}

func spawn(argv []string, home string, log *os.File, account *credential) (*process, error) {
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir: home,
		Env: environment(home),
		// A file, as a pipe would stay open in a grandchild.
		Files: []*os.File{nil, log, log},
		// A Ctrl-C at the terminal is for the test, not for its servers.
		Sys: &syscall.SysProcAttr{Setpgid: true, Credential: account},
	})
	if err != nil {
		return nil, err
	}
	pid := p.Pid
	p.Release()
	id, err := identify(pid)
	if err != nil {
		id = identity{PID: pid} // it has ended already, which exited will see
	}
	return &process{identity: id}, nil
}

// exited reports whether the process has ended.
func (p *process) exited() bool {
	if p.ended {
		return true
	}
	pid, err := syscall.Wait4(p.PID, &p.status, syscall.WNOHANG, nil)
	p.ended = pid == p.PID || errors.Is(err, syscall.ECHILD)
	return p.ended
}

// wait reports whether the process ended within d.
func (p *process) wait(d time.Duration) bool {
	for deadline := time.Now().Add(d); !p.exited(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

func (p *process) kill() {
	if !p.exited() {
		killFamily(p.identity)
		p.wait(10 * time.Second)
	}
}

func (p *process) signal(sig syscall.Signal) {
	if !p.exited() {
		syscall.Kill(p.PID, sig)
	}
}

// succeeded reports whether the process, which has ended, says it did well.
func (p *process) succeeded() bool { return p.status.Exited() && p.status.ExitStatus() == 0 }

func (p *process) String() string {
	switch {
	case !p.ended:
		return fmt.Sprintf("process %d runs", p.PID)
	case p.status.Signaled():
		return fmt.Sprintf("process %d: %s", p.PID, p.status.Signal())
	default:
		return fmt.Sprintf("process %d: exit status %d", p.PID, p.status.ExitStatus())
	}
}

const supported = true

type credential = syscall.Credential

// account returns what to run as: nobody in particular, unless we are root, whom
// PostgreSQL, MariaDB and PgBouncer refuse.
func account(names []string) (*credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: true}, nil
	}
	return nil, fmt.Errorf("testserver: none of the accounts %v exists", names)
}

// mine reports whether a file belongs to this user.
func mine(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// give hands a file over to an account.
func give(path string, to *credential) error {
	if to == nil {
		return nil
	}
	return os.Lchown(path, int(to.Uid), int(to.Gid))
}

// lock takes the lock that the file is, and returns what gives it back.
func lock(path string) (unlock func(), err error) { return lockAs(path, syscall.LOCK_EX) }

// tryLock is lock that does not wait.
func tryLock(path string) (unlock func(), ok bool, err error) {
	unlock, err = lockAs(path, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, false, nil
	}
	return unlock, err == nil, err
}

func lockAs(path string, how int) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
