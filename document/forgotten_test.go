package document_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

func TestForgotten(t *testing.T) {
	inner := memory.New()
	empty := inner.Snapshot()
	s := opened(t, inner, "{1+}", document.Options{Cache: 3})
	begun := inner.Snapshot()
	wantNext(t, s, "1", "2", "3", "4")
	var forgot *store.ForgotError
	inner.Restore(begun)
	wantNext(t, s, "5", "6") // in hand
	for range 2 {
		if _, err := s.Next(t.Context()); !errors.As(err, &forgot) || !strings.Contains(err.Error(), "was counted to 6, and now it is 0") {
			t.Error(err)
		}
	}
	// Its operator knows better.
	if done, err := document.Recover(t.Context(), inner, 100, nil); err != nil || len(done) != 1 || !reflect.DeepEqual(done[0], document.Recovery{Series: "invoice", By: 100, Max: 1e18 - 1}) {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := s.Next(t.Context()); !errors.As(err, &forgot) {
		t.Errorf("it is not final: %v", err)
	}
	again := opened(t, inner, "{1+}", document.Options{})
	wantNext(t, again, "101")
	restored := inner.Snapshot()
	inner.Restore(empty)
	if _, err := again.Next(t.Context()); !errors.As(err, &forgot) || !strings.Contains(err.Error(), "it is gone") {
		t.Error(err)
	}
	// What is not there after a restoration may be what was forgotten.
	inner.Restore(restored)
	if _, err := document.Open(t.Context(), inner, "other", &document.Options{Pattern: "{1+}"}); !isNone(err) {
		t.Error(err)
	}
	if _, err := document.Create(t.Context(), inner, "other", &document.Options{Pattern: "O{1+}", New: true}); err != nil {
		t.Error(err)
	}
}

// A definition that was replaced by another one of the same words is told.
func TestBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New()
		empty := inner.Snapshot()
		s, err := document.Open(t.Context(), inner, "s", &document.Options{Pattern: "{1+}", Cache: 1000})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		inner.Restore(empty)
		other, err := document.Open(t.Context(), inner, "s", &document.Options{Pattern: "{1+}"})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		wantNext(t, other, "1")
		time.Sleep(31 * time.Second)
		var forgot *store.ForgotError
		if _, err := s.Next(t.Context()); !errors.As(err, &forgot) || !strings.Contains(err.Error(), "begun anew") {
			t.Error(err)
		}
	})
}

// Whoever goes on after a restoration never repeats a number of its own, be it
// that too little was raised by; and follows when another one has.
func TestRestoredWhileOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &promising{Store: memory.New(), p: store.Durability{Durable: false, Instance: "a"}}
		inner := st.Store.(*memory.Store)
		accept := &document.Options{MayRepeat: true}
		if _, err := document.Create(t.Context(), st, "s", with("{1+}", accept)); err != nil {
			t.Fatal(err)
		}
		var all []*document.Series
		for range 2 {
			s, err := document.Open(t.Context(), st, "s", with("{1+}", accept))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			all = append(all, s)
		}
		begun := inner.Snapshot()
		wantNext(t, all[0], "1", "2", "3", "4", "5")
		inner.Restore(begun)
		st.set(store.Durability{Durable: false, Instance: "b"})
		if _, err := document.Recover(t.Context(), st, 1, nil); err != nil {
			t.Fatal(err)
		}
		wantNext(t, all[0], "6", "7")
		wantNext(t, all[1], "8")
		wantNext(t, all[0], "9")
	})
}

// A process that opened before a restoration follows at once, on a durable store
// too, and a definition that went back is noticed.
func TestFollowsRestoration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var all []*document.Series
		for range 2 {
			s, err := document.Open(t.Context(), st, "s", &document.Options{Pattern: "{1+}"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			all = append(all, s)
		}
		wantNext(t, all[0], "1")
		before := st.Snapshot()
		if _, err := document.Recover(t.Context(), st, 100, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(31 * time.Second)
		wantNext(t, all[0], "102")
		young, err := document.Open(t.Context(), st, "s", &document.Options{Pattern: "{1+}"})
		if err != nil {
			t.Fatal(err)
		}
		defer young.Close()
		wantNext(t, young, "103")
		wantNext(t, all[1], "104") // its definition is older than 30 s
		if _, err := document.Recover(t.Context(), st, 100, nil); err != nil {
			t.Fatal(err)
		}
		other, err := document.Open(t.Context(), st, "s", &document.Options{Pattern: "{1+}"})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		wantNext(t, other, "205")
		wantNext(t, young, "206") // its own is not, and the counter tells
		wantNext(t, other, "207")

		st.Restore(before)
		time.Sleep(31 * time.Second)
		var forgot *store.ForgotError
		if _, err := other.Next(t.Context()); !errors.As(err, &forgot) || !strings.Contains(err.Error(), "its definition is an older one") {
			t.Error(err)
		}
	})
}

// promising is a store with a durability of its own.
type promising struct {
	store.Store
	mu sync.Mutex
	p  store.Durability
}

func (p *promising) Durability(context.Context) (store.Durability, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.p, nil
}

func (p *promising) set(v store.Durability) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.p = v
}

func TestLossy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lossyStore(t)
	})
}

func lossyStore(t *testing.T) {
	inner := memory.New()
	a := store.Durability{Durable: false, Why: "appendonly no", Instance: "run a"}
	b := store.Durability{Durable: false, Why: "appendonly no", Instance: "run b"}
	st := &promising{Store: inner, p: a}
	var none *document.MissingError
	if _, err := document.Open(t.Context(), st, "s", &document.Options{Pattern: "{1+}", MayRepeat: true}); !errors.As(err, &none) {
		t.Error(err)
	}
	var refused *document.LossyError
	if _, err := document.Open(t.Context(), st, "s", &document.Options{Pattern: "{1+}"}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "(appendonly no)") {
		t.Error(err)
	}
	accept := &document.Options{MayRepeat: true}
	if _, err := document.Create(t.Context(), st, "s", &document.Options{Pattern: "{1+}"}); !errors.As(err, &refused) {
		t.Error(err)
	}
	if in, err := document.Create(t.Context(), st, "s", with("{1+}", accept)); err != nil || !in.MayRepeat {
		t.Fatalf("%+v %v", in, err)
	}
	if _, err := document.Open(t.Context(), st, "s", &document.Options{Pattern: "{1+}"}); !errors.As(err, &refused) {
		t.Errorf("opened by a program that accepts no repeats: %v", err)
	}
	s, err := document.Open(t.Context(), st, "s", with("{1+}", accept))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantNext(t, s, "1", "2")
	before := inner.Snapshot()
	wantNext(t, s, "3")
	if got := s.State().Durable; got {
		t.Error(got)
	}

	// Another server, which lacks the last write.
	inner.Restore(before)
	st.set(b)
	var instance *document.InstanceError
	for range 3 {
		if _, err := s.Next(t.Context()); !errors.As(err, &instance) || instance.Have != "run b" || instance.Want != "run a" {
			t.Error(err)
		}
	}
	if _, err := document.Open(t.Context(), st, "s", with("{1+}", accept)); !errors.As(err, &instance) {
		t.Error(err)
	}
	if _, err := document.Recover(t.Context(), st, 1000, nil); err != nil {
		t.Fatal(err)
	}
	// One burned number less or more: 1,000 above what there is.
	if got, err := s.Next(t.Context()); err != nil || got.Count < 1003 || got.Count > 1004 {
		t.Errorf("%+v, %v", got, err)
	}

	// A series that began on a store which was durable then.
	st.set(store.Durability{Durable: true, Instance: "timeline 1"})
	if _, err := document.Create(t.Context(), st, "t", &document.Options{Pattern: "T{1+}", New: true}); err != nil {
		t.Fatal(err)
	}
	durable, err := document.Open(t.Context(), st, "t", &document.Options{Pattern: "T{1+}"})
	if err != nil {
		t.Fatal(err)
	}
	defer durable.Close()
	wantNext(t, durable, "T1")
	st.set(store.Durability{Durable: true, Instance: "timeline 2"})
	wantNext(t, durable, "T2")
	st.set(store.Durability{Durable: false, Why: "synchronous_commit=off", Instance: "timeline 2"})
	time.Sleep(31 * time.Second)
	if _, err := durable.Next(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), "synchronous_commit=off") {
		t.Error(err)
	}
	st.set(store.Durability{Durable: true, Instance: "timeline 2"})
	wantNext(t, durable, "T3")
}

// Periods up to the latest that has begun anywhere go on higher after a restoration,
// those that were forgotten too, and later ones begin as ever.
func TestRestoredPeriods(t *testing.T) {
	st, set := at(noon)
	s := opened(t, st, invoice, saigon)
	wantNext(t, s, "INV-20261120-000001")
	if done, err := document.Recover(t.Context(), st, 50, nil); err != nil || done[0].Through != "20261121" {
		t.Errorf("%+v, %v", done, err)
	}
	if done, err := document.Recover(t.Context(), st, 7, nil); err != nil || done[0].Through != "20261121" {
		t.Errorf("%+v, %v", done, err)
	}
	s = opened(t, st, invoice, saigon)
	wantNext(t, s, "INV-20261120-000059", "INV-20261120-000060")
	set(noon.Add(-24 * time.Hour))
	wantNext(t, opened(t, st, invoice, saigon), "INV-20261119-000058")
	set(noon.Add(24 * time.Hour))
	wantNext(t, opened(t, st, invoice, saigon), "INV-20261121-000058")
	set(noon.Add(48 * time.Hour))
	wantNext(t, opened(t, st, invoice, saigon), "INV-20261122-000001")
	if _, err := document.Recover(t.Context(), st, 0, nil); !errors.As(err, new(*document.OptionError)) {
		t.Error("counters were lowered")
	}
}

// That a series had a zone further east may be forgotten with what was counted there.
func TestRestoredForgetsZone(t *testing.T) {
	st, _ := at(noon)
	const auckland = "Pacific/Auckland"
	opened(t, st, invoice, saigon)
	before := st.Snapshot()
	if _, err := document.Widen(t.Context(), st, "invoice", &document.Options{Pattern: invoice, Zone: auckland}); err != nil {
		t.Fatal(err)
	}
	wantNext(t, opened(t, st, invoice, document.Options{Zone: auckland}), "INV-20261121-000001")
	st.Restore(before)
	if _, err := document.Recover(t.Context(), st, 50, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := document.Widen(t.Context(), st, "invoice", &document.Options{Pattern: invoice, Zone: auckland}); err != nil {
		t.Fatal(err)
	}
	wantNext(t, opened(t, st, invoice, document.Options{Zone: auckland}), "INV-20261121-000051")
}

// Raised as far as can be, time and again, a counter is used up, and not set back.
func TestRestoredToTheEnd(t *testing.T) {
	st := memory.New()
	opened(t, st, "{1+}", document.Options{})
	for range 12 {
		if _, err := document.Recover(t.Context(), st, 1e18-1, nil); err != nil {
			t.Fatal(err)
		}
	}
	var used *document.EndError
	if got, err := opened(t, st, "{1+}", document.Options{}).Next(t.Context()); !errors.As(err, &used) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := document.Recover(t.Context(), st, 1e18, nil); err == nil {
		t.Error("raised above every pattern")
	}
}

// What a process hands back to a store that went back is not part of what it lost.
func TestHandedBackToAnOlderStore(t *testing.T) {
	st := memory.New()
	a := opened(t, st, "{1+}", document.Options{Cache: 10})
	wantNext(t, a, "1")
	kept := st.Snapshot()
	b := opened(t, st, "{1+}", document.Options{Cache: 10})
	wantNext(t, b, "11", "12", "13", "14", "15", "16", "17", "18", "19", "20")
	st.Restore(kept) // it has lost 10 counts
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	c := opened(t, st, "{1+}", document.Options{Cache: 3})
	wantNext(t, c, "2")
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := document.Recover(t.Context(), st, 11, nil); err != nil {
		t.Fatal(err)
	}
	wantNext(t, opened(t, st, "{1+}", document.Options{}), "22", "23")
	if _, err := document.Recover(t.Context(), st, 11, nil); err != nil {
		t.Fatal(err)
	}
	wantNext(t, opened(t, st, "{1+}", document.Options{}), "35") // nothing is counted twice
}

// A document says that texts may repeat only where somebody said so, whatever its store tells of
// itself.
func TestMayRepeatIsSaid(t *testing.T) {
	st := &promising{Store: memory.New(), p: store.Durability{Durable: true, Instance: "timeline 1"}}
	for name, said := range map[string]bool{"said": true, "not": false} {
		if in, err := document.Create(t.Context(), st, name, with(name+"{1+}", &document.Options{MayRepeat: said})); err != nil || in.MayRepeat != said {
			t.Errorf("%s: %+v %v", name, in, err)
		}
	}
	if _, err := document.Recover(t.Context(), st, 1, nil); err != nil {
		t.Fatal(err)
	}
	all, err := document.List(t.Context(), st)
	if err != nil || len(all) != 2 || all[0].MayRepeat || !all[1].MayRepeat {
		t.Errorf("after a recovery: %+v %v", all, err)
	}
}

// A recovery says above which text today continues, also where an earlier recovery did not reach today.
func TestRecoverAgainDaysLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		o := &document.Options{Pattern: "R-{yyyyMMdd}-{6}", Zone: "UTC"}
		begun := func() string {
			t.Helper()
			s, err := document.Open(t.Context(), st, "invoice", o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			n, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return n.Text
		}
		begun()
		for range 2 {
			time.Sleep(72 * time.Hour)
			done, err := document.Recover(t.Context(), st, 100, nil)
			if err != nil {
				t.Fatal(err)
			}
			today := time.Now().UTC().Format("R-20060102-")
			if done[0].Text != today+"000100" || len(done[0].Texts) != 1 {
				t.Errorf("%+v", done[0])
			}
			if text := begun(); text != today+"000101" {
				t.Error(text)
			}
		}
	})
}

// forgottenRecovery is a store that has forgotten a recovery by 100, after which 101 to 103 were given out,
// and a process that knows of it.
func forgottenRecovery(t *testing.T, inner *memory.Store) (st *promising, idle *document.Series) {
	t.Helper()
	st = &promising{Store: inner, p: store.Durability{Instance: "a"}}
	if _, err := document.Create(t.Context(), st, "invoice", with("{1+}", &accepts)); err != nil {
		t.Fatal(err)
	}
	before := inner.Snapshot()
	if _, err := document.Recover(t.Context(), st, 100, nil); err != nil {
		t.Fatal(err)
	}
	wantNext(t, opened(t, st, "{1+}", accepts), "101", "102", "103")
	idle = opened(t, st, "{1+}", accepts)
	inner.Restore(before)
	st.set(store.Durability{Instance: "b"})
	return st, idle
}

var accepts = document.Options{MayRepeat: true}

// A store that forgets a recovery too may get a counter that has heeded it: by a process that knows it
// still, and stops after that write. The next recovery raises that counter nevertheless.
func TestRecoveryThatIsForgotten(t *testing.T) {
	for range 20 { // marks have random bits
		st, idle := forgottenRecovery(t, memory.New())
		if got, err := idle.Next(t.Context()); err == nil {
			t.Errorf("%s of a store that has forgotten", got.Text)
		}
		if _, err := document.Recover(t.Context(), st, 1000, nil); err != nil {
			t.Fatal(err)
		}
		wantNext(t, opened(t, st, "{1+}", accepts), "1102") // 101 was written, and not given out
	}
}

// Two recoveries at one instant, as by two hosts whose clocks differ, of which the store forgot the
// first: a process that knows that one raises by the second all the same, or stops.
func TestRecoveriesAtOneInstant(t *testing.T) {
	instant := time.Now() // the store's clock stands still
	continued := 0
	for range 20 { // which of the two has the higher mark is left to chance
		st, idle := forgottenRecovery(t, memory.NewClock(func() time.Time { return instant }))
		if _, err := document.Recover(t.Context(), st, 1000, nil); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*document.Series{idle, opened(t, st, "{1+}", accepts)} {
			switch got, err := s.Next(t.Context()); {
			case err == nil && got.Count <= 1000:
				t.Fatalf("%s was given out before", got.Text)
			case err == nil:
				continued++
			}
		}
	}
	if continued == 0 {
		t.Error("no process continued after any recovery")
	}
}

// A counter that has not heeded a recovery which this process's own write has is one of before,
// however high it is.
func TestCounterOfBefore(t *testing.T) {
	st := memory.New()
	opened(t, st, "{1+}", document.Options{})
	if _, err := document.Recover(t.Context(), st, 10, nil); err != nil {
		t.Fatal(err)
	}
	s := opened(t, st, "{1+}", document.Options{})
	wantNext(t, s, "11")
	rec, err := st.Get(t.Context(), "serial/invoice/all")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(t.Context(), rec.Key, []byte(`{"v":1,"count":"500"}`), store.Condition{Version: rec.Version}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Next(t.Context()); !errors.As(err, new(*store.ForgotError)) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A store that has forgotten something, and is durable now, lacks it all the same.
func TestDurableAfterItForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &promising{Store: memory.New(), p: store.Durability{Why: "for a test", Instance: "timeline 1"}}
		accept := document.Options{MayRepeat: true}
		if _, err := document.Create(t.Context(), st, "invoice", with("{1+}", &accept)); err != nil {
			t.Fatal(err)
		}
		before := st.Store.(*memory.Store).Snapshot()
		running := opened(t, st, "{1+}", accept)
		wantNext(t, running, "1", "2", "3")
		st.Store.(*memory.Store).Restore(before)
		st.set(store.Durability{Durable: true, Instance: "timeline 2"})
		if got, err := running.Next(t.Context()); err == nil {
			t.Errorf("a process that runs gives out %s", got.Text)
		}
		for _, accepts := range []bool{false, true} {
			s, err := document.Open(t.Context(), st, "invoice", with("{1+}", &document.Options{MayRepeat: accepts}))
			var other *document.InstanceError
			if !errors.As(err, &other) {
				t.Errorf("a process that starts: %v", err)
			}
			if err == nil {
				s.Close()
			}
		}
		if _, err := document.Recover(t.Context(), st, 100, nil); err != nil {
			t.Fatal(err)
		}
		wantNext(t, opened(t, st, "{1+}", document.Options{}), "101")
		st.set(store.Durability{Durable: true, Instance: "timeline 3"}) // where no commit is lost
		wantNext(t, opened(t, st, "{1+}", document.Options{}), "102")
	})
}
