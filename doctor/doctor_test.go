package doctor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// examined returns what a doctor says of a store, by the check. Said are settings, such as
// "pool=web".
func examined(t *testing.T, s store.Store, now func() time.Time, said ...string) (found map[string]Finding, bads int) {
	t.Helper()
	values := map[string]config.Value{}
	for _, one := range said {
		name, text, _ := strings.Cut(one, "=")
		values[name] = config.Value{Text: text, From: "--" + name}
	}
	found = map[string]Finding{}
	opened := func(e *exam, ctx context.Context) { e.opened(ctx, s) }
	for f := range examination(t.Context(), config.New(nil, values), &Options{now: now}, opened) {
		if found[f.Check] = f; f.State == Bad {
			bads++
		}
	}
	return found, bads
}

// remote is a store on another host, with a clock of its own.
type remote struct {
	*memory.Store
	durability store.Durability
	err        error
}

func (s *remote) Durability(context.Context) (store.Durability, error) { return s.durability, s.err }

func newServer(durable bool, ahead time.Duration) *remote {
	return &remote{
		Store:      memory.NewClock(func() time.Time { return time.Now().Add(ahead) }),
		durability: store.Durability{Durable: durable, Why: "for a test"},
	}
}

// A reader is a store whose user may read only.
type reader struct{ store.Store }

func (reader) Put(context.Context, string, []byte, store.Condition) (store.Record, error) {
	return store.Record{}, errors.New("permission denied for table firn_records")
}

// A user who may not write makes no id, and is told so. Asking changes nothing.
func TestRights(t *testing.T) {
	for _, durable := range []bool{true, false} {
		s := newServer(durable, 0)
		if _, err := pool.Create(t.Context(), s, pool.Default, nil); err != nil {
			t.Fatal(err)
		}
		before, err := s.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		found, bads := examined(t, s, time.Now)
		if f, ok := found["rights"]; ok || bads != 0 {
			t.Errorf("one who may write: %+v, %d bad", f, bads)
		}
		after, err := s.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if len(before) == 0 || !slices.EqualFunc(before, after, func(a, b store.Record) bool { return a.Key == b.Key && a.Version == b.Version }) {
			t.Errorf("%+v\nbecame %+v", before, after)
		}
		found, bads = examined(t, reader{s}, time.Now)
		if f := found["rights"]; f.State != Bad || !strings.Contains(f.Text, "permission denied") || bads == 0 {
			t.Errorf("one who may only read: %+v, %d bad", f, bads)
		}
	}
}

func wantFinding(t *testing.T, found map[string]Finding, check string, state State, text string) {
	t.Helper()
	if f := found[check]; f.State != state || !strings.Contains(f.Text, text) {
		t.Errorf("%s: %+v, want %s %q", check, f, state, text)
	}
	if f := found[check]; f.State == Bad && f.Do == "" && f.Err == nil {
		t.Errorf("%s: nothing to do about %+v", check, f)
	}
}

func TestClock(t *testing.T) {
	for _, tt := range []struct {
		ahead time.Duration // of the store's clock
		state State
		text  string
	}{
		{0, OK, "agree within 5s"},
		{4 * time.Second, OK, "agree"},
		{-4 * time.Second, OK, "agree"},
		{-time.Minute, Bad, "this host's is 1m"},
		{time.Minute, Warning, "behind the store's"},
	} {
		found, _ := examined(t, newServer(true, tt.ahead), time.Now)
		wantFinding(t, found, "clock", tt.state, tt.text)
	}
	found, _ := examined(t, memory.New(), time.Now)
	wantFinding(t, found, "clock", OK, "no second opinion")
	away := newServer(true, 0)
	away.err = errors.New("store: connection refused")
	found, bads := examined(t, away, time.Now)
	if f := found["durability"]; f.State != Bad || f.Text != "connection refused" || bads != 1 || len(found) != 1 {
		t.Errorf("%+v", found)
	}
}

// What follows from the class of the store and the knobs.
func TestCosts(t *testing.T) {
	found, _ := examined(t, newServer(true, 0), time.Now)
	wantFinding(t, found, "durability", OK, "durable: ")
	wantFinding(t, found, "pool default, record", Warning, "the store has no pool \"default\"")
	found, _ = examined(t, memory.New(), time.Now)
	wantFinding(t, found, "pool default, record", OK, "not created yet; the first process creates it with layout firn")
	wantFinding(t, found, "pool default, outage", OK, "5m while the store is away, 10s when a process has just started and all of it after 40s")
	wantFinding(t, found, "pool default, crash", OK, "for 5m at most, 10s if")
	wantFinding(t, found, "pool default, failover", OK, "nothing is issued for 5m10s")

	lossy := newServer(false, 0)
	if _, err := pool.Create(t.Context(), lossy, "web", &pool.Options{Layout: firn.JS53()}); err != nil {
		t.Fatal(err)
	}
	found, bads := examined(t, lossy, time.Now, "pool=web", "layout=js53")
	wantFinding(t, found, "durability", Warning, "lossy: ")
	wantFinding(t, found, "pool web, outage", OK, "continue for 3s while the store is away")
	wantFinding(t, found, "pool web, failover", OK, "each start of a process waits for 13s")
	if bads != 0 {
		t.Errorf("%d bad in %+v", bads, found)
	}
	found, _ = examined(t, memory.New(), time.Now, "outage=20s", "grant-file=/run/grant")
	wantFinding(t, found, "pool default, outage", OK, "20s while the store is away, 10s when a process has just started and all of it after 3s")
	wantFinding(t, found, "pool default, crash", OK, "for 30s at most, 10s if")
	wantFinding(t, found, "pool default, crash", OK, "from its grant file")
}

// A pool on which somebody has seen that the store is lossy stays by those rules.
func TestMark(t *testing.T) {
	s := newServer(false, 0)
	rec := term.Pool{V: 1, ID: "1", Layout: firn.Default().String(), Workers: "0-1023", Limit: 300_000, Lossy: "2026-11-21T08:00:00Z web-1: for a test"}
	if _, err := s.Put(t.Context(), term.KeyPool("default"), rec.Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	found, _ := examined(t, s, time.Now)
	if f, ok := found["pool default, mark"]; ok {
		t.Errorf("the promise says it already: %+v", f)
	}
	s.durability.Durable = true
	found, _ = examined(t, s, time.Now)
	wantFinding(t, found, "pool default, mark", Warning, "web-1: for a test")
}

// What a pool has: who holds what, who falls free, and what lies ahead.
func TestPool(t *testing.T) {
	s := memory.New()
	if _, err := pool.Create(t.Context(), s, "web", &pool.Options{Workers: 3}); err != nil {
		t.Fatal(err)
	}
	opts := &lease.Options{Pool: "web", Logger: slog.New(slog.DiscardHandler)}
	var held []*lease.Lease
	for range 3 {
		l, err := lease.Open(t.Context(), s, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		held = append(held, l)
	}
	found, _ := examined(t, s, time.Now)
	wantFinding(t, found, "pool web, workers", Bad, "0 to 2: 3 held, 0 unusable, 0 free; no other process can start")
	if do := found["pool web, workers"].Do; !strings.Contains(do, "firn pool set web --workers 0-5") {
		t.Errorf("a full pool: %s", do)
	}
	wantFinding(t, found, "pool web, crash", OK, "; now that would be 10s for worker ")
	wantFinding(t, found, "pool web, start", OK, "ids have started")

	if err := held[0].Close(); err != nil {
		t.Fatal(err)
	}
	if err := pool.Release(t.Context(), s, "web", held[1].State().Worker); err != nil {
		t.Fatal(err)
	}
	found, _ = examined(t, s, time.Now)
	wantFinding(t, found, "pool web, workers", OK, "0 to 2: 1 held, 1 unusable, 1 free")

	if _, err := pool.Recover(t.Context(), s, time.Minute); err != nil {
		t.Fatal(err)
	}
	found, _ = examined(t, s, time.Now)
	wantFinding(t, found, "pool web, start", Warning, "ids start at ")
	wantFinding(t, found, "pool web, workers", Warning, "0 held, 3 unusable, 0 free; the first can be leased in ")
	found, _ = examined(t, s, time.Now, "pool=web", "layout=twitter")
	wantFinding(t, found, "pool web, layout", Bad, "it is firn, and the settings say twitter")

	// Seventy years later.
	found, bads := examined(t, s, func() time.Time { return time.Now().AddDate(70, 0, 0) })
	wantFinding(t, found, "pool web, years", Bad, "the layout ended on 2094-09-07")
	if bads != 1 {
		t.Errorf("%d bad in %+v", bads, found)
	}
	found, _ = examined(t, s, func() time.Time { return time.Now().AddDate(60, 0, 0) })
	wantFinding(t, found, "pool web, years", Warning, " left: the layout ends on 2094-09-07")
	found, _ = examined(t, s, func() time.Time { return time.Now().AddDate(-60, 0, 0) })
	wantFinding(t, found, "pool web, years", Bad, "the layout begins on 2025-01-01")
	wantFinding(t, found, "clock", Warning, "which is still to come")
}

func TestRecords(t *testing.T) {
	for _, tt := range []struct{ key, value, text string }{
		{"pool/web", "{}", "has no format number"},
		{"pool/web", `{"v":2}`, "written by a later firn"},
		{"pool/web/worker/0", `{"v":1,"horizon":-1}`, "negative number"},
		{"pool/web/worker/x", `{"v":1}`, "none of firn's"},
		{"pool/web/x", `{"v":1}`, "none of firn's"},
		{"segment/a", `{"v":1}`, "has no id"},
		{"serial/a", `{"v":1,"pattern":"{0}"}`, "a counter has 1 to 18 digits"},
		{"serial/a/20261120", `{"v":2}`, "written by a later firn"},
		{"other/a", `{"v":1}`, "none of firn's"},
		{"store", `"`, "record store: "},
	} {
		s := memory.New()
		if _, err := s.Put(t.Context(), tt.key, []byte(tt.value), store.Condition{}); err != nil {
			t.Fatal(err)
		}
		found, bads := examined(t, s, time.Now)
		wantFinding(t, found, "records", Bad, tt.text)
		if later := strings.Contains(tt.text, "later firn"); later != strings.Contains(found["records"].Do, "firn that wrote the record") {
			t.Errorf("%s: %+v", tt.key, found["records"])
		}
		if bads != 1 {
			t.Errorf("%s: %+v", tt.key, found)
		}
	}
	later := memory.New()
	if _, err := later.Put(t.Context(), "pool/"+pool.Default, []byte(`{"v":2}`), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	found, _ := examined(t, later, time.Now)
	for check, f := range found {
		if strings.Contains(f.Do, "pool ensure") || strings.Contains(f.Do, "pool create") || strings.Contains(f.Do, "backup") {
			t.Errorf("%s: %+v, though a later firn wrote the pool's record", check, f)
		}
	}
	s := memory.New()
	if _, err := s.Put(t.Context(), term.KeyWorker("web", 0), term.Record{V: 1, Term: 1}.Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	found, _ = examined(t, s, time.Now)
	wantFinding(t, found, "pool web, record", Bad, "the record of the pool is missing or unreadable, and it has 1 worker")
}

// Whoever has seen enough is asked for nothing more.
func TestBreak(t *testing.T) {
	taken := 0
	for range Store(t.Context(), memory.New(), nil) {
		taken++
		break
	}
	if taken != 1 {
		t.Errorf("%d findings", taken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for f := range Store(ctx, memory.New(), nil) {
		if taken++; taken > 2 {
			t.Errorf("after the end of its context: %+v", f)
		}
		cancel()
	}
}

// Another instance of a store that can lose writes may lack the last numbers of its counters.
func TestStill(t *testing.T) {
	s := newServer(false, 0)
	s.durability.Instance = "run a"
	if _, err := sequence.Create(t.Context(), s, "orders", &sequence.Options{MayRepeat: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := document.Create(t.Context(), s, "invoice", &document.Options{Pattern: "R{3}", MayRepeat: true}); err != nil {
		t.Fatal(err)
	}
	if found, bads := examined(t, s, time.Now); bads != 0 {
		t.Errorf("%+v", found)
	}
	s.durability.Instance = "run b"
	found, bads := examined(t, s, time.Now)
	for _, name := range []string{"orders", "invoice"} {
		wantFinding(t, found, "series "+name, Bad, "may")
		if f := found["series "+name]; !strings.Contains(f.Do, "firn store recover") {
			t.Errorf("%+v", f)
		}
	}
	if bads != 2 || !errors.As(found["series invoice"].Err, new(*document.InstanceError)) || !errors.As(found["series orders"].Err, new(*store.ForgotError)) {
		t.Errorf("%+v", found)
	}
	if _, err := sequence.Recover(t.Context(), s, 100, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := document.Recover(t.Context(), s, 100, nil); err != nil {
		t.Fatal(err)
	}
	if found, bads := examined(t, s, time.Now); bads != 0 {
		t.Errorf("%+v", found)
	}

	// One that was made while the store was durable may lack some, whoever accepts that.
	s.durability = store.Durability{Durable: true}
	if _, err := sequence.Create(t.Context(), s, "old", &sequence.Options{New: true}); err != nil {
		t.Fatal(err)
	}
	s.durability = store.Durability{Instance: "run b", Why: "for a test"}
	found, _ = examined(t, s, time.Now)
	wantFinding(t, found, "series old", Bad, "could not when the series was created")
	if !errors.As(found["series old"].Err, new(*sequence.LossyError)) {
		t.Errorf("%+v", found["series old"])
	}
}
