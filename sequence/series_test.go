package sequence_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

func TestMain(m *testing.M) {
	if os.Getenv(drawURL) != "" {
		os.Exit(report(draw()))
	}
	testserver.Main(m, func() error { return goleak.Find() })
}

var (
	ctx   = context.Background()
	quiet = slog.New(slog.DiscardHandler)
)

func begin(t testing.TB, st store.Store, o sequence.Options) *sequence.Series {
	t.Helper()
	o.Logger = quiet
	s, err := sequence.Open(ctx, st, "orders", &o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeSeries(t testing.TB, s *sequence.Series) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func next(t testing.TB, s firn.Source) firn.ID {
	t.Helper()
	id, err := s.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// info is what the store has of the series.
func info(t testing.TB, st store.Store) sequence.Info {
	t.Helper()
	list, err := sequence.List(ctx, st)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	return list[0]
}

// Numbers are dense, over restarts as well, since the rest is handed back.
func TestNumbers(t *testing.T) {
	st := memory.New()
	for round := range 3 {
		s := begin(t, st, sequence.Options{Cache: 10})
		for i := range 25 {
			if id := next(t, s); id != firn.ID(round*25+i+1) {
				t.Fatalf("round %d: %d", round, id)
			}
		}
		closeSeries(t, s)
		closeSeries(t, s)
		if _, err := s.Next(ctx); !errors.Is(err, firn.ErrClosed) {
			t.Fatal(err)
		}
		if _, err := s.Append(ctx, nil, 3); !errors.Is(err, firn.ErrClosed) {
			t.Fatal(err)
		}
	}
}

func TestFirstIncrementMax(t *testing.T) {
	st := memory.New()
	o := sequence.Options{First: 1000, Increment: 5, Max: 1033, Cache: 4}
	s := begin(t, st, o)
	var got []firn.ID
	for {
		id, err := s.Next(ctx)
		if err != nil {
			var end *sequence.EndError
			if !errors.As(err, &end) || end.Max != 1033 {
				t.Fatal(err)
			}
			break
		}
		got = append(got, id)
	}
	if want := []firn.ID{1000, 1005, 1010, 1015, 1020, 1025, 1030}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	closeSeries(t, s)
	for _, o := range []sequence.Options{{First: 1}, {Increment: 1}, {Max: 9999}, {Strict: true}} {
		o.Logger = quiet
		var mismatch *sequence.MismatchError
		if _, err := sequence.Open(ctx, st, "orders", &o); !errors.As(err, &mismatch) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// The largest number there is ends a series without wrapping.
func TestEndOfAllNumbers(t *testing.T) {
	s := begin(t, memory.New(), sequence.Options{First: math.MaxInt64 - 2, Increment: 2})
	defer closeSeries(t, s)
	var end *sequence.EndError
	if got, err := s.Append(ctx, nil, 5); !errors.As(err, &end) || end.Left != 2 || got != nil {
		t.Errorf("Append of 5 where 2 are left: %v, %v", got, err)
	}
	got, err := s.Append(ctx, nil, 2)
	if err != nil || !slices.Equal(got, []firn.ID{math.MaxInt64 - 2, math.MaxInt64}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := s.Next(ctx); !errors.As(err, &end) || end.Left != 0 {
		t.Errorf("Next after the last number: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for option, o := range map[string]sequence.Options{
		"first": {First: -1}, "max": {Max: 3, First: 4}, "increment": {Increment: -1},
		"cache": {Cache: -1}, "max-unused": {Cache: 10, MaxUnused: 5}, "cache-for": {CacheFor: -1}, "wait": {Wait: -1},
	} {
		var bad *sequence.OptionError
		if err := o.Check("orders"); !errors.As(err, &bad) || bad.Option != option {
			t.Errorf("%s: %v", option, err)
		}
	}
	for _, name := range []string{"", "a/b", "a b", "é"} {
		var bad *sequence.OptionError
		if _, err := sequence.Open(ctx, memory.New(), name, nil); !errors.As(err, &bad) || bad.Option != "series" {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := (*sequence.Options)(nil).Check("orders"); err != nil {
		t.Error(err)
	}
}

// Every number is issued once, by whatever method, and what is handed back at
// Close was not issued.
func TestOnce(t *testing.T) {
	st := memory.New()
	var mu sync.Mutex
	seen := map[firn.ID]bool{}
	note := func(ids ...firn.ID) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			if seen[id] {
				t.Errorf("%d twice", id)
			}
			seen[id] = true
		}
	}
	for range 30 {
		var all []*sequence.Series
		for range 2 {
			all = append(all, begin(t, st, sequence.Options{Cache: 7, MaxUnused: 50}))
		}
		var done sync.WaitGroup
		for _, s := range all {
			for g := range 4 {
				done.Go(func() {
					for i := 0; ; i++ {
						var ids []firn.ID
						var err error
						switch (g + i) % 3 {
						case 0:
							var r firn.Range
							if r, err = s.Reserve(ctx, 1+i%20); err == nil {
								ids = slices.Collect(r.All())
							}
						case 1:
							ids, err = s.Append(ctx, nil, 1+i%30)
						default:
							var id firn.ID
							if id, err = s.Next(ctx); err == nil {
								ids = append(ids, id)
							}
						}
						note(ids...)
						if errors.Is(err, firn.ErrClosed) {
							return
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		time.Sleep(2 * time.Millisecond)
		for _, s := range all {
			done.Go(func() { closeSeries(t, s) })
		}
		done.Wait()
	}
	if granted := info(t, st).Granted; len(seen) > int(granted) || len(seen) < 100 {
		t.Errorf("%d numbers up to %d", len(seen), granted)
	}
	t.Logf("%d numbers, up to %d", len(seen), info(t, st).Granted)
}

// Calls that are cancelled lose no number that was not theirs.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &slow{Store: memory.New(), trip: 100 * time.Millisecond}
		s := begin(t, st, sequence.Options{Cache: 1, MaxUnused: 1})
		defer closeSeries(t, s)
		next(t, s)
		gone, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		for {
			if _, err := s.Next(gone); err != nil {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				break
			}
		}
		a := next(t, s)
		if b := next(t, s); b != a+1 {
			t.Errorf("%d after %d", b, a)
		}
	})
}

// slow is a store that is far away.
type slow struct {
	store.Store
	trip time.Duration
	puts atomic.Int64
}

func (s *slow) wait(ctx context.Context) error {
	select {
	case <-time.After(s.trip):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slow) Get(ctx context.Context, key string) (store.Record, error) {
	if err := s.wait(ctx); err != nil {
		return store.Record{}, err
	}
	return s.Store.Get(ctx, key)
}

func (s *slow) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	s.puts.Add(1)
	if err := s.wait(ctx); err != nil {
		return store.Record{}, err
	}
	return s.Store.Put(ctx, key, value, cond)
}

// A thousand callers, a step of 10 and a store 100 ms away: no error, and a call
// waits for the request under way and the one after it at most, which is the
// least that can be: the first leaves before the call, the second is for it.
func TestCrowd(t *testing.T) {
	const callers, draws, trip = 1000, 200, 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		st := &slow{Store: memory.New(), trip: trip}
		s := begin(t, st, sequence.Options{Cache: 10})
		defer closeSeries(t, s)
		var worst, late atomic.Int64
		var waited atomic.Int64
		began := time.Now()
		var done sync.WaitGroup
		for range callers {
			done.Go(func() {
				for i := range draws {
					at := time.Now()
					next(t, s)
					d := int64(time.Since(at))
					for w := worst.Load(); d > w && !worst.CompareAndSwap(w, d); w = worst.Load() {
					}
					if d > 0 {
						waited.Add(1)
						if i >= draws/2 {
							late.Add(1)
						}
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		done.Wait()
		t.Logf("%d numbers in %s: worst wait %s, %d calls waited, %d of the second half; %d writes; %+v",
			callers*draws, time.Since(began), time.Duration(worst.Load()), waited.Load(), late.Load(), st.puts.Load(), s.State())
		if w := time.Duration(worst.Load()); w > 2*trip {
			t.Errorf("a call waited %s, more than the request under way and its own", w)
		}
		if late.Load() > 0 {
			t.Errorf("%d calls waited when the rate was known", late.Load())
		}
	})
}

// A step of 10 that must not grow: more cannot be had than ten ahead and what is
// waited for, and nobody waits longer for it.
func TestCrowdCapped(t *testing.T) {
	const callers, draws, trip = 1000, 20, 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		st := &slow{Store: memory.New(), trip: trip}
		s := begin(t, st, sequence.Options{Cache: 10, MaxUnused: 10})
		defer closeSeries(t, s)
		var done sync.WaitGroup
		for range callers {
			done.Go(func() {
				for range draws {
					at := time.Now()
					next(t, s)
					if d := time.Since(at); d > 2*trip {
						t.Errorf("waited %s", d)
					}
				}
			})
		}
		done.Wait()
		if left := s.State().Left; left > 10 {
			t.Errorf("%d in hand", left)
		}
	})
}

// The step follows demand up and down, within step and waste.
func TestStepFollowsDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &slow{Store: memory.New(), trip: time.Millisecond}
		s := begin(t, st, sequence.Options{Cache: 10, CacheFor: 10 * time.Second, MaxUnused: 5000})
		defer closeSeries(t, s)
		drawFor := func(d, every time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(every) {
				next(t, s)
			}
		}
		drawFor(2*time.Minute, 10*time.Millisecond) // 100/s
		if got := s.State(); got.Cache < 800 || got.Cache > 1200 || got.Rate < 80 || got.Rate > 120 {
			t.Errorf("at 100/s: %+v", got)
		}
		puts := st.puts.Load()
		drawFor(time.Minute, 10*time.Millisecond)
		if n := st.puts.Load() - puts; n > 14 {
			t.Errorf("%d writes in a minute, for blocks of 10 s", n)
		}
		drawFor(time.Minute, time.Millisecond) // 1000/s
		if got := s.State(); got.Cache < 2500 || got.Left > 5000 {
			t.Errorf("at 1000/s: %+v", got)
		}
		drawFor(2*time.Hour, time.Second)
		if got := s.State(); got.Cache != 10 {
			t.Errorf("at 1/s: %+v", got)
		}
	})
}

func TestSetCache(t *testing.T) {
	st := memory.New()
	s := begin(t, st, sequence.Options{Cache: 10, MaxUnused: 1000})
	defer closeSeries(t, s)
	next(t, s)
	in, err := sequence.SetCache(ctx, st, "orders", 500)
	if err != nil || in.Cache != 500 {
		t.Fatal(in, err)
	}
	for range 20 {
		next(t, s)
	}
	wait(t, func() bool { return s.State().Left > 400 })
}

// wait waits until ok.
func wait(t testing.TB, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("waited in vain")
}

func TestReserve(t *testing.T) {
	st := memory.New()
	s := begin(t, st, sequence.Options{Cache: 10, Increment: 3})
	defer closeSeries(t, s)
	for _, n := range []int{1, 5, 10, 1000, 100_000, 3} {
		r, err := s.Reserve(ctx, n)
		if err != nil || r.Count != n || r.Step != 3 {
			t.Fatalf("%d: %+v, %v", n, r, err)
		}
		if id := next(t, s); id >= r.First && id <= r.Last() {
			t.Errorf("%d is in %+v", id, r)
		}
	}
	for _, n := range []int{0, -1} {
		if _, err := s.Reserve(ctx, n); err == nil {
			t.Error(n)
		}
	}
}

// A range that max has no room for is refused, and the rest can still be had.
func TestReserveAtTheEnd(t *testing.T) {
	for _, strict := range []bool{false, true} {
		s := begin(t, memory.New(), sequence.Options{Cache: 10, Max: 50, Strict: strict})
		var end *sequence.EndError
		if r, err := s.Reserve(ctx, 60); !errors.As(err, &end) {
			t.Errorf("%+v, %v", r, err)
		}
		if got, err := s.Append(ctx, nil, 60); got != nil || !errors.As(err, &end) {
			t.Errorf("strict %v: %d numbers, %v", strict, len(got), err)
		}
		if got, err := s.Append(ctx, nil, 50); len(got) != 50 || err != nil {
			t.Errorf("strict %v: %d numbers, %v", strict, len(got), err)
		}
		closeSeries(t, s)
	}
}

func TestRaise(t *testing.T) {
	st := memory.New()
	s := begin(t, st, sequence.Options{Cache: 10, Increment: 7, First: 3})
	if id := next(t, s); id != 3 {
		t.Fatal(id)
	}
	in, err := sequence.Raise(ctx, st, "orders", 1000)
	if err != nil || in.Granted != 997 { // 3 + 142 x 7
		t.Fatal(in.Granted, err)
	}
	if _, err := sequence.Raise(ctx, st, "orders", 900); err == nil {
		t.Error("lowered")
	}
	if id := next(t, s); id != 10 {
		t.Errorf("%d of what is in hand", id)
	}
	for range 8 {
		next(t, s)
	}
	if id := next(t, s); id != 1004 {
		t.Errorf("%d after raising", id)
	}
	closeSeries(t, s)
	// Nothing brings back a series that has come to its end.
	before := info(t, st)
	for _, n := range []firn.ID{before.Max, before.Max - 3} {
		var option *sequence.OptionError
		if _, err := sequence.Raise(ctx, st, "orders", n); !errors.As(err, &option) || option.Option != "to" {
			t.Errorf("to %d: %v", n, err)
		}
	}
	if after := info(t, st); after.Granted != before.Granted {
		t.Errorf("it goes on above %d, not %d", after.Granted, before.Granted)
	}
	var none *sequence.MissingError
	if _, err := sequence.Raise(ctx, st, "other", 5); !errors.As(err, &none) {
		t.Error(err)
	}
}
