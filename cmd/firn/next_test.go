package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/store/memory"
)

// numbers is a source that counts, and fails at the end if there is one.
type numbers struct {
	last, end firn.ID
	err       error
}

func (s *numbers) Next(context.Context) (firn.ID, error) { panic("not used") }

func (s *numbers) Append(_ context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	for range n {
		if s.end != 0 && s.last == s.end {
			return dst, s.err
		}
		s.last++
		dst = append(dst, s.last)
	}
	return dst, nil
}

// writes are the sizes of what was written, which has to be whole lines.
type writes struct {
	t     *testing.T
	sizes []int
}

func (w *writes) Write(b []byte) (int, error) {
	if !bytes.HasSuffix(b, []byte("\n")) {
		w.t.Errorf("a write of %d bytes ends in a line", len(b))
	}
	w.sizes = append(w.sizes, len(b))
	return len(b), nil
}

// A write is what a pipe takes whole, however long the lines are.
func TestPrinterOfLongLines(t *testing.T) {
	s, err := document.Open(t.Context(), memory.New(), "s", &document.Options{Pattern: strings.Repeat("<", 120) + "{6}"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, asJSON := range []bool{false, true} {
		w := &writes{t: t}
		p := newPrinter(w, &textSource{src: s, json: asJSON}, plenty)
		if err := p.print(t.Context(), 200); err != nil {
			t.Fatal(err)
		}
		if most := slices.Max(w.sizes); most > p.whole || p.written.Load() != 200 || len(w.sizes) == 200 {
			t.Errorf("json %v: up to %d bytes in one of %d writes, %d lines", asJSON, most, len(w.sizes), p.written.Load())
		}
	}
}

func TestPrinter(t *testing.T) {
	for _, n := range []int64{1, 2, 203, 204, 205, 10_000} {
		for _, asJSON := range []bool{false, true} {
			var out bytes.Buffer
			p := newPrinter(&out, &idSource{src: &numbers{}, json: asJSON}, 4_096_000)
			if err := p.print(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			var want strings.Builder
			for i := int64(1); i <= n; i++ {
				if asJSON {
					fmt.Fprintf(&want, "{\"id\":\"%d\"}\n", i)
				} else {
					fmt.Fprintln(&want, i)
				}
			}
			if out.String() != want.String() || p.written.Load() != n {
				t.Errorf("n %d, json %v: %d lines, counted %d", n, asJSON, strings.Count(out.String(), "\n"), p.written.Load())
			}
		}
	}
}

// limited is a disk with room for so many bytes.
type limited struct {
	room int
	bytes.Buffer
}

var errFull = errors.New("no space left on device")

func (l *limited) Write(b []byte) (int, error) {
	if len(b) <= l.room {
		l.room -= len(b)
		return l.Buffer.Write(b)
	}
	n, _ := l.Buffer.Write(b[:l.room])
	l.room = 0
	return n, errFull
}

// What is said to be written are the whole lines that were.
func TestPrinterDiskFull(t *testing.T) {
	for _, room := range []int{0, 1, 2, 3, 5000, 5001, 5002, 5003} {
		out := limited{room: room}
		p := newPrinter(&out, &idSource{src: &numbers{}}, 4_096_000)
		err := p.print(t.Context(), 1_000_000)
		want := fmt.Sprintf("no space left on device; %s of 1,000,000 ids were written", phrase.Count(int64(strings.Count(out.String(), "\n"))))
		var f *ui.Failure
		if !errors.As(err, &f) || f.Code != ui.ExitFailed || f.Error() != want || !errors.Is(err, errFull) {
			t.Errorf("room %d: %v, want %s", room, err, want)
		}
	}
}

// When the source fails, what it gave before is printed.
func TestPrinterSourceFails(t *testing.T) {
	var out bytes.Buffer
	src := &idSource{src: &numbers{end: 7, err: errors.New("lease: the store is gone")}}
	p := newPrinter(&out, src, 4_096_000)
	err := p.print(t.Context(), 10)
	if err == nil || err.Error() != "lease: the store is gone; 7 of 10 ids were written" {
		t.Errorf("error %v", err)
	}
	if out.String() != "1\n2\n3\n4\n5\n6\n7\n" {
		t.Errorf("printed %q", out.String())
	}
}

// A reader that has stalled does not keep the command from ending.
func TestPrinterStuckWrite(t *testing.T) {
	r, w := io.Pipe() // nobody reads
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	start := time.Now()
	if err := newPrinter(w, &idSource{src: &numbers{}}, 4_096_000).runUntil(ctx, 1000); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("took %s", d)
	}
}

// A slow layout does not hold back what it has until a write is full.
func TestPrinterBatch(t *testing.T) {
	for _, tt := range []struct {
		rate     float64
		min, max int
	}{{0.5, 1, 1}, {16, 1, 1}, {1000, 50, 50}, {1e9, 25, 204}} {
		if got := newPrinter(io.Discard, &idSource{}, tt.rate).batch; got < tt.min || got > tt.max {
			t.Errorf("rate %v: batch %d, want %d to %d", tt.rate, got, tt.min, tt.max)
		}
	}
}

// broken fails as a connection does that was closed.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, fmt.Errorf("write: %w", syscall.EPIPE) }

// A closed pipe is no error on standard output, and one anywhere else.
func TestReportClosedPipe(t *testing.T) {
	_, err := (&ui.Output{Writer: broken{}}).Write([]byte("1\n"))
	if code := report(io.Discard, nil, errors.Join(err, nil)); code != 0 {
		t.Errorf("on standard output: exit code %d", code)
	}
	_, err = broken{}.Write(nil)
	if code := report(io.Discard, nil, fmt.Errorf("store: %w", err)); code != ui.ExitFailed {
		t.Errorf("to a store: exit code %d", code)
	}
}
