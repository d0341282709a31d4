package firn_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/firn-id/firn"
)

// A model says what a generator has to do, one call after the other, slowly and
// with ticks and sequences apart.
type model struct {
	layout firn.Layout
	grant  firn.Grant
	shard  int64
	borrow firn.Tick
	even   int64 // how many classes of the sequence take turns

	now     time.Time // what the generator takes it to be
	allowed firn.Tick // the highest that the clock has allowed so far
	tick    firn.Tick // of the number issued last, and its sequence
	seq     int64
	any     bool // the sequence is not known: nothing was issued
	closed  bool
}

// step returns the next id, or why there is none: nil and 0 if it is the clock.
func (m *model) step() (tick firn.Tick, seq int64, err error) {
	if m.closed {
		return 0, 0, firn.ErrClosed
	}
	now := max(m.layout.Tick(m.now), 0)
	m.allowed = max(m.allowed, now+m.borrow)
	tick, seq = m.tick, m.seq+1
	if seq >= m.sequences() {
		tick, seq = tick+1, 0
	}
	if tick < now {
		tick, seq = now, seq%m.even
	}
	switch {
	case now <= m.grant.Horizon && tick <= m.grant.Horizon:
		if tick <= m.allowed {
			return tick, seq, nil
		}
		return 0, 0, nil
	case m.grant.Horizon == m.layout.Last():
		return 0, 0, &firn.EndError{Layout: m.layout, End: m.layout.End()}
	}
	return 0, 0, &firn.HorizonError{Horizon: m.layout.Time(m.grant.Horizon + 1).Add(-1)}
}

func (m *model) sequences() int64 { return 1 << seqBits(m.layout) }

// issue says how what a call for n ids returned is not what it has to.
func (m *model) issue(got []firn.ID, err error, n int, busy error) error {
	for i := range n {
		tick, seq, want := m.step()
		if want == nil && tick == 0 {
			want = busy
		}
		if want != nil || tick == 0 {
			if len(got) != i || !sameError(err, want) {
				return fmt.Errorf("%d ids and %v, want %d and %v", len(got), err, i, want)
			}
			return nil
		}
		if i >= len(got) {
			return fmt.Errorf("%d ids and %v, the next one is of tick %d, sequence %d", len(got), err, tick, seq)
		}
		p, bad := m.layout.Decode(got[i])
		if m.any { // it may begin with any
			if p.Seq >= m.even {
				return fmt.Errorf("the first sequence is %d, at most %d", p.Seq, m.even-1)
			}
			seq, m.any = p.Seq, false
		}
		want2 := firn.Parts{Tick: tick, Time: m.layout.Time(tick), Seq: seq, Worker: m.grant.Worker, Shard: m.shard}
		if bad != nil || p != want2 {
			return fmt.Errorf("id %d, %+v, want %+v, %v", got[i], p, want2, bad)
		}
		m.tick, m.seq = tick, seq
	}
	if len(got) != n || err != nil {
		return fmt.Errorf("%d ids and %v, want %d", len(got), err, n)
	}
	return nil
}

func sameError(got, want error) bool {
	var horizon, wantHorizon *firn.HorizonError
	var end, wantEnd *firn.EndError
	switch {
	case errors.As(want, &wantHorizon):
		return errors.As(got, &horizon) && horizon.Horizon.Equal(wantHorizon.Horizon)
	case errors.As(want, &wantEnd):
		return errors.As(got, &end) && *end == *wantEnd
	}
	return errors.Is(got, want)
}

func drawLayout(t *rapid.T) firn.Layout {
	fields := rapid.Permutation([]string{"time", "seq", "shard", "worker", "rack"}).Draw(t, "order")
	unit := rapid.SampledFrom([]string{"1us", "20us", "1ms", "10ms", "100ms", "1s", "1h"}).Draw(t, "tick")
	width := map[string]int{
		"time": rapid.SampledFrom([]int{4, 8, 16, 24, 40}).Draw(t, "time"),
		"seq":  rapid.IntRange(0, 6).Draw(t, "seq"), "shard": rapid.IntRange(0, 4).Draw(t, "shard"),
		"worker": rapid.IntRange(0, 4).Draw(t, "worker"), "rack": rapid.IntRange(0, 2).Draw(t, "rack"),
	}
	if fields[0] == "time" && rapid.IntRange(0, 2).Draw(t, "sign") == 0 { // 64 bits
		width["time"] = min(64-width["seq"]-width["shard"]-width["worker"]-width["rack"], 54)
		width["worker"] = 64 - width["time"] - width["seq"] - width["shard"] - width["rack"]
	}
	spec := ""
	for _, name := range fields {
		if width[name] == 0 {
			continue
		}
		if spec != "" {
			spec += ","
		}
		spec += name + ":" + strconv.Itoa(width[name])
		if name == "time" {
			spec += "@" + unit
		}
	}
	l, err := firn.ParseLayout(spec + ";epoch=2000-01-01T00:00:00Z")
	if err != nil {
		t.Skip(err) // longer than a layout may last
	}
	return l
}

// farthest is the last tick that a test goes to: within its layout's life, and
// near enough for an epoch after 1970.
func farthest(l firn.Layout) int64 {
	return min(int64(l.Last()), int64(25*365*24*time.Hour/l.Unit()))
}

// drawAge is the time since the epoch, often at an edge of the layout's life.
func drawAge(t *rapid.T, l firn.Layout) time.Duration {
	tick := rapid.OneOf(
		rapid.Int64Range(0, min(farthest(l), 20)),
		rapid.Int64Range(max(farthest(l)-20, 0), farthest(l)),
		rapid.Int64Range(0, farthest(l)),
	).Draw(t, "at")
	return time.Duration(tick)*l.Unit() + time.Duration(rapid.Int64Range(0, int64(l.Unit())-1).Draw(t, "within"))
}

// A step is a call, or something that happens between two.
type step struct {
	what string
	n    int64
}

var steps = map[string]*rapid.Generator[int64]{
	"Next":        rapid.Just[int64](1),
	"Try":         rapid.Just[int64](1),
	"Append":      rapid.Int64Range(0, 300),
	"TryAppend":   rapid.Int64Range(0, 300),
	"moment":      rapid.Int64Range(0, 1000), // thousandths of a tick pass
	"time":        rapid.Int64Range(0, 40),   // ticks pass
	"stepped":     rapid.Int64Range(-40, 10), // the clock that the generator reads is, by ticks
	"SetClock":    rapid.Int64Range(-40, 40), // by ticks
	"SetClock to": rapid.Int64Range(0, 1100), // thousandths of the layout's life
	"Extend":      rapid.Int64Range(-20, 60), // by ticks
	"Close":       rapid.Just[int64](0),
}

// kinds has calls often, and Close seldom.
var kinds = []string{
	"Next", "Next", "Next", "Try", "Try", "Append", "Append", "Append", "TryAppend", "TryAppend",
	"moment", "moment", "time", "time", "stepped", "SetClock", "SetClock to", "Extend", "Extend", "Close",
}

func drawStep(t *rapid.T) step {
	what := rapid.SampledFrom(kinds).Draw(t, "what")
	return step{what, steps[what].Draw(t, "n")}
}

// A run is a generator and its model, side by side.
type run struct {
	model
	g    *firn.Generator
	pass func(time.Duration) // lets time go on
}

func (r *run) do(s step) error {
	switch s.what {
	case "Next":
		got, err := one(r.g.Next(done))
		return r.issue(got, err, 1, context.Canceled)
	case "Try":
		got, err := one(r.g.Try())
		return r.issue(got, err, 1, firn.ErrBusy)
	case "Append":
		got, err := r.g.Append(done, nil, int(s.n))
		return r.issue(got, err, int(s.n), context.Canceled)
	case "TryAppend":
		got, err := r.g.TryAppend(nil, int(s.n))
		return r.issue(got, err, int(s.n), nil)
	case "moment":
		r.move(time.Duration(s.n) * r.layout.Unit() / 1000)
	case "time", "stepped":
		r.move(time.Duration(s.n) * r.layout.Unit())
	case "SetClock":
		r.now = r.now.Add(time.Duration(s.n) * r.layout.Unit())
		r.g.SetClock(r.now)
	case "SetClock to":
		r.now = r.layout.Time(firn.Tick(farthest(r.layout) / 1000 * s.n))
		r.g.SetClock(r.now)
	case "Extend":
		to := r.grant.Horizon + firn.Tick(s.n)
		r.g.Extend(to)
		r.grant.Horizon = min(max(r.grant.Horizon, to), r.layout.Last())
	case "Close":
		horizon := r.grant.Horizon
		if last := r.g.Close(); !r.closed && (last < r.tick || last > horizon) {
			return fmt.Errorf("Close returned %d; %d was issued, of (%d, %d]", last, r.tick, r.grant.Base, horizon)
		}
		r.closed = true
	}
	return nil
}

func (r *run) move(d time.Duration) {
	r.pass(d)
	r.now = r.now.Add(d)
}

// done is the context of calls that would wait.
var done = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// A plan is all that is drawn, before anything runs.
type plan struct {
	layout        firn.Layout // but for its epoch
	age           time.Duration
	lead, reach   int64 // from the clock's tick to the base, and on to the horizon
	worker, shard int64
	borrow        time.Duration
	steps         []step
}

func drawPlan(t *rapid.T) plan {
	l := drawLayout(t)
	borrow := rapid.SampledFrom([]time.Duration{0, -1, l.Unit(), firn.MaxBorrow}).Draw(t, "borrow")
	return plan{
		layout: l, age: drawAge(t, l),
		lead:   rapid.Int64Range(-5, 5).Draw(t, "lead"),
		reach:  rapid.Int64Range(0, 50).Draw(t, "reach"),
		worker: rapid.Int64Range(0, l.Workers()-1).Draw(t, "worker"),
		shard:  rapid.Int64Range(0, l.Shards()-1).Draw(t, "shard"),
		borrow: min(borrow, firn.MaxBorrow),
		steps:  rapid.SliceOfN(rapid.Custom(drawStep), 20, -1).Draw(t, "steps"),
	}
}

// follow runs the plan. It begins at now; read is the generator's clock, or nil
// for the system's, which is not stepped.
func (p plan) follow(now time.Time, read func() time.Time, pass func(time.Duration)) error {
	fields, _, _ := strings.Cut(p.layout.String(), ";")
	l := firn.MustLayout(fields + ";epoch=" + now.Add(-p.age).UTC().Format(time.RFC3339Nano))
	base := min(max(l.Tick(now)+firn.Tick(p.lead), 0), l.Last())
	r := run{pass: pass, model: model{
		layout: l, shard: p.shard, now: now, any: true,
		grant:   firn.Grant{Worker: p.worker, Base: base, Horizon: min(base+firn.Tick(p.reach), l.Last())},
		allowed: base, tick: base, seq: 1<<seqBits(l) - 1,
		borrow: firn.Tick(max(p.borrow, 0) / l.Unit()), even: 1 << seqBits(l),
	}}
	if p.borrow == 0 {
		r.borrow = firn.Tick(firn.DefaultBorrow / l.Unit())
	}
	if r.borrow == 0 {
		r.even = max(r.even/4, 1)
	}
	var err error
	r.g, err = firn.NewGenerator(l, r.grant, &firn.GeneratorOptions{Shard: p.shard, Borrow: p.borrow, Now: read})
	if err != nil {
		return err
	}
	for i, s := range p.steps {
		if s.what == "stepped" && read == nil {
			continue
		}
		if err := r.do(s); err != nil {
			return fmt.Errorf("layout %s, step %d, %s: %w", l, i, s.what, err)
		}
	}
	return nil
}

func TestGeneratorIsTheModel(t *testing.T) {
	const times = 10 // as often as rapid has been told to
	t.Run("with a clock of its own", func(t *testing.T) {
		for range times {
			rapid.Check(t, func(t *rapid.T) {
				p := drawPlan(t)
				c := &manual{year}
				if err := p.follow(c.at, c.now, c.move); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
	t.Run("with the system's", func(t *testing.T) {
		for range times {
			rapid.Check(t, func(r *rapid.T) {
				p := drawPlan(r)
				var err error
				synctest.Test(t, func(*testing.T) { err = p.follow(time.Now(), nil, time.Sleep) })
				if err != nil {
					r.Fatal(err)
				}
			})
		}
	})
}
