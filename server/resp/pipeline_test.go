package resp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
)

// counting notes how many ids each draw asks for.
type counting struct {
	firn.Source
	mu    sync.Mutex
	draws []int
}

func (s *counting) Append(ctx context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	s.mu.Lock()
	s.draws = append(s.draws, n)
	s.mu.Unlock()
	return s.Source.Append(ctx, dst, n)
}

// upward gives 1, 2, 3 and so on, and the errors that it has for some of them.
type upward struct {
	n    atomic.Int64
	fail map[firn.ID]error
}

func (s *upward) Next(ctx context.Context) (firn.ID, error) {
	one, err := s.Append(ctx, nil, 1)
	if err != nil {
		return 0, err
	}
	return one[0], nil
}

func (s *upward) Append(_ context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	for range n {
		id := firn.ID(s.n.Add(1))
		if err := s.fail[id]; err != nil {
			return dst, err
		}
		dst = append(dst, id)
	}
	return dst, nil
}

// Draws of one series that follow one another are one draw, and answers come in the
// order of the commands, whatever stands between them.
func TestGroups(t *testing.T) {
	a, b := &counting{Source: &upward{}}, &counting{Source: &upward{}}
	w := serve(t, &server.Options{MaxBatch: 10}, nil, server.Numbers("a", a, nil), server.Numbers("b", b, nil))
	p := dial(t, w)
	p.send("INCR a\r\nINCR a\r\nINCR b\r\nINCR a\r\nPING\r\nINCR a\r\nINCR nosuch\r\nINCR a\r\nINCR a b\r\nFIRN.NEXT a 4\r\nFIRN.NEXT a\r\nFIRN.NEXT a 5\r\nFIRN.NEXT a 1\r\nINCR a\r\n")
	for _, want := range []string{
		":1", ":2", ":1", ":3", "+PONG", ":4", "-ERR there is no series nosuch", ":5", "-ERR wrong number of arguments for 'incr' command",
		`["6" "7" "8" "9"]`, `"10"`, `["11" "12" "13" "14" "15"]`, `["16"]`, ":17",
	} {
		if got := p.answer(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if want := []int{2, 1, 1, 1, 10, 1, 1}; !slices.Equal(a.draws, want) {
		t.Errorf("draws of a: %v, want %v", a.draws, want)
	}
	c := requests(t, w.srv, "a")
	if c.Requests != 10 || c.Values != 17 || c.Errors != 0 {
		t.Errorf("counted %d requests, %d values, %d errors", c.Requests, c.Values, c.Errors)
	}
}

func requests(t *testing.T, srv *server.Server, name string) server.Counts {
	t.Helper()
	for _, s := range srv.All() {
		if s.Name() == name {
			return s.Counts()
		}
	}
	t.Fatalf("no series %s", name)
	return server.Counts{}
}

// Each command of a group that is refused is counted.
func TestGroupRefused(t *testing.T) {
	w := serve(t, nil, nil, server.Numbers("a", new(upward), nil))
	p := dial(t, w)
	p.send("INCR nosuch\r\nINCR nosuch\r\nINCR nosuch\r\nFIRN.NEXT nosuch\r\nFIRN.NEXT nosuch 2\r\n")
	for range 5 {
		if got := p.answer(); got != "-ERR there is no series nosuch" {
			t.Error(got)
		}
	}
	if got := w.srv.Refused(); got != 5 {
		t.Errorf("%d are counted, want 5", got)
	}
}

// A source that fails in between: who has been given all it wants is answered.
func TestGroupFails(t *testing.T) {
	src := &upward{fail: map[firn.ID]error{4: firn.ErrBusy, 8: errors.New("first\r\nsecond")}}
	p := dial(t, serve(t, nil, nil, server.Numbers("a", src, nil)))
	p.send("INCR a\r\nINCR a\r\nINCR a\r\nINCR a\r\nINCR a\r\nPING\r\nINCR a\r\nFIRN.NEXT a 5\r\nINCR nosuch\r\nINCR a\r\n")
	for _, want := range []string{
		":1", ":2", ":3", "-TRYAGAIN series a: ...: no id without waiting", "-TRYAGAIN series a: ...: no id without waiting", "+PONG",
		":5", "-ERR series a: ...: first  second", "-ERR there is no series nosuch", ":9",
	} {
		begins, ends, _ := strings.Cut(want, "...") // when it began, and what is said to everybody
		if got := p.answer(); !strings.HasPrefix(got, begins) || !strings.HasSuffix(got, ends) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A source that is broken gives no id 0, and no fewer than were asked for.
func TestBrokenSource(t *testing.T) {
	w := serve(t, nil, nil,
		server.Numbers("zero", appending(func(dst []firn.ID, n int) []firn.ID { return append(dst, make([]firn.ID, n)...) }), nil),
		server.Numbers("none", appending(func(dst []firn.ID, n int) []firn.ID { return dst }), nil))
	p := dial(t, w)
	for _, name := range []string{"zero", "none"} {
		for _, command := range [][]string{{"INCR", name}, {"FIRN.NEXT", name, "3"}} {
			if got := p.do(command...); !strings.HasPrefix(got, "-ERR series "+name+": ") || !strings.Contains(got, ": the source gave 0") {
				t.Errorf("%v: %s", command, got)
			}
		}
	}
}

// A series that a reload makes one of texts, while numbers are drawn from it, answers
// INCR with an error, and never with a text that is said to be an integer.
func TestNumbersBecomeTexts(t *testing.T) {
	src := &replacing{}
	w := serve(t, nil, nil, server.Numbers("a", src, nil))
	src.replace = func() error {
		return w.srv.Replace(nil, server.Numbers("a", appending(func(dst []firn.ID, n int) []firn.ID { return append(dst, 1<<60) }), &server.SeriesOptions{Form: public.Base58}))
	}
	p := dial(t, w)
	for range 2 {
		if got := p.do("INCR", "a"); !strings.HasPrefix(got, "-WRONGTYPE ") {
			t.Error(got)
		}
	}
}

// replacing is a source that is closed by a reload while it is asked.
type replacing struct{ replace func() error }

func (s *replacing) Next(context.Context) (firn.ID, error) { return 0, firn.ErrClosed }
func (s *replacing) Append(_ context.Context, dst []firn.ID, _ int) ([]firn.ID, error) {
	return dst, errors.Join(s.replace(), firn.ErrClosed)
}

type appending func(dst []firn.ID, n int) []firn.ID

func (f appending) Next(context.Context) (firn.ID, error) { return f(nil, 1)[0], nil }
func (f appending) Append(_ context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	return f(dst, n), nil
}

func TestExhausted(t *testing.T) {
	p := dial(t, serve(t, nil, nil, numbers(t, "five", &sequence.Options{Max: 5})))
	p.send(strings.Repeat("INCR five\r\n", 8))
	for i := range 8 {
		got := p.answer()
		if i < 5 && got != fmt.Sprintf(":%d", i+1) || i >= 5 && !strings.HasPrefix(got, "-ERR series five: ") {
			t.Errorf("%d: %s", i, got)
		}
	}
}

// However a pipeline is cut into packets, its answers are the same.
func TestCuts(t *testing.T) {
	pipeline := array("INCR", "orders") + array("FIRN.NEXT", "orders", "2") + "incr orders\r\n" + array("PING", "x\r\ny") + array("INCR", "orders")
	want := []string{":1", `["2" "3"]`, ":4", `"x\r\ny"`, ":5"}
	for i := 1; i < len(pipeline); i++ {
		p := dial(t, serve(t, nil, nil))
		p.send(pipeline[:i])
		// What is complete is answered while the rest is still to come.
		done := 0
		for rest := pipeline[:i]; done < len(want); done++ {
			n := complete(rest)
			if n == 0 {
				break
			}
			rest = rest[n:]
			if got := p.answer(); got != want[done] {
				t.Fatalf("cut at %d: %s, want %s", i, got, want[done])
			}
		}
		p.send(pipeline[i:])
		for _, w := range want[done:] {
			if got := p.answer(); got != w {
				t.Fatalf("cut at %d: %s, want %s", i, got, w)
			}
		}
	}
}

// complete is how long the first command of text is, 0 where it is cut off.
func complete(text string) int {
	if !strings.HasPrefix(text, "*") {
		return strings.Index(text, "\n") + 1
	}
	lines := strings.Index(text, "\r\n")
	if lines < 0 {
		return 0
	}
	n, _ := strconv.Atoi(text[1:lines])
	at := lines + 2
	for range n {
		end := strings.Index(text[at:], "\r\n")
		if end < 0 {
			return 0
		}
		size, _ := strconv.Atoi(text[at+1 : at+end])
		at += end + 2 + size + 2
		if at > len(text) {
			return 0
		}
	}
	return at
}

// A client that sends a million commands, and says that there will be no more, before
// it reads one answer gets all of them.
func TestMillion(t *testing.T) {
	million := 1_000_000
	if raceDetector {
		million /= 5
	}
	w := serve(t, nil, nil)
	p := dial(t, w)
	sent := bufio.NewWriterSize(p.Conn, 1<<20)
	for range million {
		sent.WriteString("*2\r\n$4\r\nINCR\r\n$5\r\nphoto\r\n")
	}
	if err := sent.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := p.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for i := range million {
		line, err := p.r.ReadSlice('\n')
		if err != nil {
			t.Fatal(err)
		}
		id, err := strconv.ParseInt(strings.TrimSpace(string(line[1:])), 10, 64)
		if err != nil || id <= last {
			t.Fatalf("answer %d: %q after %d (%v)", i, line, last, err)
		}
		last = id
	}
}

// One that never reads is sent away, and what it holds is bounded.
func TestNeverReads(t *testing.T) {
	w := serve(t, nil, &resp.Options{Patience: patience})
	p := dial(t, w)
	command := []byte(strings.Repeat(array("FIRN.NEXT", "photo", "1000"), 100))
	for {
		if _, err := p.Write(command); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("it is still there")
			}
			break
		}
	}
	if got := dial(t, w).do("INCR", "orders"); got != ":1" {
		t.Errorf("%.80s", got) // nothing of it is left for somebody else
	}
}
