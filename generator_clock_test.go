package firn_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
)

// spent fails if err is not the one of a grant that ends with a tick.
func spent(t testing.TB, err error, l firn.Layout, horizon firn.Tick) {
	t.Helper()
	var e *firn.HorizonError
	if !errors.As(err, &e) || !e.Horizon.Equal(l.Time(horizon+1).Add(-1)) {
		t.Fatalf("error %v, want that of a grant up to %s", err, l.Time(horizon+1).Add(-1))
	}
}

// askInVain has callers of all kinds refused.
func askInVain(t *testing.T, g *firn.Generator, l firn.Layout, horizon firn.Tick) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 10_000 {
				var err error
				var ids []firn.ID
				switch i % 4 {
				case 0, 1:
					_, err = g.Next(t.Context())
				case 2:
					ids, err = g.Append(t.Context(), nil, 100)
				case 3:
					_, err = g.Try()
				}
				var e *firn.HorizonError
				if len(ids) > 0 || !errors.As(err, &e) || !e.Horizon.Equal(l.Time(horizon+1).Add(-1)) {
					t.Errorf("after the horizon: %d ids, %v", len(ids), err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// After the clock has passed the horizon no call uses anything up: once the
// grant is extended, ids go on with the clock's tick.
func TestHorizonPassedByTheClock(t *testing.T) {
	for _, l := range []firn.Layout{usual, small, bare} {
		synctest.Test(t, func(t *testing.T) {
			now := l.Tick(time.Now())
			grant := firn.Grant{Worker: 3, Base: now - 1, Horizon: now + 3}
			g := generator(t, l, grant, nil)
			before := number(t, l, next(t, g))
			time.Sleep(3 * l.Unit())
			if p := decode(t, l, next(t, g)); p.Tick != now+3 {
				t.Fatalf("tick %d, the clock's is %d", p.Tick, now+3)
			}
			time.Sleep(l.Unit())
			askInVain(t, g, l, grant.Horizon)
			g.Extend(now + 1000)
			n := number(t, l, next(t, g))
			if tick := n >> seqBits(l); tick != int64(now)+4 {
				t.Fatalf("tick %d after the extension, the clock's is %d", tick, now+4)
			}
			if seqBits(l) > 0 && (n-before)%16 != 2 {
				t.Errorf("sequence %d after %d and one between", n%16, before%16)
			}
		})
	}
}

// After the sequence has come to the horizon, ahead of the clock, ids go on
// with the very next number.
func TestHorizonReachedByTheSequence(t *testing.T) {
	for _, l := range []firn.Layout{usual, small, bare} {
		synctest.Test(t, func(t *testing.T) {
			now := l.Tick(time.Now())
			grant := firn.Grant{Worker: 3, Base: now - 1, Horizon: now + 3}
			g := generator(t, l, grant, nil)
			var last firn.ID
			for {
				id, err := g.Next(t.Context())
				if err != nil {
					spent(t, err, l, grant.Horizon)
					break
				}
				last = id
			}
			if want := int64(grant.Horizon+1)<<seqBits(l) - 1; number(t, l, last) != want {
				t.Fatalf("the last number is %d of %d", number(t, l, last), want)
			}
			askInVain(t, g, l, grant.Horizon)
			g.Extend(now + 1000)
			if n := number(t, l, next(t, g)); n != number(t, l, last)+1 {
				t.Fatalf("number %d after %d", n, number(t, l, last))
			}
		})
	}
}

// Callers that give up, of their own or because they are refused, leave nothing
// behind, in whatever order they do.
func TestGivenBackInAnyOrder(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			now := coarse.Tick(time.Now())
			// Callers wait for some ticks of the grant, and are refused after those.
			g := generator(t, coarse, firn.Grant{Base: now - 1, Horizon: now + 3}, nil)
			ids := drain(t, g)
			last := number(t, coarse, ids[len(ids)-1])
			var wg sync.WaitGroup
			for range 60 {
				wg.Go(func() {
					time.Sleep(rand.N(20 * time.Millisecond))
					ctx, cancel := context.WithTimeout(t.Context(), rand.N(50*time.Millisecond))
					defer cancel()
					if id, err := g.Next(ctx); err == nil {
						t.Errorf("id %d ahead of the clock", id)
					}
				})
			}
			wg.Wait()
			g.Extend(now + 10)
			time.Sleep(time.Until(coarse.Time(now + 1)))
			for range 16 {
				n := number(t, coarse, next(t, g))
				if n != last+1 {
					t.Fatalf("number %d after %d", n, last)
				}
				last = n
			}
		})
	}
}

// A number that was given back is lost when its time has passed: calls that
// begin later get higher ones.
func TestGivenBackAndPassed(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			g := generator(t, coarse, grantOf(coarse, time.Hour), nil)
			drain(t, g)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() {
					if id, err := g.Next(ctx); !errors.Is(err, context.Canceled) {
						t.Error(id, err)
					}
				})
			}
			synctest.Wait()
			wg.Go(func() { next(t, g) })
			synctest.Wait()
			cancel()
			time.Sleep(time.Millisecond)
			g.SetClock(coarse.Time(coarse.Tick(time.Now()) + 1))
			var last firn.ID
			for _, id := range drain(t, g) {
				last = max(last, id)
			}
			if id := next(t, g); id <= last {
				t.Errorf("id %d after %d", id, last)
			}
			wg.Wait()
		})
	}
}

// Callers who give up make room for those who come after them: more of them
// than there are ids take nothing from those who stay. They do it for longer in make full.
func TestCallersWhoGiveUpTakeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		grant := grantOf(coarse, time.Hour)
		g := generator(t, coarse, grant, nil)
		in := inspect(t, coarse, grant, 0)
		seconds := 5
		if testserver.Long() {
			seconds = 20
		}
		var wg sync.WaitGroup
		end := time.Now().Add(time.Duration(seconds) * time.Second)
		for range 100 {
			wg.Go(func() {
				for time.Now().Before(end) {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond+rand.N(40*time.Millisecond))
					in.call(func() ([]firn.ID, error) { return one(g.Next(ctx)) })
					cancel()
				}
			})
		}
		wg.Wait()
		// It begins within a tick and its sequence in its first quarter.
		if n, most := len(in.unique()), seconds*int(coarse.Rate()); n < most*95/100 || n > most+16 {
			t.Errorf("%d ids in %d s, there are %d", n, seconds, most)
		}
	})
}

// Callers of Append wait in line with the others.
func TestAppendIsServedAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := generator(t, small, grantOf(small, time.Hour), nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				for ctx.Err() == nil {
					g.Next(ctx)
				}
			})
		}
		time.Sleep(time.Second)
		from := time.Now()
		ids, err := g.Append(t.Context(), nil, 20)
		// Each of 20 rounds is for 101 callers, 16 a tick.
		if d := time.Since(from); err != nil || len(ids) != 20 || d > 200*time.Millisecond {
			t.Errorf("%d of 20 ids after %s, %v", len(ids), d, err)
		}
		cancel()
		wg.Wait()
	})
}

// A caller that holds a number of the grant is not refused because the grant is
// used up behind it.
func TestHolderBelowTheHorizonIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := small.Tick(time.Now())
		g := generator(t, small, firn.Grant{Base: now - 1, Horizon: now + 1}, &firn.GeneratorOptions{Borrow: -1})
		drain(t, g)
		var wg sync.WaitGroup
		var served, refused atomic.Int32
		for range 40 { // 16 numbers are left
			wg.Go(func() {
				switch _, err := g.Next(t.Context()); {
				case err == nil:
					served.Add(1)
				default:
					spent(t, err, small, now+1)
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		if n := refused.Load(); n != 24 {
			t.Errorf("%d callers were refused at once, 24 are too many", n)
		}
		g.SetClock(small.Time(now).Add(-10 * time.Millisecond)) // they have to wait longer
		time.Sleep(5 * time.Millisecond)
		askInVain(t, g, small, now+1)
		wg.Wait()
		if n := served.Load(); n != 16 {
			t.Errorf("%d callers were served, 16 had a number of the grant", n)
		}
	})
}

func TestExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := usual.Tick(time.Now())
		g := generator(t, usual, firn.Grant{Base: now - 1, Horizon: now + 10}, nil)
		for _, lower := range []firn.Tick{now + 9, now - 1, 0, -1, -2, -1 << 20, -1 << 52, -1 << 63} {
			g.Extend(lower)
			if n := len(drainTo(t, g)); n > 11<<12 {
				t.Fatalf("%d ids of 11 ticks after Extend(%d)", n, lower)
			}
		}
		g.Extend(now + 11)
		if p := decode(t, usual, next(t, g)); p.Tick != now+11 {
			t.Fatalf("tick %d, extended to %d", p.Tick, now+11)
		}
		time.Sleep(5 * time.Millisecond)
		drainTo(t, g)
		_, err := g.Next(t.Context())
		spent(t, err, usual, now+11)
		g.Extend(1<<63 - 1) // as far as the layout goes
		next(t, g)
	})
}

// drainTo takes what is there up to the horizon.
func drainTo(t *testing.T, g *firn.Generator) (ids []firn.ID) {
	t.Helper()
	for {
		id, err := g.Try()
		if err != nil {
			return ids
		}
		ids = append(ids, id)
	}
}

// An empty grant can be extended like any other.
func TestEmptyGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, l := range []firn.Layout{usual, bare} {
			for _, base := range []firn.Tick{0, l.Tick(time.Now())} {
				g := generator(t, l, firn.Grant{Base: base, Horizon: base}, nil)
				_, err := g.Next(t.Context())
				spent(t, err, l, base)
				g.Extend(l.Tick(time.Now()) + 1)
				if p := decode(t, l, next(t, g)); p.Tick <= base {
					t.Errorf("tick %d, base %d", p.Tick, base)
				}
			}
		}
	})
}

func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := generator(t, usual, grantOf(usual, 4*time.Hour), nil)
		last := number(t, usual, next(t, g))
		was := usual.Tick(time.Now())
		g.SetClock(time.Now().Add(-time.Hour))
		for _, id := range drain(t, g) {
			n := number(t, usual, id)
			if n != last+1 {
				t.Fatalf("number %d after %d", n, last)
			}
			last = n
		}
		if want := int64(was+10+1)<<12 - 1; last != want {
			t.Fatalf("the last number without waiting is %d, %d may be borrowed", last, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		from := time.Now()
		if _, err := g.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(from) != time.Minute {
			t.Fatalf("%v after %s", err, time.Since(from))
		}
		// The tick after those that are used up may be borrowed again in an
		// hour, and a millisecond for the tick itself.
		if n := number(t, usual, next(t, g)); n != last+1 || time.Since(from).Round(time.Millisecond) != time.Hour+time.Millisecond {
			t.Fatalf("number %d after %d, %s later", n, last, time.Since(from))
		}
		g.SetClock(time.Now().Add(2 * time.Hour))
		if p := decode(t, usual, next(t, g)); p.Tick != usual.Tick(time.Now().Add(2*time.Hour)) {
			t.Fatalf("tick %d, two hours on it is %d", p.Tick, usual.Tick(time.Now().Add(2*time.Hour)))
		}
	})
}

// Callers who wait for a clock that was set back are woken when it is set right.
func TestClockSetWhileCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := generator(t, usual, grantOf(usual, time.Hour), nil)
		drain(t, g)
		g.SetClock(time.Now().Add(-time.Hour))
		from := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := g.Next(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := g.Append(t.Context(), nil, 10); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		time.Sleep(time.Second)
		g.SetClock(time.Now().Add(-time.Hour / 2)) // not yet
		time.Sleep(time.Second)
		g.SetClock(time.Now())
		wg.Wait()
		if d := time.Since(from); d > 2*time.Second+20*time.Millisecond {
			t.Errorf("calls returned after %s, the clock was set right after 2s", d)
		}
	})
}

func TestClockBeforeTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		early := func() time.Time { return usual.Epoch().Add(-time.Hour) }
		var e *firn.EpochError
		if _, err := firn.NewGenerator(usual, firn.Grant{Horizon: 10}, &firn.GeneratorOptions{Now: early}); !errors.As(err, &e) {
			t.Fatal(err)
		}
		g := generator(t, usual, grantOf(usual, time.Hour), nil)
		last := number(t, usual, next(t, g))
		for _, at := range []time.Time{early(), time.Unix(0, 0), usual.Epoch()} {
			g.SetClock(at)
			if n := number(t, usual, next(t, g)); n != last+1 {
				t.Fatalf("number %d after %d", n, last)
			}
			last++
		}
		// A generator whose grant is not yet due waits for its clock to get there.
		g = generator(t, usual, firn.Grant{Base: 3600_000, Horizon: 1 << 40}, nil)
		g.SetClock(early())
		from := time.Now()
		p := decode(t, usual, next(t, g))
		if d := time.Since(from).Round(time.Millisecond); p.Tick != 3600_001 || d != 2*time.Hour+time.Millisecond-10*time.Millisecond {
			t.Errorf("tick %d after %s", p.Tick, d)
		}
	})
}

// A caller that is paused while it reads the clock gets nothing that is not
// allowed when it goes on.
func TestPausedCaller(t *testing.T) {
	for _, what := range []string{"nothing", "horizon", "close"} {
		synctest.Test(t, func(t *testing.T) {
			var pause atomic.Bool
			paused, resume := make(chan bool), make(chan bool)
			now := func() time.Time {
				at := time.Now()
				if pause.CompareAndSwap(true, false) {
					paused <- true
					<-resume
				}
				return at
			}
			from := usual.Tick(time.Now())
			grant := firn.Grant{Base: from - 1, Horizon: from + 20}
			g := generator(t, usual, grant, &firn.GeneratorOptions{Now: now})
			last := number(t, usual, next(t, g))
			var wg sync.WaitGroup
			var id firn.ID
			var err error
			pause.Store(true)
			wg.Go(func() { id, err = g.Next(t.Context()) })
			<-paused
			time.Sleep(time.Hour)
			var tick firn.Tick
			if what == "close" {
				wg.Go(func() { tick = g.Close() })
				for range 1000 {
					runtime.Gosched()
				}
			}
			close(resume)
			wg.Wait()
			switch {
			case err == nil && number(t, usual, id) != last+1:
				t.Errorf("%s: number %d after %d", what, number(t, usual, id), last)
			case err == nil && what == "close" && tick < decode(t, usual, id).Tick:
				t.Errorf("an id of tick %d, Close returned %d", decode(t, usual, id).Tick, tick)
			case err != nil && (what != "close" || !errors.Is(err, firn.ErrClosed)):
				t.Errorf("%s: %v", what, err)
			}
			if _, err = g.Next(t.Context()); what == "horizon" {
				spent(t, err, usual, grant.Horizon)
			}
		})
	}
}

// A used-up tick makes Next wait for the next one, not longer, and Try not wait.
func TestWaitsForTheNextTick(t *testing.T) {
	for _, l := range []firn.Layout{usual, wide, small, coarse, bare} {
		synctest.Test(t, func(t *testing.T) {
			g := generator(t, l, grantOf(l, time.Hour), &firn.GeneratorOptions{Borrow: -1})
			for range 20 {
				if _, err := g.Try(); err != nil {
					drain(t, g)
				}
				ids := drain(t, g)
				if _, err := g.Try(); !errors.Is(err, firn.ErrBusy) {
					t.Fatal(err)
				}
				if more, err := g.TryAppend(ids, 3); err != nil || len(more) != len(ids) {
					t.Fatal(len(more)-len(ids), err)
				}
				tick := l.Tick(time.Now())
				p := decode(t, l, next(t, g))
				if begins := l.Time(tick + 1); p.Tick != tick+1 || time.Now().Before(begins) || time.Since(begins) > time.Microsecond {
					t.Fatalf("tick %d after %d, %s after it began", p.Tick, tick, time.Since(begins))
				}
			}
		})
	}
}

func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := generator(t, coarse, grantOf(coarse, time.Hour), nil)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		ids, err := g.Append(over, nil, 1000)
		if !errors.Is(err, context.Canceled) || len(ids) < 12 || len(ids) > 16 {
			t.Fatalf("%d ids of what is there, %v", len(ids), err)
		}
		if _, err := g.Next(over); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		last := number(t, coarse, ids[len(ids)-1])
		time.Sleep(time.Until(coarse.Time(coarse.Tick(time.Now()) + 1)))
		// A cancelled context gets what is there, and nothing was used up.
		id, err := g.Next(over)
		if err != nil || number(t, coarse, id) != last+1 {
			t.Fatalf("number %d after %d, %v", number(t, coarse, id), last, err)
		}
		drain(t, g)
		// Waits look at a context as soon as it is done, short ones a little later.
		for _, d := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond, 40 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			from := time.Now()
			_, err := g.Next(ctx)
			if late := time.Since(from) - d; !errors.Is(err, context.DeadlineExceeded) || late < 0 || late > 20*time.Millisecond {
				t.Errorf("%v, %s after a deadline of %s", err, late, d)
			}
			cancel()
			drain(t, g)
		}
		// Append returns what it got.
		ctx, cancel := context.WithTimeout(t.Context(), 350*time.Millisecond)
		defer cancel()
		ids, err = g.Append(ctx, make([]firn.ID, 2, 10), 1000)
		if !errors.Is(err, context.DeadlineExceeded) || len(ids) < 2+3*16 || len(ids) > 2+4*16 || !slices.IsSorted(ids) {
			t.Errorf("%d ids, %v", len(ids), err)
		}
	})
}

// Who waits does not spin: the clock is read a few times for each tick.
func TestWaitsWithoutSpinning(t *testing.T) {
	hourly := firn.MustLayout("time:20@1h,worker:4,seq:2;epoch=1999-01-01T00:00:00Z")
	for _, l := range []firn.Layout{usual, coarse, hourly} {
		synctest.Test(t, func(t *testing.T) {
			var readings atomic.Int64
			now := func() time.Time { readings.Add(1); return time.Now() }
			g := generator(t, l, grantOf(l, 1000*l.Unit()), &firn.GeneratorOptions{Borrow: -1, Now: now})
			const callers, ticks = 10, 100
			end := time.Now().Add(ticks * l.Unit())
			drain(t, g)
			readings.Store(0)
			var calls atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for time.Now().Before(end) {
						if _, err := g.Next(t.Context()); err != nil {
							t.Error(err)
						}
						calls.Add(1)
					}
				})
			}
			wg.Wait()
			// One reading a call, as an injected clock is asked each time, and
			// some for each caller that waits for a tick.
			if n := readings.Load() - calls.Load(); n > 6*callers*ticks+calls.Load() {
				t.Errorf("%s: %d readings for %d calls in %d ticks", l, readings.Load(), calls.Load(), ticks)
			}
		})
	}
}
