package tabletest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table"
)

// testFirstUse lets many processes write to a store that has no table yet.
func testFirstUse(t *testing.T, x Server) {
	for range 3 {
		d := x.Fresh(t)
		var wg sync.WaitGroup
		for i := range 16 {
			s := x.New(x.open(t, d))
			wg.Go(func() {
				if i%4 == 0 {
					if _, err := s.Init(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if _, err := s.Put(t.Context(), fmt.Sprint(i), []byte(`1`), store.Condition{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if l, err := x.New(x.open(t, d)).List(t.Context(), ""); err != nil || len(l) != 16 {
			t.Errorf("%d records, %v", len(l), err)
		}
	}
}

// testNoTable reads from a store that nobody wrote to, which makes nothing.
func testNoTable(t *testing.T, x Server) {
	s, db := x.fresh(t)
	r, err := s.Get(t.Context(), "k")
	if err != nil || r.Version != "" || r.Read.IsZero() {
		t.Errorf("Get: %+v, %v", r, err)
	}
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 0 {
		t.Errorf("List: %v, %v", l, err)
	}
	if p, err := s.Durability(t.Context()); err != nil || !p.Durable {
		t.Errorf("Durability: %+v, %v", p, err)
	}
	_, err = s.Put(t.Context(), "k", []byte(`1`), store.Condition{Version: store.NewVersion()})
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("Put on a Version: %v", err)
	}
	if x.Exists(t, db, "firn_records") {
		t.Error("a table was made")
	}
	MustPut(t, s, "k", `1`, store.Condition{})
	if !x.Exists(t, db, "firn_records") || x.Exists(t, db, "firn_workers") {
		t.Error("the first Put makes the table, and nothing else")
	}
}

// testDropped drops the table under open stores: they have forgotten, and do not
// make it again. One made anew has never seen anything.
func testDropped(t *testing.T, x Server) {
	db := x.open(t, x.Fresh(t))
	written, created, read, listed := x.New(db), x.New(db), x.New(db), x.New(db)
	r := MustPut(t, written, "k", `1`, store.Condition{})
	if made, err := created.Init(t.Context()); err != nil || made {
		t.Fatal(made, err)
	}
	if _, err := read.Get(t.Context(), "none"); err != nil {
		t.Fatal(err)
	}
	if _, err := listed.List(t.Context(), "none"); err != nil {
		t.Fatal(err)
	}
	Do(t, db, `DROP TABLE firn_records CASCADE`)
	for range 2 {
		for _, s := range []Store{written, created, read, listed} {
			_, get := s.Get(t.Context(), "k")
			_, list := s.List(t.Context(), "")
			replaced, replace := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
			made, create := s.Put(t.Context(), "k", []byte(`2`), store.Condition{})
			_, durability := s.Durability(t.Context())
			for what, err := range map[string]error{"Get": get, "List": list, "replace": replace, "create": create, "Durability": durability} {
				var forgot *store.ForgotError
				if !errors.As(err, &forgot) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if replaced.Version+made.Version != "" {
				t.Error("nothing was sent, and there is a Version")
			}
		}
	}
	// One that saw it only after its Put had not found it does not either.
	conn, err := table.Conn(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(x.Ensure(t.Context(), written, conn), conn.Close()); err != nil {
		t.Error(err)
	}
	if x.Exists(t, db, "firn_records") {
		t.Fatal("the table was made again")
	}
	MustPut(t, x.New(db), "other", `1`, store.Condition{})
	for _, s := range []Store{written, read} { // it is another one by now
		if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != "" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version}); !errors.Is(err, store.ErrConflict) {
			t.Error(err)
		}
	}
}

// Fill writes records of a pool, and returns that of its worker 17.
func Fill(t *testing.T, s Store) (worker store.Record) {
	t.Helper()
	MustPut(t, s, "store", `{"v":1,"floor":"2026-01-01T00:00:00Z"}`, store.Condition{})
	MustPut(t, s, "pool/web", `{"v":1,"id":"x","layout":"time:41@1ms,worker:10,seq:12","workers":"0-1023","floor":7}`, store.Condition{})
	MustPut(t, s, "pool/web/fresh", `{"v":1,"next":3}`, store.Condition{})
	worker = MustPut(t, s, "pool/web/worker/17", `{"v":1,"term":18446744073709551615,"owner":"ab","name":"host-1","horizon":9223372036854775807}`, store.Condition{})
	MustPut(t, s, "pool/web/worker/18", `{"v":1,"term":3,"horizon":5}`, store.Condition{})
	return worker
}

// testViews reads series that were drawn from.
func testViews(t *testing.T, x Server) {
	s, db := x.fresh(t)
	if _, err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]*sequence.Options{
		"even": {First: 2, Increment: 2, Max: 1000, Cache: 50}, "strict": {Strict: true}, "none": {},
	} {
		if _, err := sequence.Create(t.Context(), s, name, o); err != nil {
			t.Fatal(err)
		}
		if name == "none" {
			continue
		}
		series, err := sequence.Open(t.Context(), s, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer series.Close()
		if _, err := series.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	returns(t, db.QueryRow(x.Views.Segments).Scan, x.Views.SegmentsWant)
	if _, err := document.Create(t.Context(), s, "invoice", &document.Options{Pattern: "INV-{yyyy}-{6}", Zone: "UTC"}); err != nil {
		t.Fatal(err)
	}
	invoices, err := document.Open(t.Context(), s, "invoice", &document.Options{Pattern: "INV-{yyyy}-{6}", Zone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	number, err := invoices.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	returns(t, db.QueryRow(x.Views.Serials).Scan, "invoice "+number.Period+" 1")
}

func returns(t *testing.T, scan func(...any) error, want string) {
	t.Helper()
	var got string
	if err := scan(&got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s, not %s", got, want)
	}
}
