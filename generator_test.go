package firn_test

import (
	"context"
	"errors"
	"fmt"
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

// Layouts for tests. Their epoch lies before the time of a synctest bubble,
// which begins in 2000.
var (
	usual  = firn.MustLayout("time:41@1ms,worker:10,seq:12;epoch=1999-01-01T00:00:00Z")
	wide   = firn.MustLayout("time:41@1ms,worker:5,seq:17;epoch=1999-01-01T00:00:00Z")
	small  = firn.MustLayout("time:41@1ms,worker:4,seq:4;epoch=1999-01-01T00:00:00Z")
	coarse = firn.MustLayout("time:36@100ms,shard:3,worker:4,seq:4;epoch=1999-01-01T00:00:00Z")
	bare   = firn.MustLayout("time:50@20us,worker:10;epoch=1999-01-01T00:00:00Z") // one id a tick
)

// grantOf is a grant from just before now on, for d.
func grantOf(l firn.Layout, d time.Duration) firn.Grant {
	now := l.Tick(time.Now())
	return firn.Grant{Worker: 1, Base: now - 1, Horizon: now + firn.Tick(d/l.Unit())}
}

func generator(t testing.TB, l firn.Layout, grant firn.Grant, opts *firn.GeneratorOptions) *firn.Generator {
	t.Helper()
	g, err := firn.NewGenerator(l, grant, opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// next must succeed.
func next(t testing.TB, g *firn.Generator) firn.ID {
	t.Helper()
	id, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func decode(t testing.TB, l firn.Layout, id firn.ID) firn.Parts {
	t.Helper()
	p, err := l.Decode(id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// number is the pair of tick and sequence as one.
func number(t testing.TB, l firn.Layout, id firn.ID) int64 {
	t.Helper()
	p := decode(t, l, id)
	return int64(p.Tick)<<seqBits(l) + p.Seq
}

func seqBits(l firn.Layout) int {
	f, _ := l.Field("seq")
	return f.Width
}

// drain takes whatever is there without waiting.
func drain(t testing.TB, g *firn.Generator) (ids []firn.ID) {
	t.Helper()
	for {
		id, err := g.Try()
		if errors.Is(err, firn.ErrBusy) {
			return ids
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
}

// An inspector sees every id that the callers of one generator get.
type inspector struct {
	t       testing.TB
	layout  firn.Layout
	grant   firn.Grant
	shard   int64
	horizon atomic.Int64  // as extended so far, noted before
	highest atomic.Uint64 // number of an id that some call has returned

	mu  sync.Mutex
	all []firn.ID
}

func inspect(t testing.TB, l firn.Layout, grant firn.Grant, shard int64) *inspector {
	in := &inspector{t: t, layout: l, grant: grant, shard: shard}
	in.horizon.Store(int64(grant.Horizon))
	return in
}

// call runs one call and inspects what it returns. Whatever a call returns is
// above what another one had returned before it began.
func (in *inspector) call(f func() ([]firn.ID, error)) ([]firn.ID, error) {
	above := in.highest.Load()
	ids, err := f()
	horizon := firn.Tick(in.horizon.Load())
	for _, id := range ids {
		p, bad := in.layout.Decode(id)
		n := uint64(p.Tick)<<seqBits(in.layout) + uint64(p.Seq)
		switch {
		case bad != nil:
			in.t.Error(bad)
		case p.Worker != in.grant.Worker || p.Shard != in.shard:
			in.t.Errorf("id %d: %+v", id, p)
		case p.Tick <= in.grant.Base || p.Tick > horizon:
			in.t.Errorf("tick %d is not in (%d, %d]", p.Tick, in.grant.Base, horizon)
		case n <= above:
			in.t.Errorf("number %d, after %d was returned", n, above)
		}
		above = n
	}
	for old := in.highest.Load(); above > old && !in.highest.CompareAndSwap(old, above); {
		old = in.highest.Load()
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.all = append(in.all, ids...)
	return ids, err
}

// unique fails if an id was seen twice, and returns all.
func (in *inspector) unique() []firn.ID {
	in.t.Helper()
	slices.Sort(in.all)
	for i := 1; i < len(in.all); i++ {
		if in.all[i] == in.all[i-1] {
			in.t.Fatalf("id %d came twice", in.all[i])
		}
	}
	return in.all
}

// below fails if an id was seen above a tick.
func (in *inspector) below(last firn.Tick) {
	in.t.Helper()
	for _, id := range in.all {
		if p := decode(in.t, in.layout, id); p.Tick > last {
			in.t.Fatalf("an id of tick %d, Close returned %d", p.Tick, last)
		}
	}
}

// one returns the results of a call for one id as those of a call for some.
func one(id firn.ID, err error) ([]firn.ID, error) {
	if err != nil {
		return nil, err
	}
	return []firn.ID{id}, nil
}

// ask makes a call of some kind.
func ask(ctx context.Context, g *firn.Generator) ([]firn.ID, error) {
	switch rand.IntN(10) {
	case 0:
		return g.Append(ctx, nil, rand.IntN(100))
	case 1:
		return one(g.Try())
	case 2:
		return g.TryAppend(nil, rand.IntN(20))
	case 3: // gives up at some point of its wait
		ctx, cancel := context.WithTimeout(ctx, rand.N(2*time.Millisecond))
		defer cancel()
		return one(g.Next(ctx))
	default:
		return one(g.Next(ctx))
	}
}

// Whatever happens at once: ids are unique, increase, lie in the grant as it was
// extended until then, have the right fields, and none is above what Close says.
func TestConcurrentCallers(t *testing.T) {
	for _, l := range []firn.Layout{usual, wide, small, coarse, bare} {
		for _, borrow := range []time.Duration{0, -1, firn.MaxBorrow} {
			t.Run(fmt.Sprint(l, borrow), func(t *testing.T) {
				grant := grantOf(l, 5*time.Millisecond)
				shard := l.Shards() - 1
				g := generator(t, l, grant, &firn.GeneratorOptions{Borrow: borrow, Shard: shard})
				in := inspect(t, l, grant, shard)
				var wg sync.WaitGroup
				for range 10 {
					wg.Go(func() {
						for {
							_, err := in.call(func() ([]firn.ID, error) { return ask(t.Context(), g) })
							var spent *firn.HorizonError
							switch {
							case errors.Is(err, firn.ErrClosed):
								return
							case errors.As(err, &spent):
								runtime.Gosched()
							case err != nil && !errors.Is(err, firn.ErrBusy) && !errors.Is(err, context.DeadlineExceeded):
								t.Error(err)
								return
							}
						}
					})
				}
				holdGrant(in, g, 20)
				last := g.Close()
				wg.Wait()
				if again := g.Close(); again != last {
					t.Errorf("Close returned %d, and then %d", last, again)
				}
				if last < grant.Base || last > firn.Tick(in.horizon.Load()) {
					t.Errorf("Close returned %d, the grant is (%d, %d]", last, grant.Base, in.horizon.Load())
				}
				if len(in.unique()) == 0 {
					t.Error("no ids")
				}
				in.below(last)
			})
		}
	}
}

// holdGrant does what the holder of a grant does, often: it extends, and sets
// the clock forward and back.
func holdGrant(in *inspector, g *firn.Generator, times int) {
	var step time.Duration
	for i := range times {
		time.Sleep(rand.N(time.Millisecond))
		switch i % 4 {
		case 0:
			step = rand.N(4*time.Millisecond) - 2*time.Millisecond
			g.SetClock(time.Now().Add(step))
		case 1:
			g.Extend(firn.Tick(in.horizon.Load()) - firn.Tick(rand.IntN(100))) // lower: nothing
		default:
			horizon := in.layout.Tick(time.Now().Add(step + 20*time.Millisecond))
			in.horizon.Store(max(in.horizon.Load(), int64(horizon)))
			g.Extend(horizon)
		}
	}
}

// threads makes the system switch between callers wherever they are, also
// between taking a number and comparing it, by giving them more threads than
// there are processors.
func threads(t *testing.T, n int) {
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// In a layout of one id a tick, each id that is issued after Close lies above
// what Close returned. With a whole second to borrow nobody waits. make full closes four times
// as many.
func TestCloseAmongCallers(t *testing.T) {
	threads(t, 8)
	for _, tt := range []struct {
		name            string
		callers, closes int
		batch           int // 0: Next
	}{
		{"one", 1, 2000, 0},
		{"one that appends", 1, 1000, 1},
		{"many", 12, 120, 0},
		{"many that append", 12, 40, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			step := 4
			if testserver.Long() {
				step = 1
			}
			for i := 0; i < tt.closes; i += step {
				g := generator(t, bare, grantOf(bare, time.Hour), &firn.GeneratorOptions{Borrow: firn.MaxBorrow})
				closeAmong(t, g, tt.callers, tt.batch, i%300)
			}
		})
	}
}

// closeAmong closes a generator of layout bare while callers take ids.
func closeAmong(t *testing.T, g *firn.Generator, callers, batch, delay int) {
	t.Helper()
	top := make([]firn.ID, callers)
	var wg sync.WaitGroup
	var begun atomic.Int32
	for i := range top {
		wg.Go(func() {
			begun.Add(1)
			var ids []firn.ID
			var err error
			for err == nil {
				if batch == 0 {
					ids, err = one(g.Next(t.Context()))
				} else {
					ids, err = g.Append(t.Context(), ids[:0], batch)
				}
				if len(ids) > 0 {
					top[i] = ids[len(ids)-1]
				}
			}
			if !errors.Is(err, firn.ErrClosed) {
				t.Error(err)
			}
		})
	}
	for begun.Load() <= int32(callers/2) {
		runtime.Gosched()
	}
	for range delay {
		g.Extend(0) // nothing, for some nanoseconds
	}
	last := g.Close()
	g.Extend(bare.Last())
	wg.Wait()
	for _, id := range top {
		if id != 0 && decode(t, bare, id).Tick > last {
			t.Fatalf("an id of tick %d, Close returned %d", decode(t, bare, id).Tick, last)
		}
	}
	if again := g.Close(); again != last {
		t.Fatalf("Close returned %d, and then %d", last, again)
	}
}

// Many callers reach the end of a grant at once, without waiting before it. make full has them
// do it more often.
func TestHorizonAmongCallers(t *testing.T) {
	threads(t, 8)
	rounds := 25
	if testserver.Long() {
		rounds = 100
	}
	for range rounds {
		const ids = 20_000
		grant := grantOf(bare, 0)
		grant.Horizon = grant.Base + ids
		g := generator(t, bare, grant, &firn.GeneratorOptions{Borrow: firn.MaxBorrow})
		in := inspect(t, bare, grant, 0)
		var wg sync.WaitGroup
		var begun sync.WaitGroup
		begun.Add(12)
		for i := range 12 {
			wg.Go(func() {
				begun.Done()
				begun.Wait()
				in.call(func() (got []firn.ID, err error) {
					for err == nil {
						if i%4 == 0 {
							got, err = g.Append(t.Context(), got, 2)
							continue
						}
						var id firn.ID
						if id, err = g.Next(t.Context()); err == nil {
							got = append(got, id)
						}
					}
					return got, err
				})
			})
		}
		wg.Wait()
		if n := len(in.unique()); n > ids || t.Failed() {
			t.Fatalf("%d ids in %d ticks", n, ids)
		}
	}
}

// Calls that wait, for long or for short, return when the generator is closed.
func TestCloseEndsWaits(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Millisecond, time.Second, 48 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			now := usual.Tick(time.Now())
			base := now + firn.Tick(ahead/time.Millisecond)
			g := generator(t, usual, firn.Grant{Worker: 1, Base: base, Horizon: base + 1000}, &firn.GeneratorOptions{Borrow: -1})
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					var err error
					if i%2 == 0 {
						_, err = g.Next(t.Context())
					} else {
						_, err = g.Append(t.Context(), nil, 5000)
					}
					if !errors.Is(err, firn.ErrClosed) {
						t.Errorf("a call that waits returned %v", err)
					}
				})
			}
			synctest.Wait()
			closed := time.Now()
			if last := g.Close(); last != base {
				t.Errorf("Close returned %d, nothing was issued after %d", last, base)
			}
			wg.Wait()
			if d := time.Since(closed); d > 20*time.Millisecond {
				t.Errorf("calls returned %s after Close", d)
			}
			for range 3 {
				if _, err := g.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
					t.Error(err)
				}
				if _, err := g.Try(); !errors.Is(err, firn.ErrClosed) {
					t.Error(err)
				}
				if ids, err := g.Append(t.Context(), nil, 3); !errors.Is(err, firn.ErrClosed) || len(ids) > 0 {
					t.Error(ids, err)
				}
				g.Extend(base + 100_000)
				g.SetClock(time.Now())
				if last := g.Close(); last != base {
					t.Errorf("another Close returned %d, the first %d", last, base)
				}
			}
		})
	}
}

// What callers wait for does not count as issued.
func TestCloseReturnsWhatWasIssued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := firn.MustLayout("time:30@1h,worker:4;epoch=1999-01-01T00:00:00Z")
		g := generator(t, l, grantOf(l, 1000*time.Hour), nil)
		p := decode(t, l, next(t, g))
		var wg sync.WaitGroup
		for range 100 { // each for an hour later than the one before
			wg.Go(func() { g.Next(t.Context()) })
		}
		synctest.Wait()
		if last := g.Close(); last != p.Tick {
			t.Errorf("Close returned %d, the last id is of tick %d", last, p.Tick)
		}
		wg.Wait()
	})
}

func TestNewGeneratorRefuses(t *testing.T) {
	now := coarse.Tick(time.Now())
	good := firn.Grant{Worker: 15, Base: now, Horizon: now + 1}
	for _, tt := range []struct {
		name  string
		l     firn.Layout
		grant func(*firn.Grant)
		opts  *firn.GeneratorOptions
		ok    bool
	}{
		{name: "nothing", l: coarse, ok: true},
		{name: "an empty grant", l: coarse, grant: func(g *firn.Grant) { g.Horizon = g.Base }, ok: true},
		{name: "the highest shard and borrow", l: coarse, opts: &firn.GeneratorOptions{Shard: 7, Borrow: firn.MaxBorrow}, ok: true},
		{name: "the last tick", l: coarse, grant: func(g *firn.Grant) { g.Horizon = coarse.Last() }, ok: true},
		{name: "the zero layout"},
		{name: "a worker that is too high", l: coarse, grant: func(g *firn.Grant) { g.Worker = 16 }},
		{name: "a negative worker", l: coarse, grant: func(g *firn.Grant) { g.Worker = -1 }},
		{name: "a negative base", l: coarse, grant: func(g *firn.Grant) { g.Base = -1 }},
		{name: "a horizon below the base", l: coarse, grant: func(g *firn.Grant) { g.Horizon = g.Base - 1 }},
		{name: "a horizon after the layout", l: coarse, grant: func(g *firn.Grant) { g.Horizon = coarse.Last() + 1 }},
		{name: "a shard that is too high", l: coarse, opts: &firn.GeneratorOptions{Shard: 8}},
		{name: "a negative shard", l: coarse, opts: &firn.GeneratorOptions{Shard: -1}},
		{name: "a shard where there is none", l: usual, opts: &firn.GeneratorOptions{Shard: 1}},
		{name: "too much to borrow", l: coarse, opts: &firn.GeneratorOptions{Borrow: firn.MaxBorrow + 1}},
	} {
		grant := good
		if tt.grant != nil {
			tt.grant(&grant)
		}
		if _, err := firn.NewGenerator(tt.l, grant, tt.opts); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestGeneratorAllocatesNothing(t *testing.T) {
	dst := make([]firn.ID, 0, 40)
	for _, l := range []firn.Layout{wide, small} { // small waits most of the time
		g := generator(t, l, grantOf(l, time.Hour), nil)
		var err error
		for name, f := range map[string]func(){
			"Next":      func() { _, err = g.Next(t.Context()) },
			"Try":       func() { _, err = g.Try() },
			"Append":    func() { dst, err = g.Append(t.Context(), dst[:0], 40) },
			"TryAppend": func() { dst, err = g.TryAppend(dst[:0], 40) },
		} {
			if n := testing.AllocsPerRun(200, f); n != 0 {
				t.Errorf("%s of %s allocates %.1f times", name, l, n)
			}
			if err != nil && !errors.Is(err, firn.ErrBusy) {
				t.Error(err)
			}
		}
	}
}
