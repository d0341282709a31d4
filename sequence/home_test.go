package sequence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// placed is a strict store that says of itself that it is at a place.
func placed(st *memory.Store, place string) *remote {
	return &remote{Store: st, promise: store.Durability{Durable: true, Identity: place}}
}

func (r *remote) move(place string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.promise.Identity = place
}

// copyOf is a copy of a store, at another place.
func copyOf(r *remote, place string) *remote {
	copied := memory.New()
	copied.Restore(r.Snapshot())
	return placed(copied, place)
}

func isElsewhere(err error) bool {
	var other *store.OtherStoreError
	return errors.As(err, &other) && other.Have == "there" && other.Want == "here" && (other.What == `series "orders"` || other.What == `series "photos"`)
}

// A copy of a store grants no numbers until an operator says what it is.
func TestCopy(t *testing.T) {
	here := placed(memory.New(), "here")
	if _, err := sequence.Create(ctx, here, "orders", &sequence.Options{Cache: 10}); err != nil {
		t.Fatal(err)
	}
	s := begin(t, here, sequence.Options{})
	for range 10 {
		next(t, s)
	}
	for _, tt := range []struct {
		name   string
		accept func(store.Store) ([]sequence.Info, error)
		first  firn.ID
	}{
		{"recovered", func(st store.Store) ([]sequence.Info, error) {
			done, err := sequence.Recover(ctx, st, 1000, nil)
			var infos []sequence.Info
			for _, r := range done {
				infos = append(infos, r.Info)
			}
			return infos, err
		}, 1001},
		{"moved", func(st store.Store) ([]sequence.Info, error) { return sequence.AcceptMove(ctx, st) }, 11},
	} {
		there := copyOf(here, "there")
		granted := info(t, there).Granted
		for what, refused := range map[string]func() error{
			"Open":            func() error { _, err := sequence.Open(ctx, there, "orders", nil); return err },
			"Create, another": func() error { _, err := sequence.Create(ctx, there, "photos", nil); return err },
			"Set":             func() error { _, err := sequence.SetCache(ctx, there, "orders", 7); return err },
			"Raise":           func() error { _, err := sequence.Raise(ctx, there, "orders", 5000); return err },
			"CheckStore":      func() error { return record.CheckStore(ctx, there, block.Keys, "series") },
		} {
			if err := refused(); !isElsewhere(err) {
				t.Errorf("%s, not yet %s: %v", what, tt.name, err)
			}
		}
		if infos, err := tt.accept(there); err != nil || len(infos) != 1 || infos[0].Store != "there" {
			t.Fatalf("%s: %+v, %v", tt.name, infos, err)
		}
		if err := record.CheckStore(ctx, there, block.Keys, "series"); err != nil {
			t.Error(err)
		}
		other := begin(t, there, sequence.Options{})
		if id := next(t, other); id < tt.first || id <= granted && tt.name == "recovered" {
			t.Errorf("%s: it goes on with %d, and up to %d was granted", tt.name, id, granted)
		}
		closeSeries(t, other)
		if infos, err := sequence.AcceptMove(ctx, there); err != nil || len(infos) != 0 {
			t.Errorf("%s, once more: %+v, %v", tt.name, infos, err)
		}
	}
	closeSeries(t, s)
}

// A process that has a series open notices at the first round to the store that hears its
// promise, before it uses what that round has granted: numbers in hand are not used either.
func TestCopyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := placed(memory.New(), "here")
		if _, err := sequence.Create(ctx, st, "orders", &sequence.Options{Cache: 10}); err != nil {
			t.Fatal(err)
		}
		s := begin(t, st, sequence.Options{})
		next(t, s)
		synctest.Wait()
		st.move("there")
		time.Sleep(2 * time.Minute)
		left := s.State().Left
		var err error
		drawn := int64(0)
		for ; err == nil && drawn <= left; drawn++ {
			_, err = s.Next(ctx)
			synctest.Wait()
		}
		if !isElsewhere(err) || drawn > left {
			t.Errorf("after %d numbers, of %d in hand: %v", drawn, left, err)
		}
		if _, err := s.Next(ctx); !isElsewhere(err) {
			t.Errorf("once more: %v", err)
		}
		if st := s.State(); st.Left != 0 || !isElsewhere(st.Err) {
			t.Errorf("%+v", st)
		}
		s.Close()
	})
}

// Which store it is gets written down by the first write that knows.
func TestPlaceIsNoted(t *testing.T) {
	st := placed(memory.New(), "")
	if _, err := sequence.Create(ctx, st, "orders", nil); err != nil {
		t.Fatal(err)
	}
	if in := info(t, st); in.Store != "" {
		t.Fatal(in.Store)
	}
	st.move("here")
	s := begin(t, st, sequence.Options{})
	next(t, s)
	closeSeries(t, s)
	if in := info(t, st); in.Store != "here" {
		t.Errorf("%q", in.Store)
	}
	// A server whose table is made by the first record.
	empty := &lateName{placed(memory.New(), "")}
	if _, err := sequence.Create(ctx, empty, "orders", nil); err != nil {
		t.Fatal(err)
	}
	if in := info(t, empty); in.Store != "here" {
		t.Errorf("created in %q", in.Store)
	}
}

// lateName can say where it is once it has a record.
type lateName struct{ *remote }

func (l *lateName) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	l.move("here")
	return l.remote.Put(ctx, key, value, cond)
}

// Each store of a ticket is at a place of its own; a copy of one is refused.
func TestTicketPlaces(t *testing.T) {
	a, b := placed(memory.New(), "a"), placed(memory.New(), "here")
	if _, err := sequence.CreateAcross(ctx, []store.Store{a, b}, "photos", nil); err != nil {
		t.Fatal(err)
	}
	s := openTickets(t, []store.Store{a, b}, sequence.Options{})
	next(t, s)
	closeSeries(t, s)
	if _, err := sequence.OpenAcross(ctx, []store.Store{a, copyOf(b, "there")}, "photos", nil); !isElsewhere(err) {
		t.Error(err)
	}
}

// What a program abandons is not issued, and not handed back.
func TestAbandon(t *testing.T) {
	a, b := placed(memory.New(), "a"), placed(memory.New(), "b")
	if _, err := sequence.CreateAcross(ctx, []store.Store{a, b}, "photos", &sequence.Options{Cache: 10}); err != nil {
		t.Fatal(err)
	}
	s := openTickets(t, []store.Store{a, b}, sequence.Options{})
	for range 4 {
		next(t, s)
	}
	gone := errors.New("it has forgotten")
	s.Abandon(1, gone)
	first := next(t, s)
	for range 30 {
		if id := next(t, s); (id-first)%2 != 0 {
			t.Fatalf("%d of the store that was abandoned", id)
		}
	}
	s.Abandon(0, gone)
	s.Abandon(0, errors.New("another"))
	for range 2 {
		if _, err := s.Next(ctx); err != gone {
			t.Error(err)
		}
		if _, err := s.Append(ctx, nil, 2); err != gone {
			t.Error(err)
		}
		if _, err := s.Reserve(ctx, 2); err != gone {
			t.Error(err)
		}
	}
	was := info(t, a)
	s.Close()
	if now := info(t, a); now.Granted != was.Granted {
		t.Errorf("%+v was handed back to %+v", was, now)
	}
}
