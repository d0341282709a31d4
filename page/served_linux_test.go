//go:build linux && (amd64 || arm64)

package page

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/pagefile"
	"golang.org/x/sys/unix"
)

// What a page that was damaged says does not depend on who looks first: the lease, which extends it, or Serve.
func TestDamageIsRemembered(t *testing.T) {
	h := &pagefile.Header{}
	if err := h.SetLayout(firn.MustLayout("firn"), 7, 0, 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	h.Base = h.Last(1000)
	b, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s := &served{header: h, bytes: b, memory: make(mapped, pagefile.Size)}
	copy(s.memory, b)
	s.agent = pagefile.NewAgent(h, s.memory, 2000)
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	s.memory.Store(pagefile.Number, 0)
	s.Extend(3000)
	if got := s.memory.Load(pagefile.Horizon); got != h.Last(2000) {
		t.Errorf("the horizon of a damaged page rose to %d", got)
	}
	for range 2 {
		if err := s.check(); err == nil || !strings.Contains(err.Error(), "lowered") {
			t.Errorf("%v, want that its word was lowered", err)
		}
	}
}

// An agent that is held up between the reading of its clock and SetClock does not set clients back: they would wait for as
// long. A clock that is led back slowly is followed, and a step forward too.
func TestSetClockLate(t *testing.T) {
	l := firn.MustLayout("firn")
	s := &served{header: &pagefile.Header{}, epoch: l.Epoch(), memory: make(mapped, pagefile.Size)}
	lag := func() time.Duration {
		return time.Since(l.Epoch().Add(time.Duration(monotonic() + int64(s.memory.Load(pagefile.Monotonic)))))
	}
	const near = 40 * time.Millisecond                                   // this test may be held up too
	for s.SetClock(time.Now()); lag() > near/4; s.SetClock(time.Now()) { // this test was held up
		s.setAt = 0
	}
	for range 5 {
		s.SetClock(time.Now().Add(-300 * time.Millisecond))
		if d := lag(); d > near {
			t.Fatalf("after a late call the clock of clients is %s behind", d)
		}
	}
	s.SetClock(time.Now().Add(time.Hour))
	if d := lag(); d > near-time.Hour {
		t.Errorf("after a step forward of an hour the clock of clients is %s behind", d)
	}
	begun := time.Now()
	for ; time.Since(begun) < time.Second; time.Sleep(10 * time.Millisecond) {
		s.SetClock(time.Now())
	}
	want := time.Since(begun) / 20
	if d := lag() + time.Hour; (d - want).Abs() > near/2 {
		t.Errorf("a clock that is an hour behind is followed by %s in a second, want %s", d, want)
	}
	real := l.Epoch().Add(time.Duration(clock(unix.CLOCK_REALTIME) + int64(s.memory.Load(pagefile.Realtime))))
	if d := time.Until(real) - time.Hour + want; d.Abs() > near {
		t.Errorf("by CLOCK_REALTIME the clock of clients is off by %s", d)
	}
}
