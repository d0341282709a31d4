package sequence_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/storetest"
)

// TestTorture runs for so long, and until it has so many numbers.
var tortureFor = flag.Duration("torture", shortTorture(), "how long TestTorture runs")

const tortureNeeds = 1000

// shortTorture is longer in make full.
func shortTorture() time.Duration {
	if testserver.Long() {
		return 2 * time.Second
	}
	return time.Second / 2
}

// shaken is a store whose requests and replies come late, never or twice, and
// whose callers may be paused between any two steps.
type shaken struct {
	*storetest.Faulty
	mu  sync.Mutex
	rng *rand.Rand
}

func (s *shaken) dice(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

func (s *shaken) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	some := time.Duration(s.dice(3000)) * time.Microsecond
	switch s.dice(20) {
	case 0:
		s.Next(storetest.LoseRequest())
	case 1, 2:
		s.Next(storetest.LoseReply())
	case 3, 4, 5:
		s.Next(storetest.Delay(some, some))
	case 6: // it arrives when nobody waits for it any more
		s.Next(func(_ context.Context, p storetest.Put) (store.Record, error) {
			time.AfterFunc(some, func() { p.Send() })
			return p.Lost(storetest.ErrLost)
		})
	case 7: // and twice
		s.Next(func(_ context.Context, p storetest.Put) (store.Record, error) {
			time.AfterFunc(some, func() { p.Send() })
			return p.Send()
		})
	}
	return s.Faulty.Put(ctx, key, value, cond)
}

// Whatever is called, in whatever order and at whatever instant, by several
// processes of which one after the other is closed, on stores with all faults
// that a store may have, and while an operator changes the series: no number is
// issued twice, and none that was handed back.
func TestTorture(t *testing.T) {
	for _, kind := range []string{"free", "strict", "tickets", "bounded"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			torture(t, kind)
		})
	}
}

func torture(t *testing.T, kind string) {
	o := sequence.Options{Cache: 3, MaxUnused: 40, Wait: 200 * time.Millisecond, CacheFor: 10 * time.Millisecond, Logger: quiet}
	create := sequence.Options{Cache: 3, Increment: 2}
	stores := 1
	switch kind {
	case "strict":
		create.Strict = true
	case "tickets":
		stores = 3
	case "bounded":
		create.Max = 4001
	}
	var faulty []*storetest.Faulty
	var plain []store.Store
	for range stores {
		f := storetest.NewFaulty(memory.New())
		faulty, plain = append(faulty, f), append(plain, f)
	}
	if _, err := sequence.CreateAcross(ctx, plain, "orders", &create); err != nil {
		t.Fatal(err)
	}
	n := newNumbers()
	end, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		time.Sleep(*tortureFor)
		for until := time.Now().Add(time.Minute); kind != "bounded" && n.count() < tortureNeeds && time.Now().Before(until); {
			time.Sleep(10 * time.Millisecond) // on a busy machine
		}
	}()
	var all sync.WaitGroup
	for p := range 3 {
		all.Go(func() {
			for life := uint64(1); end.Err() == nil; life++ {
				rng := rand.New(rand.NewPCG(uint64(p), life))
				var mine []store.Store
				for _, f := range faulty {
					mine = append(mine, &shaken{Faulty: f.Handle(), rng: rand.New(rand.NewPCG(rng.Uint64(), 1))})
				}
				oneLife(t, n, mine, o, rng)
			}
		})
	}
	all.Go(func() { operate(t, end, faulty) })
	all.Wait()
	time.Sleep(20 * time.Millisecond) // what comes late
	granted := firn.ID(0)
	for _, f := range faulty {
		granted = max(granted, info(t, f).Granted)
	}
	n.check(t, granted)
	if kind != "bounded" && n.count() < tortureNeeds {
		t.Errorf("only %d numbers", n.count())
	}
	if n.forgot > 0 {
		t.Errorf("nothing was forgotten: %v", n.errs)
	}
}

// oneLife opens a series, has it called from all sides, and closes it meanwhile.
func oneLife(t *testing.T, n *numbers, stores []store.Store, o sequence.Options, rng *rand.Rand) {
	open := sequence.OpenAcross
	if len(stores) == 1 {
		open = func(ctx context.Context, s []store.Store, name string, o *sequence.Options) (*sequence.Series, error) {
			return sequence.Open(ctx, s[0], name, o)
		}
	}
	s, err := open(ctx, stores, "orders", &o)
	if errors.As(err, new(*sequence.OutageError)) { // it may be, with such stores
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	var calls sync.WaitGroup
	for g := range 8 {
		seed := rng.Uint64()
		calls.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			for {
				ctx, cancel := context.WithCancel(ctx)
				if rng.IntN(4) == 0 {
					time.AfterFunc(time.Duration(rng.IntN(2000))*time.Microsecond, cancel)
				}
				began := time.Now()
				ids, err := mixed(ctx, s, rng.IntN(1000))
				cancel()
				n.add(time.Since(began), ids, err)
				if errors.Is(err, firn.ErrClosed) {
					return
				}
				if rng.IntN(3) == 0 {
					time.Sleep(time.Duration(rng.IntN(1000)) * time.Microsecond)
				}
			}
		})
	}
	time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
	calls.Go(func() { s.Close() })
	s.Close()
	s.States()
	calls.Wait()
}

// operate changes the series now and then, while it is drawn from.
func operate(t *testing.T, end context.Context, stores []*storetest.Faulty) {
	for i := 1; end.Err() == nil; i++ {
		for _, st := range stores {
			if _, err := sequence.SetCache(ctx, st, "orders", 1+i%7); err != nil {
				t.Error(err)
			}
			if i%5 == 0 {
				_, err := sequence.Raise(ctx, st, "orders", info(t, st).Granted+20)
				if err != nil && !errors.As(err, new(*sequence.OptionError)) {
					t.Error(err)
				}
			}
			if i%50 == 0 {
				if _, err := sequence.Recover(ctx, st, 10, nil); err != nil {
					t.Error(err)
				}
			}
		}
		time.Sleep(3 * time.Millisecond)
	}
}

// Numbers that Next takes without a lock and those that Reserve takes of the same
// block meanwhile are different ones.
func TestNextBesideReserve(t *testing.T) {
	const each = 20_000
	s := begin(t, memory.New(), sequence.Options{Cache: 1 << 20, MaxUnused: 1 << 20})
	defer closeSeries(t, s)
	next(t, s)
	var got [4][]firn.ID
	var all sync.WaitGroup
	for g := range got {
		all.Go(func() {
			for len(got[g]) < each {
				if g%2 == 0 {
					got[g] = append(got[g], next(t, s))
					continue
				}
				r, err := s.Reserve(ctx, 1)
				if err != nil {
					t.Error(err)
					return
				}
				got[g] = append(got[g], r.First)
			}
		})
	}
	all.Wait()
	n := newNumbers()
	for _, ids := range got {
		n.add(0, ids, nil)
	}
	n.check(t, 1<<20+1)
}
