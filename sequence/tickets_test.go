package sequence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/storetest"
)

// places makes k independent stores with a series over all of them.
func places(t *testing.T, k int) (stores []store.Store, faulty []*storetest.Faulty) {
	t.Helper()
	for range k {
		f := storetest.NewFaulty(&remote{Store: memory.New(), promise: store.Durability{Durable: true}})
		faulty = append(faulty, f)
		stores = append(stores, f)
	}
	if _, err := sequence.CreateAcross(ctx, stores, "photos", nil); err != nil {
		t.Fatal(err)
	}
	return stores, faulty
}

func openTickets(t testing.TB, stores []store.Store, o sequence.Options) *sequence.Series {
	t.Helper()
	o.Logger = quiet
	s, err := sequence.OpenAcross(ctx, stores, "photos", &o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Both stores serve in turn, one serves while the other is away, and after its
// return both do again. Nothing repeats, and each number is of its store.
func TestTickets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores, faulty := places(t, 2)
		s := openTickets(t, stores, sequence.Options{Cache: 10, CacheFor: time.Second})
		seen := map[firn.ID]bool{}
		drawn := [2]int{}
		draw := func(n int) {
			t.Helper()
			for range n {
				began := time.Now()
				id := next(t, s)
				if d := time.Since(began); d > 0 {
					t.Errorf("waited %s", d)
				}
				if seen[id] {
					t.Fatalf("%d twice", id)
				}
				seen[id] = true
				drawn[(id+1)%2]++
				time.Sleep(10 * time.Millisecond)
			}
		}
		draw(2000)
		if d := drawn[0] - drawn[1]; d < -2 || d > 2 {
			t.Errorf("%v of each store", drawn)
		}
		for _, hang := range []bool{false, true} {
			resume := func() { faulty[0].Away(nil) }
			if hang {
				resume = faulty[0].Hang()
			} else {
				faulty[0].Away(errors.New("away"))
			}
			draw(1000)
			drawn = [2]int{}
			draw(1000)
			if drawn[0] != 0 {
				t.Errorf("hang %v: %v of each store while the first is away", hang, drawn)
			}
			resume()
			time.Sleep(10 * time.Second)
			next(t, s)
			time.Sleep(10 * time.Second)
			drawn = [2]int{}
			draw(1000)
			if d := drawn[0] - drawn[1]; d < -2 || d > 2 {
				t.Errorf("hang %v: %v of each store after its return", hang, drawn)
			}
		}
		if r, err := s.Reserve(ctx, 500); err != nil || r.Step != 2 {
			t.Errorf("%+v, %v", r, err)
		}
		if got, err := s.Append(ctx, nil, 500); err != nil || len(got) != 500 {
			t.Errorf("%d, %v", len(got), err)
		}
		closeSeries(t, s)
	})
}

// A process starts while a store is away, and draws from it when it is back.
func TestTicketsStartWithOneAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores, faulty := places(t, 3)
		for _, f := range faulty {
			f.Away(errors.New("away"))
		}
		var outage *sequence.OutageError
		if _, err := sequence.OpenAcross(ctx, stores, "photos", &sequence.Options{Logger: quiet}); !errors.As(err, &outage) {
			t.Error(err)
		}
		faulty[1].Away(nil)
		s := openTickets(t, stores, sequence.Options{Cache: 5})
		for i := range 7 {
			if id := next(t, s); id != firn.ID(2+3*i) {
				t.Errorf("%d", id)
			}
		}
		faulty[0].Away(nil)
		for range 5000 {
			s.States() // at any time, also while the store joins
			time.Sleep(time.Millisecond)
		}
		next(t, s)
		time.Sleep(5 * time.Second)
		from := map[firn.ID]int{}
		for range 10 {
			from[next(t, s)%3]++
		}
		if from[1] < 4 || from[0] != 0 {
			t.Errorf("%v", from)
		}
		closeSeries(t, s)
	})
}

func TestTicketsAreCreatedWhole(t *testing.T) {
	stores, faulty := []store.Store{}, []*storetest.Faulty{}
	for range 3 {
		f := storetest.NewFaulty(memory.New())
		stores, faulty = append(stores, f), append(faulty, f)
	}
	faulty[2].Away(errors.New("away"))
	if _, err := sequence.CreateAcross(ctx, stores, "photos", nil); err == nil {
		t.Fatal("created without all")
	}
	faulty[2].Away(nil)
	faulty[1].Next(storetest.LoseReply())
	faulty[2].Next(storetest.LoseRequest())
	if _, err := sequence.CreateAcross(ctx, stores, "photos", nil); err == nil {
		t.Fatal("created without a write")
	}
	if _, err := sequence.OpenAcross(ctx, stores[:2], "photos", &sequence.Options{Logger: quiet}); err == nil {
		t.Fatal("opened half created")
	}
	faulty[1].Next(nil, storetest.LoseRequest()) // of those that say that all have it
	faulty[2].Next(nil)
	for tries := 0; ; tries++ {
		if _, err := sequence.CreateAcross(ctx, stores, "photos", nil); err == nil {
			break
		} else if tries == 5 {
			t.Fatal(err)
		}
		if s, err := sequence.OpenAcross(ctx, stores, "photos", &sequence.Options{Logger: quiet}); err == nil {
			s.Close()
			t.Errorf("opened half created, after %d tries", tries)
		}
	}
	if _, err := sequence.CreateAcross(ctx, stores, "photos", nil); !errors.As(err, new(*sequence.ExistsError)) {
		t.Error(err)
	}
	closeSeries(t, openTickets(t, []store.Store{stores[2], stores[0], stores[1]}, sequence.Options{}))
}

// What was begun is completed in whatever order its stores are named then, also after
// one of them was named twice.
func TestTicketsAreCompletedInAnyOrder(t *testing.T) {
	a, b := memory.New(), storetest.NewFaulty(memory.New())
	var mismatch *sequence.MismatchError
	if _, err := sequence.CreateAcross(ctx, []store.Store{a, a}, "photos", nil); !errors.As(err, &mismatch) {
		t.Errorf("one store, named twice: %v", err)
	}
	b.Next(storetest.LoseRequest())
	if _, err := sequence.CreateAcross(ctx, []store.Store{a, b}, "photos", nil); err == nil {
		t.Fatal("created without a write")
	}
	stores := []store.Store{b, a}
	if _, err := sequence.CreateAcross(ctx, stores, "photos", nil); err != nil {
		t.Fatal(err)
	}
	closeSeries(t, openTickets(t, stores, sequence.Options{}))
}

// A series that is spread over another number of stores is another one, and none that a
// store has forgotten.
func TestTicketsBesideAnotherSeries(t *testing.T) {
	a := memory.New()
	if _, err := sequence.Create(ctx, a, "photos", nil); err != nil {
		t.Fatal(err)
	}
	three, _ := places(t, 3)
	var mismatch *sequence.MismatchError
	for _, stores := range [][]store.Store{{a, memory.New()}, {memory.New(), a}, three[:2], {three[0]}, {three[0], memory.New()}} {
		if _, err := sequence.CreateAcross(ctx, stores, "photos", nil); !errors.As(err, &mismatch) || mismatch.Option != "stores" {
			t.Errorf("%d stores: %v", len(stores), err)
		}
	}
}

// A series that all stores had is not completed: the one that lacks it has
// forgotten it.
func TestTicketsAreNotCompletedLate(t *testing.T) {
	stores, _ := places(t, 2)
	var forgot *store.ForgotError
	if _, err := sequence.CreateAcross(ctx, []store.Store{stores[0], memory.New()}, "photos", nil); !errors.As(err, &forgot) {
		t.Error(err)
	}
}

func TestTicketsRefused(t *testing.T) {
	stores, _ := places(t, 2)
	others, _ := places(t, 2)
	three, _ := places(t, 3)
	var mismatch *sequence.MismatchError
	var forgot *store.ForgotError
	var none *sequence.MissingError
	var bad *sequence.OptionError
	for name, tt := range map[string]struct {
		stores []store.Store
		want   any
	}{
		"of another series":      {[]store.Store{stores[0], others[1]}, &forgot},
		"given twice":            {[]store.Store{stores[0], stores[0]}, &mismatch},
		"one too few":            {three[:2], &mismatch},
		"one too many":           {append(stores[:2:2], others[0]), &mismatch},
		"without the series":     {[]store.Store{stores[0], memory.New()}, &none},
		"only one":               {stores[:1], &bad},
		"the same place of both": {[]store.Store{stores[0], others[0]}, &forgot},
	} {
		if _, err := sequence.OpenAcross(ctx, tt.stores, "photos", &sequence.Options{Logger: quiet}); !errors.As(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sequence.Open(ctx, stores[0], "photos", nil); !errors.As(err, &mismatch) {
		t.Errorf("as a series of one store: %v", err)
	}
	if _, err := sequence.CreateAcross(ctx, stores, "strict", &sequence.Options{Strict: true}); !errors.As(err, &bad) {
		t.Error(err)
	}
}

// A store that comes back with another series, or is one of the others after all,
// is not drawn from.
func TestTicketsAnotherComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores, faulty := places(t, 2)
		others, _ := places(t, 2)
		var forgot *store.ForgotError
		var mismatch *sequence.MismatchError
		for _, tt := range []struct {
			comes store.Store
			want  any
		}{{others[1], &forgot}, {stores[0], &mismatch}} {
			faulty[1].Away(errors.New("away"))
			s := openTickets(t, []store.Store{stores[0], &swapped{faulty[1], tt.comes}}, sequence.Options{Cache: 5})
			faulty[1].Away(nil)
			time.Sleep(5 * time.Second)
			first := next(t, s)
			for i := range 30 {
				if id := next(t, s); id != first+firn.ID(2*i+2) {
					t.Fatalf("%d", id)
				}
			}
			if err := s.States()[1].Err; !errors.As(err, tt.want) {
				t.Error(err)
			}
			closeSeries(t, s)
		}
	})
}

// swapped answers as one store does, with what another has.
type swapped struct {
	away *storetest.Faulty
	store.Store
}

func (s *swapped) Durability(ctx context.Context) (store.Durability, error) {
	return s.away.Durability(ctx)
}
