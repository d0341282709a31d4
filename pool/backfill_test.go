package pool_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// Who leases a worker that gave ids of the past starts above them, whatever its
// clock says.
func TestBackfillThenLease(t *testing.T) {
	s := with(t, memory.New(), nil)
	last := time.Now().Add(time.Second)
	if err := pool.ReserveBackfill(t.Context(), s, pool.Default, 7, "import", last); err != nil {
		t.Fatal(err)
	}
	l, err := lease.Open(t.Context(), s, &lease.Options{Choice: lease.Only(7), Wait: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	id, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p, err := firn.Default().Decode(id); err != nil || p.Worker != 7 || p.Tick <= firn.Default().Tick(last) {
		t.Errorf("id %d: worker %d, tick %d, %v; want one of worker 7 above tick %d", id, p.Worker, p.Tick, err, firn.Default().Tick(last))
	}
}

func TestBackfillOnce(t *testing.T) {
	s := with(t, memory.New(), nil)
	l, err := lease.Open(t.Context(), s, &lease.Options{Choice: lease.Only(7), Name: "import"})
	if err != nil {
		t.Fatal(err)
	}
	last := time.Now()
	past := func(worker int64, name string) *pool.BackfillError {
		t.Helper()
		var held *pool.BackfillError
		if err := pool.ReserveBackfill(t.Context(), s, pool.Default, worker, name, last); err != nil && !errors.As(err, &held) {
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
	if _, err := pool.Recover(t.Context(), s, 0); err != nil {
		t.Fatal(err)
	}
	if e := past(8, "import"); e != nil {
		t.Errorf("the same after a restore: %v", e)
	}
}

// Where the pool may have had a predecessor no worker counts as never held. Where the store
// is lossy, or was recovered, none does: ids of the past may have been made with each.
func TestBackfillDoubt(t *testing.T) {
	recovered := with(t, memory.New(), nil)
	if err := pool.ReserveBackfill(t.Context(), recovered, pool.Default, 1001, "import", time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Recover(t.Context(), recovered, 0); err != nil {
		t.Fatal(err)
	}
	if err := pool.ReserveBackfill(t.Context(), recovered, pool.Default, 1001, "import", time.Now().Add(-time.Second)); err != nil {
		t.Errorf("the same again after a recovery: %v", err)
	}
	ensured := memory.New()
	if _, err := pool.Ensure(t.Context(), ensured, pool.Default, nil); err != nil {
		t.Fatal(err)
	}
	// The workers were another pool's.
	inherited := with(t, memory.New(), nil)
	for _, last := range []int64{1023, 511} {
		if _, err := pool.SetWorkers(t.Context(), inherited, pool.Default, 0, last); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Create(t.Context(), inherited, "heir", &pool.Options{First: 512}); err != nil {
		t.Fatal(err)
	}
	marked := with(t, memory.New(), nil)
	change(t, marked, pool.Default, func(p term.Pool) term.Pool { p.Lossy = "seen by a member"; return p })
	for name, c := range map[string]struct {
		s    store.Store
		pool string
	}{
		"recovered": {recovered, pool.Default}, "ensured": {ensured, pool.Default}, "inherited": {inherited, "heir"},
		"lossy": {forgetful{with(t, memory.New(), nil)}, pool.Default}, "seen to be lossy": {marked, pool.Default},
	} {
		var held *pool.BackfillError
		if err := pool.ReserveBackfill(t.Context(), c.s, c.pool, 1000, "import", time.Now()); !errors.As(err, &held) || held.Name != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A write whose reply is lost counts if the record is there; two that want one
// worker at the same time do not both get it.
func TestBackfillInDoubt(t *testing.T) {
	for name, before := range map[string]func(s store.Store, key string, value []byte){
		"the reply is lost": func(store.Store, string, []byte) {},
		"another is first": func(s store.Store, key string, _ []byte) {
			if _, err := s.Put(t.Context(), key, term.Past("another", 1).Encode(), store.Condition{}); err != nil {
				t.Error(err)
			}
		},
	} {
		s := with(t, memory.New(), nil)
		err := pool.ReserveBackfill(t.Context(), &interposed{s, before}, pool.Default, 7, "import", time.Now())
		var held *pool.BackfillError
		if first := name == "another is first"; errors.As(err, &held) != first || !first && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBackfillRefuses(t *testing.T) {
	s := with(t, memory.New(), nil)
	now := time.Now()
	for name, err := range map[string]error{
		"worker -1":        pool.ReserveBackfill(t.Context(), s, pool.Default, -1, "import", now),
		"worker 1024":      pool.ReserveBackfill(t.Context(), s, pool.Default, 1024, "import", now),
		"no name":          pool.ReserveBackfill(t.Context(), s, pool.Default, 7, "", now),
		"to come":          pool.ReserveBackfill(t.Context(), s, pool.Default, 7, "import", now.Add(time.Minute)),
		"before the epoch": pool.ReserveBackfill(t.Context(), s, pool.Default, 7, "import", time.Unix(0, 0)),
	} {
		var option *pool.OptionError
		var worker *term.WorkerError
		if !errors.As(err, &option) && !errors.As(err, &worker) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var missing *term.MissingPoolError
	if err := pool.ReserveBackfill(t.Context(), s, "other", 7, "import", now); !errors.As(err, &missing) {
		t.Errorf("a pool that is not there: %v", err)
	}
}

// A worker that another pool has a record of may have made the ids, so it is refused wherever
// that record is: in a pool that gave the worker away, and in what is left of a pool that was
// lost. The error names that pool. A pool that is said to repeat the ids does not count.
func TestBackfillElsewhere(t *testing.T) {
	s := with(t, memory.New(), nil)
	if err := pool.ReserveBackfill(t.Context(), s, pool.Default, 1022, "import", time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.SetWorkers(t.Context(), s, pool.Default, 0, 511); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Create(t.Context(), s, "heir", &pool.Options{First: 512}); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Create(t.Context(), s, "twin", &pool.Options{MayRepeat: []string{pool.Default, "heir"}}); err != nil {
		t.Fatal(err)
	}
	remains := with(t, memory.New(), nil)
	if _, err := remains.Put(t.Context(), term.KeyWorker("lost", 7), term.Record{V: 1, Term: 1, Name: "web-1", Horizon: 1}.Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s      store.Store
		pool   string
		worker int64
		in     string // the pool that had the worker; empty: the worker is given
	}{
		{s, "heir", 1022, pool.Default},
		{s, "twin", 1022, ""},
		{s, pool.Default, 7, ""},
		{remains, pool.Default, 7, "lost"},
		{remains, pool.Default, 8, "lost"}, // of a lost pool the layout is not known
	} {
		err := pool.ReserveBackfill(t.Context(), c.s, c.pool, c.worker, "another", time.Now().Add(-time.Hour))
		var held *pool.BackfillError
		if refused := errors.As(err, &held); refused != (c.in != "") || !refused && err != nil || refused && held.In != c.in {
			t.Errorf("worker %d of pool %s: %v, want one that pool %q had", c.worker, c.pool, err, c.in)
		}
	}
}

// A job has its worker again after the pool gave the worker away, for the same ids and no
// later ones: another pool may have the worker now, and starts above them.
func TestBackfillAgainOutsideTheRange(t *testing.T) {
	s := with(t, memory.New(), nil)
	last := time.Now().Add(-time.Hour)
	if err := pool.ReserveBackfill(t.Context(), s, pool.Default, 1022, "import", last); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.SetWorkers(t.Context(), s, pool.Default, 0, 511); err != nil {
		t.Fatal(err)
	}
	if err := pool.ReserveBackfill(t.Context(), s, pool.Default, 1022, "import", last); err != nil {
		t.Errorf("the same ids: %v", err)
	}
	// A record that came after the pool gave the worker away says nothing of other pools.
	if _, err := s.Put(t.Context(), term.KeyWorker(pool.Default, 1021), term.Past("past:import", firn.Default().Tick(time.Now())).Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"another job": pool.ReserveBackfill(t.Context(), s, pool.Default, 1022, "another", last),
		"later ids":   pool.ReserveBackfill(t.Context(), s, pool.Default, 1021, "import", last.Add(time.Minute)),
		"no record":   pool.ReserveBackfill(t.Context(), s, pool.Default, 1020, "import", last),
	} {
		if !errors.As(err, new(*term.WorkerError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pool that gives the worker away while the record is being written refuses the job.
func TestBackfillWhileTheRangeShrinks(t *testing.T) {
	s := with(t, memory.New(), nil)
	narrow := func(inner store.Store, _ string, _ []byte) {
		if _, err := pool.SetWorkers(t.Context(), inner, pool.Default, 0, 511); err != nil {
			t.Error(err)
		}
	}
	err := pool.ReserveBackfill(t.Context(), &interposed{s, narrow}, pool.Default, 1022, "import", time.Now())
	if !errors.As(err, new(*term.WorkerError)) {
		t.Error(err)
	}
}
