//go:build linux

package siege

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
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

	"github.com/firn-id/firn/internal/torture/ledger"
)

// A proc is a process.
type proc struct {
	t     testing.TB
	name  string
	dir   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	skew  *skew
	heirs string

	remains *Issuer // once it has ended and somebody looked
	total   int64   // ids of that

	mu     sync.Mutex
	events []ledger.Event
	news   chan struct{} // closed and replaced at each event
	hands  []*ledger.Reader
	ended  chan struct{}
	err    error
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
		var e ledger.Event
		if err := json.Unmarshal(b, &e); err != nil {
			e = ledger.Event{Event: "garbage", Text: string(b)}
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
func (p *proc) after(place int, what string, is func(ledger.Event) bool) (ledger.Event, int) {
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
func (p *proc) await(name string) ledger.Event {
	p.t.Helper()
	e, _ := p.after(0, name, func(e ledger.Event) bool { return e.Event == name })
	return e
}

// find returns the events from place on for which f is true.
func (p *proc) find(place int, f func(ledger.Event) bool) (found []ledger.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events[place:] {
		if f(e) {
			found = append(found, e)
		}
	}
	return found
}

func named(names ...string) func(ledger.Event) bool {
	return func(e ledger.Event) bool {
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
	p.hands = append(p.hands, ledger.Hands(p.dir, len(p.hands))...)
}

// count is how many ids the process has issued so far.
func (p *proc) count() (n int64) {
	p.t.Helper()
	if p.remains != nil {
		return p.total
	}
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
	if e := p.await(ledger.Closed); e.Text != "" {
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
	who := Issuer{Name: p.name, Grants: []Grant{}, Heirs: p.heirs, Off: p.skew != nil && p.skew.wasOff}
	for _, e := range p.find(0, named(ledger.Granted)) {
		if e.Owner != "" {
			who.Grants = append(who.Grants, Grant{Worker: e.Worker, Term: e.Term, Prior: e.Prior, Horizon: e.Horizon, asked: e.Asked, boot: e.Boot})
		}
	}
	who.Hands, who.Numbers = p.runs(), p.numbers()
	for _, h := range p.hands {
		h.Close()
	}
	p.hands = nil
	return who
}

// runs is what the process has issued so far, of each hand.
func (p *proc) runs() (hands [][]ledger.Run) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads()
	for _, h := range p.hands {
		hands = append(hands, p.all(h))
	}
	return hands
}

// numbers is what the process has issued so far of the series.
func (p *proc) numbers() (runs []ledger.Run) {
	p.t.Helper()
	for _, r := range ledger.Hands(ledger.Numbers(p.dir), 0) {
		runs = p.all(r)
		r.Close()
	}
	return runs
}

func (p *proc) all(r *ledger.Reader) []ledger.Run {
	p.t.Helper()
	runs, err := r.Runs()
	if err != nil {
		p.t.Fatal(err)
	}
	return runs
}

// finished reports whether the process has ended.
func (p *proc) finished() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *proc) unlock() {
	p.t.Helper()
	p.stdin.Close()
	p.gone()
}
