//go:build linux

package torture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) {
	if raceDetector && os.Getenv("FIRN_TORTURE") == "" {
		fmt.Println("NOT TESTED: the race detector sees this process only, and not those that these tests are about")
		return
	}
	// Most of these tests wait most of the time.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	testserver.Foreground()
	code := m.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

// patience is how long a test waits for what must come. Machines that run tests
// are slow at times; a test that passes does not wait so long.
const patience = 60 * time.Second

// asked returns for how long the environment asks a long form to run, if it does.
func asked(t testing.TB) (length time.Duration, long bool) {
	t.Helper()
	s := os.Getenv("FIRN_TORTURE")
	if s == "" {
		return 0, false
	}
	length, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("FIRN_TORTURE: %v", err)
	}
	return length, true
}

// now reads the boot clock, as the program does.
func now() time.Duration {
	const clockBoottime = 7
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(errno)
	}
	return time.Duration(ts.Nano())
}

// eventually waits until f is true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain: %s", patience, what)
		}
	}
}

// A world is a store and all the processes that ever used it.
type world struct {
	t      testing.TB
	dir    string
	path   string // of the store, if it is a file
	url    string // of the store
	layout firn.Layout
	args   []string // of every process
	lossy  bool     // the store forgets, so that what it granted proves nothing

	mu    sync.Mutex
	procs []*proc
}

func newWorld(t testing.TB, args ...string) *world {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "store", "ids.db")
	return &world{t: t, dir: dir, path: path, url: "sqlite:" + path, layout: firn.Default, args: args}
}

// A proc is a process.
type proc struct {
	t     testing.TB
	name  string
	dir   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	skew  *skew
	heirs string

	mu     sync.Mutex
	events []Event
	news   chan struct{} // closed and replaced at each event
	hands  []*Reader
	ended  chan struct{}
	err    error
}

// launch is how a process is started.
type launch struct {
	args  []string
	off   time.Duration // of its clock
	files []*os.File    // from descriptor 3 on
}

// start starts the program.
func (w *world) start(how launch) *proc {
	w.t.Helper()
	w.mu.Lock()
	name := fmt.Sprintf("p%d", len(w.procs))
	p := &proc{t: w.t, name: name, dir: filepath.Join(w.dir, name), news: make(chan struct{}), ended: make(chan struct{})}
	w.procs = append(w.procs, p)
	w.mu.Unlock()
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	p.skew = newSkew(w.t, filepath.Join(p.dir, "clock"))
	p.skew.set(how.off)
	args := append([]string{"-store", w.url, "-ledger", p.dir, "-name", name}, w.args...)
	p.cmd = exec.Command(program(w.t, "holder"), append(args, how.args...)...)
	p.cmd.Env = append(os.Environ(), clockFile+"="+p.skew.path)
	p.cmd.ExtraFiles = how.files
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a ^C is for the test
	p.run()
	return p
}

// run starts p.cmd and follows what it prints.
func (p *proc) run() {
	p.t.Helper()
	stderr, err := os.Create(filepath.Join(p.dir, "stderr"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer stderr.Close()
	p.cmd.Stderr = stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go p.follow(out)
	p.t.Cleanup(p.kill)
}

func (p *proc) follow(out io.Reader) {
	for lines := bufio.NewReader(out); ; {
		b, err := lines.ReadBytes('\n')
		if err != nil { // a line that was cut short by a kill is none
			break
		}
		var e Event
		if err := json.Unmarshal(b, &e); err != nil {
			e = Event{Event: "garbage", Text: string(b)}
		}
		p.mu.Lock()
		p.events = append(p.events, e)
		close(p.news)
		p.news = make(chan struct{})
		p.mu.Unlock()
	}
	p.err = p.cmd.Wait()
	close(p.ended)
}

// seen is how many events there were so far: a place to wait from.
func (p *proc) seen() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.events)
}

// after waits for an event from place on, and returns it and the place behind.
func (p *proc) after(place int, what string, is func(Event) bool) (Event, int) {
	p.t.Helper()
	timeout := time.After(patience)
	for gone := false; ; {
		p.mu.Lock()
		events, news := p.events, p.news
		p.mu.Unlock()
		for ; place < len(events); place++ {
			if is(events[place]) {
				return events[place], place + 1
			}
		}
		if gone {
			p.t.Fatalf("%s ended (%v) before: %s\n%s", p.name, p.err, what, p.story())
		}
		select {
		case <-news:
		case <-p.ended:
			gone = true // its last words are among the events now
		case <-timeout:
			p.t.Fatalf("%s: waited %s in vain: %s\n%s", p.name, patience, what, p.story())
		}
	}
}

// await waits for an event of a name, from the start on.
func (p *proc) await(name string) Event {
	p.t.Helper()
	e, _ := p.after(0, name, func(e Event) bool { return e.Event == name })
	return e
}

// find returns the events from place on for which f is true.
func (p *proc) find(place int, f func(Event) bool) (found []Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events[place:] {
		if f(e) {
			found = append(found, e)
		}
	}
	return found
}

func named(names ...string) func(Event) bool {
	return func(e Event) bool {
		for _, n := range names {
			if e.Event == n {
				return true
			}
		}
		return false
	}
}

// story is what the process said lately, for who has to find out what happened.
func (p *proc) story() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, e := range p.events[max(0, len(p.events)-25):] {
		line, err := json.Marshal(e)
		fmt.Fprintf(&b, "\t%s %s", line, ifError(err))
		b.WriteByte('\n')
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "stderr"))
	fmt.Fprintf(&b, "%s%s", text[max(0, len(text)-4000):], ifError(err))
	return b.String()
}

func ifError(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// reads brings p.hands up to date.
func (p *proc) reads() {
	p.t.Helper()
	for {
		if _, err := os.Stat(chunkName(p.dir, len(p.hands), 0)); err != nil {
			return
		}
		p.hands = append(p.hands, NewReader(p.dir, len(p.hands)))
	}
}

// count is how many ids the process has issued so far.
func (p *proc) count() (n int64) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads()
	for _, h := range p.hands {
		k, _, err := h.Last()
		if err != nil {
			p.t.Fatal(err)
		}
		n += k
	}
	return n
}

// issues waits until the process has issued n more ids.
func (p *proc) issues(n int64) {
	p.t.Helper()
	want := p.count() + n
	deadline := time.Now().Add(patience)
	for p.count() < want {
		select {
		case <-p.ended:
			p.t.Fatalf("%s ended (%v)\n%s", p.name, p.err, p.story())
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: waited %s in vain for %d ids more, has %d of %d\n%s", p.name, patience, n, p.count(), want, p.story())
		}
	}
}

// say writes a line to the program.
func (p *proc) say(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) {
		p.t.Fatal(err)
	}
}

func (p *proc) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("%s: %s: %v", p.name, s, err)
	}
}

// kill ends the process at once.
func (p *proc) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// close asks the program to give its lease back, and waits until it has.
func (p *proc) close() {
	p.t.Helper()
	p.say("close")
	if e := p.await(Closed); e.Text != "" {
		p.t.Errorf("%s: close: %s", p.name, e.Text)
	}
	p.gone()
}

// gone waits for the end of the process.
func (p *proc) gone() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end\n%s", p.name, p.story())
	}
}

// stop stops the process, and waits until it is stopped.
func (p *proc) stop() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	eventually(p.t, p.name+" is stopped", func() bool { return p.state() == 'T' })
}

func (p *proc) cont() { p.signal(syscall.SIGCONT) }

// freeze stops a process at an instant at which it does not write to the store.
// One that is stopped in the middle of that keeps everybody else from writing,
// so that nobody can take over until it goes on.
func (w *world) freeze(p *proc) {
	w.t.Helper()
	for {
		p.stop()
		l := w.locker("immediate")
		free := l.says(Locked, 2*time.Second)
		l.kill()
		if free {
			return
		}
		w.t.Logf("%s was stopped inside a transaction; again", p.name)
		p.cont()
		p.issues(1)
	}
}

// says reports whether the process says something in time.
func (p *proc) says(name string, in time.Duration) bool {
	for timeout := time.After(in); ; {
		p.mu.Lock()
		news := p.news
		p.mu.Unlock()
		if len(p.find(0, named(name))) > 0 {
			return true
		}
		select {
		case <-news:
		case <-p.ended:
			return false
		case <-timeout:
			return false
		}
	}
}

// state is the letter of the process's state in /proc, or 0.
func (p *proc) state() byte {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	if _, rest, ok := bytes.Cut(b, []byte(") ")); ok && len(rest) > 0 {
		return rest[0]
	}
	return 0
}

// check ends all processes and looks at every id that was issued.
// Others are taken into account.
func (w *world) check(others ...Issuer) *Report {
	w.t.Helper()
	r := w.report(others...)
	for _, text := range r.Problems {
		w.t.Error(text)
	}
	return r
}

// report is check for a test that knows of problems.
func (w *world) report(others ...Issuer) *Report {
	w.t.Helper()
	issuers := others
	for _, p := range w.procs {
		p.kill()
		who := p.issuer()
		if w.lossy {
			who.Grants = nil
		}
		issuers = append(issuers, who)
	}
	r := Check(w.layout, issuers)
	w.t.Log(r)
	return r
}

// issuer is what the process left behind.
func (p *proc) issuer() Issuer {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "stderr"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, bad := range []string{"panic: ", "fatal error: ", "DATA RACE"} {
		if bytes.Contains(text, []byte(bad)) {
			p.t.Errorf("%s: %s", p.name, text[max(0, len(text)-8000):])
		}
	}
	who := Issuer{Name: p.name, Heirs: p.heirs}
	for _, e := range p.find(0, named(Granted)) {
		if e.Owner != "" {
			who.Grants = append(who.Grants, Grant{e.Worker, e.Term, e.Prior, e.Horizon})
		}
	}
	who.Hands = p.runs()
	for _, h := range p.hands {
		h.Close()
	}
	p.hands = nil
	return who
}

// runs is what the process has issued so far, of each hand.
func (p *proc) runs() (hands [][]Run) {
	p.t.Helper()
	p.reads()
	for _, h := range p.hands {
		runs, err := h.Runs()
		if err != nil {
			p.t.Fatal(err)
		}
		hands = append(hands, runs)
	}
	return hands
}

// lock locks the store until the process that is returned is told to end.
func (w *world) lock(mode string) *proc {
	w.t.Helper()
	p := w.locker(mode)
	p.await(Locked)
	return p
}

// locker is lock that does not wait until the store is locked.
func (w *world) locker(mode string) *proc {
	w.t.Helper()
	p := &proc{t: w.t, name: "lock", dir: w.t.TempDir(), news: make(chan struct{}), ended: make(chan struct{})}
	p.cmd = exec.Command(program(w.t, "holder"), "-lock", mode, "-store", w.url)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.run()
	return p
}

func (p *proc) unlock() {
	p.t.Helper()
	p.stdin.Close()
	p.gone()
}

// A result is what the command answered.
type result struct {
	out, errs string
	code      int
	took      time.Duration
}

// run runs a command.
func run(t testing.TB, env []string, name string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = env
	begun := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode(), time.Since(begun)}
}
