package term_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
)

func (x *script) fresh(name string) *actor {
	a := x.actor(name)
	a.rules.Choice = term.Fresh
	return a
}

// A fresh worker is one that nobody ever had, until there is none.
func TestFresh(t *testing.T) {
	x := newScript(t)
	x.workers(2, 4)
	for n := int64(2); n < 6; n++ {
		a := x.fresh("a").until(term.Noting).does(term.Put, "pool/pool/fresh").until(term.Holding)
		if a.s.Worker != n || a.s.Have.Term != 1 {
			t.Errorf("%d: worker %d, %+v", n, a.s.Worker, a.s.Have)
		}
		a.step(term.Stop{}).answer().is(term.Released)
	}
	a := x.fresh("b").until(term.Refused).fails(term.Refused, `lease: each of the 4 workers of pool "pool" was held before; none is fresh; leave out Options.Choice to take any free one, or give the pool more workers by "firn pool set"`)
	var fresh *term.FreshError
	if !errors.As(a.s.Err, &fresh) || fresh.Workers != 4 {
		t.Errorf("%#v", a.s.Err)
	}
}

// Contenders share what is left, to the last one.
func TestFreshContenders(t *testing.T) {
	x := newScript(t)
	x.workers(0, 64)
	all := make([]*actor, 16)
	for i := range all {
		all[i] = x.fresh("a").pending(term.Taking)
	}
	for round := 0; round < 40; round++ {
		for _, a := range all {
			if a.s.Phase < term.Noting {
				a.answer()
			}
		}
	}
	for _, a := range all {
		if a.until(term.Holding); a.s.Have.Term != 1 {
			t.Errorf("%+v", a.s.Have)
		}
	}

	// Defeated once, where only the next worker is left.
	x = newScript(t)
	x.workers(0, 2)
	for range 20 {
		x.forgetAll()
		x.write(term.KeyPool("pool"), pool("one", firn.Default(), 0).Encode())
		x.workers(0, 2)
		a, b := x.fresh("a").pending(term.Taking), x.fresh("b").pending(term.Taking)
		a.until(term.Holding)
		if b.until(term.Holding); b.s.Worker != 1 {
			t.Fatalf("took %d", b.s.Worker)
		}
	}
}

// A hint that is lost, refused or wrong does no harm.
func TestHint(t *testing.T) {
	x := newScript(t)
	x.fresh("a").until(term.Noting).step(term.Unknown{Err: errAway}).is(term.Confirming).until(term.Holding)
	x.fresh("b").until(term.Noting).step(term.Conflict{}).is(term.Confirming).until(term.Holding)
	if a := x.fresh("c").until(term.Holding); a.s.Worker < 2 {
		t.Errorf("worker %d, %+v", a.s.Worker, a.s.Have)
	}
	x.write("pool/pool/fresh", []byte(`{"v":1,"next":-7}`))
	x.fresh("d").until(term.Holding)
	x.write("pool/pool/fresh", []byte(`{"v":2}`))
	x.fresh("e").until(term.Refused).fails(term.Refused, "store: record pool/pool/fresh: has format 2, written by a later firn; this one knows 1")
}

// While the pool's floor lies too far ahead no worker is used up in vain.
func TestFreshBelowFloor(t *testing.T) {
	x := newScript(t)
	x.write(term.KeyPool("pool"), pool("one", firn.Default(), x.tick(time.Minute)).Encode())
	x.fresh("a").until(term.Refused).fails(term.Refused,
		`lease: the ids of pool "pool" start at 2026-03-01T12:01:00Z, because an earlier process may have issued ids up to then: call again at that time, or set Options.Wait to 1m10s to wait for it`)
	if r := x.worker(0); r.Term != 0 {
		t.Errorf("%+v", r)
	}
	x.pass(50 * time.Second)
	if a := x.fresh("a").until(term.Holding); a.s.Worker != 0 || a.s.Base != x.tick(time.Minute) {
		t.Errorf("worker %d above %d", a.s.Worker, a.s.Base)
	}
}
