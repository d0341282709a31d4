package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// founded is a store that has the pool "web" from its beginning.
func founded(t *testing.T, s store.Store, o *Options) store.Store {
	t.Helper()
	if wrote, err := Found(t.Context(), s, "web", o); err != nil || !wrote {
		t.Fatalf("Found: %t, %v", wrote, err)
	}
	return s
}

// Who leases a worker that gave ids of the past starts above them, whatever its
// clock says.
func TestPastThenLease(t *testing.T) {
	s := founded(t, memory.New(), nil)
	last := time.Now().Add(time.Second)
	if err := Past(t.Context(), s, "web", 7, "import", last); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), s, "web", &Options{Choice: Insist, Worker: 7, Wait: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	id, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p, err := firn.Default.Decode(id); err != nil || p.Worker != 7 || p.Tick <= firn.Default.Tick(last) {
		t.Errorf("id %d: worker %d, tick %d, %v; want one of worker 7 above tick %d", id, p.Worker, p.Tick, err, firn.Default.Tick(last))
	}
}

func TestPastOnce(t *testing.T) {
	s := founded(t, memory.New(), nil)
	l, err := Open(t.Context(), s, "web", &Options{Choice: Insist, Worker: 7, Name: "import"})
	if err != nil {
		t.Fatal(err)
	}
	last := time.Now()
	past := func(worker int64, name string) *PastError {
		t.Helper()
		var held *PastError
		if err := Past(t.Context(), s, "web", worker, name, last); err != nil && !errors.As(err, &held) {
			t.Fatal(err)
		}
		return held
	}
	if e := past(7, "import"); e == nil || e.Name != "import" {
		t.Errorf("of a worker that is held: %v", e)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if e := past(7, "import"); e == nil || e.Name != "import" {
		t.Errorf("of a worker that was given back: %v", e)
	}
	for range 2 {
		if e := past(8, "import"); e != nil {
			t.Errorf("of a worker that nobody had, or by the name that had it: %v", e)
		}
	}
	if e := past(8, "another"); e == nil || e.Name != "past:import" {
		t.Errorf("of another's: %v", e)
	}
	last = last.Add(time.Second)
	if e := past(8, "import"); e == nil {
		t.Error("later ids than were written down")
	}
	last = last.Add(-time.Second)
	if _, err := Restored(t.Context(), s, 0); err != nil {
		t.Fatal(err)
	}
	if e := past(8, "import"); e != nil {
		t.Errorf("the same after a restore: %v", e)
	}
}

// Where the store may not have known the pool from the beginning, only a worker that
// the pool was founded without counts as never held. Where it can forget, or was
// restored, none does: ids of the past may have been made with each.
func TestPastDoubt(t *testing.T) {
	few := &Options{Workers: 1000}
	restored := founded(t, memory.New(), few)
	if err := Past(t.Context(), restored, "web", 1001, "import", time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := Restored(t.Context(), restored, 0); err != nil {
		t.Fatal(err)
	}
	if err := Past(t.Context(), restored, "web", 1001, "import", time.Now().Add(-time.Second)); err != nil {
		t.Errorf("the same again after a restore: %v", err)
	}
	unsaid := remote{memory.New()}
	if _, err := Open(t.Context(), unsaid, "web", &Options{Workers: 1000, Wait: time.Nanosecond}); err == nil {
		t.Fatal("a pool on a store that may have forgotten begins at once")
	}
	lossy := forgetful{founded(t, memory.New(), few)}
	once := founded(t, memory.New(), few)
	rec, err := once.Get(t.Context(), term.KeyPool("web"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := term.ReadPool(rec)
	if err != nil {
		t.Fatal(err)
	}
	p.Lossy = "seen by a member"
	if _, err := once.Put(t.Context(), rec.Key, p.Encode(), store.Condition{Version: rec.Version}); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]store.Store{
		"restored": restored, "founded by a lease": unsaid, "lossy": lossy, "seen to be lossy": once,
	} {
		for _, worker := range []int64{999, 1000} {
			var held *PastError
			err := Past(t.Context(), s, "web", worker, "import", time.Now())
			switch given := name == "founded by a lease" && worker == 1000; {
			case given && err != nil:
				t.Errorf("%s: worker %d, which the pool was founded without: %v", name, worker, err)
			case !given && (!errors.As(err, &held) || held.Name != ""):
				t.Errorf("%s: worker %d: %v", name, worker, err)
			}
		}
	}
}

// forgetful is a store that can forget.
type forgetful struct{ store.Store }

func (f forgetful) Promise(ctx context.Context) (store.Promise, error) {
	p, err := f.Store.Promise(ctx)
	p.Class = store.Lossy
	return p, err
}

// A write whose reply is lost counts if the record is there; two that want one
// worker at the same time do not both get it.
func TestPastInDoubt(t *testing.T) {
	for name, before := range map[string]func(s store.Store, key string, value []byte){
		"the reply is lost": func(store.Store, string, []byte) {},
		"another is first": func(s store.Store, key string, _ []byte) {
			if _, err := s.Put(t.Context(), key, term.Past("another", 1).Encode(), store.Condition{}); err != nil {
				t.Error(err)
			}
		},
	} {
		s := founded(t, memory.New(), nil)
		err := Past(t.Context(), &interposed{s, before}, "web", 7, "import", time.Now())
		var held *PastError
		if first := name == "another is first"; errors.As(err, &held) != first || !first && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// interposed is a store where something happens before each write, and its reply is
// lost.
type interposed struct {
	store.Store
	before func(s store.Store, key string, value []byte)
}

func (i *interposed) Put(ctx context.Context, key string, value []byte, c store.Condition) (store.Record, error) {
	i.before(i.Store, key, value)
	_, err := i.Store.Put(ctx, key, value, c)
	return store.Record{}, errors.Join(err, errors.New("the connection was lost"))
}

func TestPastRefuses(t *testing.T) {
	s := founded(t, memory.New(), nil)
	now := time.Now()
	for name, err := range map[string]error{
		"worker -1":        Past(t.Context(), s, "web", -1, "import", now),
		"worker 1024":      Past(t.Context(), s, "web", 1024, "import", now),
		"no name":          Past(t.Context(), s, "web", 7, "", now),
		"to come":          Past(t.Context(), s, "web", 7, "import", now.Add(time.Minute)),
		"before the epoch": Past(t.Context(), s, "web", 7, "import", time.Unix(0, 0)),
	} {
		var option *OptionError
		if !errors.As(err, &option) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Past(t.Context(), s, "other", 7, "import", now); !errors.Is(err, ErrNoPool) {
		t.Errorf("a pool that is not there: %v", err)
	}
}
