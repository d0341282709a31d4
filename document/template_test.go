package document_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// named opens a name of the template bill:*.
func named(t *testing.T, st store.Store, name string) *document.Series {
	t.Helper()
	s, err := document.Open(t.Context(), st, name, &document.Options{Template: "bill:*"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// billing returns a store that has the template bill:*.
func billing(t *testing.T, o document.Options) *memory.Store {
	t.Helper()
	st := memory.New()
	if _, err := document.Create(t.Context(), st, "bill:*", &o); err != nil {
		t.Fatal(err)
	}
	return st
}

func wantKeys(t *testing.T, st store.Store, want ...string) {
	t.Helper()
	list, err := st.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, rec := range list {
		keys = append(keys, rec.Key)
	}
	if got := strings.Join(keys, " "); got != strings.Join(want, " ") {
		t.Errorf("the store has %s, want %s", got, strings.Join(want, " "))
	}
}

func TestTemplate(t *testing.T) {
	st := billing(t, document.Options{Pattern: "{1+}"})
	wantNext(t, named(t, st, "bill:42"), "1", "2", "3")
	wantNext(t, named(t, st, "bill:7"), "1", "2")
	again := named(t, st, "bill:42")
	wantNext(t, again, "4")
	wantKeys(t, st, "name/bill:*/42/all", "name/bill:*/7/all", "names/bill:*", "names/bill:*/42", "names/bill:*/7", "serial/bill:*")

	for name, want := range map[string]document.Info{
		"bill:*":  {Name: "bill:*", Pattern: "{1+}", Names: 2, MaxNames: 1000},
		"bill:42": {Name: "bill:42", Pattern: "{1+}", Template: "bill:*", Count: 4, Text: "4", Periods: 1},
	} {
		info, err := document.Show(t.Context(), st, name)
		info.Store, info.Texts = "", nil
		if got := fmt.Sprintf("%+v", info); err != nil || got != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: %s, %v; want %+v", name, got, err, want)
		}
	}
	var none *document.MissingError
	if _, err := document.Show(t.Context(), st, "bill:8"); !errors.As(err, &none) || none.Template != "bill:*" {
		t.Errorf("%v", err)
	}
	if all, err := document.List(t.Context(), st); err != nil || len(all) != 1 || all[0].Name != "bill:*" || all[0].MaxNames != 1000 {
		t.Errorf("%+v, %v", all, err)
	}
}

// Dates of a name are its own.
func TestTemplateDates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := billing(t, document.Options{Pattern: "{yyyyMMdd}-{3}", Zone: "UTC"})
		wantNext(t, named(t, st, "bill:a"), "20000101-001", "20000101-002")
		wantNext(t, named(t, st, "bill:b"), "20000101-001")
		wantKeys(t, st, "name/bill:*/a/20000101", "name/bill:*/b/20000101", "names/bill:*", "names/bill:*/a", "names/bill:*/b", "serial/bill:*")
	})
}

func TestTemplateIsFull(t *testing.T) {
	st := billing(t, document.Options{Pattern: "{1+}", Names: 2})
	a := named(t, st, "bill:a")
	named(t, st, "bill:b")
	var full *document.FullError
	_, err := document.Open(t.Context(), st, "bill:c", &document.Options{Template: "bill:*"})
	if !errors.As(err, &full) || full.Template != "bill:*" || full.Name != "bill:c" || full.Names != 2 {
		t.Fatalf("%v", err)
	}
	if _, err := document.Raise(t.Context(), st, "bill:c", "5"); !errors.As(err, &full) {
		t.Errorf("%v", err)
	}
	wantKeys(t, st, "names/bill:*", "names/bill:*/a", "names/bill:*/b", "serial/bill:*")
	wantNext(t, a, "1")
	named(t, st, "bill:b") // it is there
	if info, err := document.Widen(t.Context(), st, "bill:*", &document.Options{Names: 3}); err != nil || info.MaxNames != 3 || info.Names != 2 || info.Pattern != "{1+}" {
		t.Errorf("%+v, %v", info, err)
	}
	wantNext(t, named(t, st, "bill:c"), "1")
}

// A meeting is a store in which the first reads of a record wait for each other.
type meeting struct {
	store.Store
	key   string
	first sync.WaitGroup
	left  atomic.Int64 // that have not read it yet
}

func (m *meeting) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := m.Store.Get(ctx, key)
	if key == m.key && m.left.Add(-1) >= 0 {
		m.first.Done()
		m.first.Wait()
	}
	return rec, err
}

// Processes that add names at the same moment do not pass the limit together, and a name that several add is
// counted once.
func TestTemplateIsFullAtOnce(t *testing.T) {
	for _, names := range [][]string{{"bill:a", "bill:b", "bill:c", "bill:d", "bill:e", "bill:f"}, {"bill:a", "bill:a", "bill:a"}} {
		st := &meeting{Store: billing(t, document.Options{Pattern: "{1+}", Names: 2}), key: "names/bill:*"}
		st.first.Add(len(names))
		st.left.Store(int64(len(names)))
		var done sync.WaitGroup
		var begun atomic.Int64
		for _, name := range names {
			done.Go(func() {
				s, err := document.Open(t.Context(), st, name, &document.Options{Template: "bill:*"})
				if err == nil {
					begun.Add(1)
					err = s.Close()
				} else if errors.As(err, new(*document.FullError)) {
					return
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		info, err := document.Show(t.Context(), st.Store, "bill:*")
		if err != nil {
			t.Fatal(err)
		}
		if want := min(2, len(slices.Compact(slices.Clone(names)))); info.Names != want || names[0] != names[1] && begun.Load() != 2 || names[0] == names[1] && begun.Load() != 3 {
			t.Errorf("%q: %d begun, %d there, want %d", names, begun.Load(), info.Names, want)
		}
		count, err := st.Store.Get(t.Context(), "names/bill:*")
		if want := fmt.Sprintf(`{"v":1,"names":%d}`, info.Names); err != nil || string(count.Value) != want {
			t.Errorf("the count is %s, want %s, %v", count.Value, want, err)
		}
	}
}

// A slowKey is a store in which the write of a key takes half a second.
type slowKey struct {
	store.Store
	key string
}

func (s *slowKey) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if key == s.key {
		time.Sleep(time.Second / 2)
	}
	return s.Store.Put(ctx, key, value, cond)
}

// The last place of a template is taken by a process whose store is slow: another process that begins the same name
// waits for it.
func TestTemplateIsFullSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &slowKey{billing(t, document.Options{Pattern: "{1+}", Names: 1}), "names/bill:*/a"}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { wantOpens(t, st, "bill:a") })
		}
		both.Wait()
		began := time.Now()
		_, err := document.Open(t.Context(), st, "bill:b", &document.Options{Template: "bill:*"})
		if took := time.Since(began); !errors.As(err, new(*document.FullError)) || took > 1500*time.Millisecond {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// wantOpens opens a name of the template bill:*, and closes it.
func wantOpens(t *testing.T, st store.Store, name string) {
	t.Helper()
	s, err := document.Open(t.Context(), st, name, &document.Options{Template: "bill:*"})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Error(err)
	}
}

// Processes that begin a name at the same moment share its counter.
func TestTemplateBegunTwice(t *testing.T) {
	st := billing(t, document.Options{Pattern: "{1+}"})
	var all sync.Map
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			s, err := document.Open(t.Context(), st, "bill:a", &document.Options{Template: "bill:*"})
			if err != nil {
				t.Error(err)
				return
			}
			one, err := s.Next(t.Context())
			if _, twice := all.LoadOrStore(one.Text, true); twice || err != nil {
				t.Errorf("%s, %v", one.Text, err)
			}
		})
	}
	done.Wait()
}

// A name that the store may have lost continues above what it can have given.
func TestTemplateRecovered(t *testing.T) {
	st := billing(t, document.Options{Pattern: "{1+}"})
	wantNext(t, named(t, st, "bill:kept"), "1")
	before := st.Snapshot()
	kept, lost := named(t, st, "bill:kept"), named(t, st, "bill:lost")
	wantNext(t, kept, "2", "3")
	wantNext(t, lost, "1", "2", "3")
	st.Restore(before)
	plan, err := document.PlanRecovery(t.Context(), st, 10, map[string]int64{"bill:*": 20})
	if err != nil || len(plan) != 1 || plan[0].Series != "bill:*" || plan[0].By != 20 {
		t.Errorf("%+v, %v", plan, err)
	}
	if _, err := document.Recover(t.Context(), st, 10, nil); err != nil {
		t.Fatal(err)
	}
	wantNext(t, named(t, st, "bill:kept"), "12")
	wantNext(t, lost, "11") // it reads the definition again
	wantNext(t, named(t, st, "bill:lost"), "12")
	wantNext(t, named(t, st, "bill:new"), "11")
}

// A recovery says which date is used up where it is so for any name.
func TestTemplateRecoveredAndFull(t *testing.T) {
	st := billing(t, document.Options{Pattern: "{2}"})
	if _, err := document.Raise(t.Context(), st, "bill:a", "60"); err != nil {
		t.Fatal(err)
	}
	for by, full := range map[int64]bool{38: false, 39: true, 99: true} {
		if plan, err := document.PlanRecovery(t.Context(), st, by, nil); err != nil || plan[0].IsFull != full {
			t.Errorf("by %d: %+v, %v", by, plan, err)
		}
	}
}

// The mark of a recovery that the store has forgotten may be in the counter of a name only.
func TestTemplateMarks(t *testing.T) {
	st := billing(t, document.Options{Pattern: "{1+}"})
	if _, err := st.Put(t.Context(), "name/bill:*/a/all", []byte(`{"v":1,"count":"1","raised":4294967296000000000}`), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := document.Recover(t.Context(), st, 10, nil); err != nil {
		t.Fatal(err)
	}
	wantNext(t, named(t, st, "bill:a"), "12")
}

// A template that was lost is created again above all that any name gave out.
func TestTemplateAfter(t *testing.T) {
	st := memory.New()
	if _, err := st.Put(t.Context(), "name/bill:*/a/all", []byte(`{"v":1,"count":"1","raised":4294967296000000000}`), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := document.Recover(t.Context(), st, 1, nil); err != nil {
		t.Fatal(err)
	}
	o := document.Options{Pattern: "{4}"}
	var lost *document.LostError
	if _, err := document.Create(t.Context(), st, "bill:*", &o); !errors.As(err, &lost) {
		t.Errorf("%v", err)
	}
	o.After = "9999"
	if _, err := document.Create(t.Context(), st, "bill:*", &o); !errors.As(err, new(*document.EndError)) {
		t.Errorf("%v", err)
	}
	o.After = "0500"
	if _, err := document.Create(t.Context(), st, "bill:*", &o); err != nil {
		t.Fatal(err)
	}
	wantNext(t, named(t, st, "bill:a"), "0502")
	wantNext(t, named(t, st, "bill:b"), "0501")
}

func TestTemplateRaise(t *testing.T) {
	st := billing(t, document.Options{Pattern: "{1+}"})
	if info, err := document.Raise(t.Context(), st, "bill:a", "41"); err != nil || info.Template != "bill:*" || info.Text != "41" {
		t.Errorf("%+v, %v", info, err)
	}
	wantNext(t, named(t, st, "bill:a"), "42")
	wantNext(t, named(t, st, "bill:b"), "1")
	var wrong *document.OptionError
	if _, err := document.Raise(t.Context(), st, "bill:*", "41"); !errors.As(err, &wrong) || wrong.Option != "series" {
		t.Errorf("%v", err)
	}
}

func TestTemplateWiden(t *testing.T) {
	st := billing(t, document.Options{Pattern: "{3}"})
	if _, err := document.Raise(t.Context(), st, "bill:a", "150"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bill:*", "bill:a"} {
		var wrong *document.OptionError
		if _, err := document.Widen(t.Context(), st, name, &document.Options{Pattern: "{2}"}); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := document.Widen(t.Context(), st, "bill:*", &document.Options{Pattern: "{4}"}); err != nil {
		t.Error(err)
	}
	wantNext(t, named(t, st, "bill:a"), "0151")
}

// A name belongs to one template, or to a series of its own.
func TestTemplateBelongs(t *testing.T) {
	for _, tt := range []struct {
		have, want string
		ok         bool
	}{
		{"bill:*", "bill:42", false},
		{"bill:42", "bill:*", false},
		{"bill:*", "bill:a:*", false},
		{"bill:a:*", "bill:*", false},
		{"bill:*", "bill", true},
		{"bill:*", "bills:*", true},
	} {
		st := memory.New()
		o := &document.Options{Pattern: "{1+}"}
		if _, err := document.Create(t.Context(), st, tt.have, o); err != nil {
			t.Fatal(err)
		}
		var wrong *document.OptionError
		_, err := document.Create(t.Context(), st, tt.want, o)
		if refused := errors.As(err, &wrong) && wrong.Option == "series"; refused == tt.ok || (err == nil) != tt.ok {
			t.Errorf("%s where there is %s: %v", tt.want, tt.have, err)
		}
	}
}

func TestTemplateOptions(t *testing.T) {
	st := billing(t, document.Options{Pattern: "{1+}"})
	for _, tt := range []struct {
		name   string
		o      document.Options
		option string
	}{
		{"bill:", document.Options{Template: "bill:*"}, "template"},
		{"order:1", document.Options{Template: "bill:*"}, "template"},
		{"bill:1", document.Options{Template: "bill"}, "template"},
		{"bill", document.Options{Names: 5}, "names"},
		{"bill:1", document.Options{Template: "bill:*", Names: 100_001}, "names"},
	} {
		_, err := document.Open(t.Context(), st, tt.name, &tt.o)
		var wrong *document.OptionError
		if !errors.As(err, &wrong) || wrong.Option != tt.option {
			t.Errorf("%s, %+v: %v", tt.name, tt.o, err)
		}
	}
	itself, err := document.Open(t.Context(), st, "bill:*", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer itself.Close()
	var wrong *document.OptionError
	if _, err := itself.Next(t.Context()); !errors.As(err, &wrong) || wrong.Option != "series" {
		t.Errorf("%v", err)
	}
	if _, err := document.Create(t.Context(), st, "bill:1", &document.Options{Template: "bill:*", Pattern: "{1+}"}); !errors.As(err, &wrong) || wrong.Option != "template" {
		t.Errorf("%v", err)
	}
	if _, err := document.Open(t.Context(), st, "bill:1", &document.Options{Template: "bill:*", Pattern: "{2}"}); !errors.As(err, new(*document.DefinitionError)) {
		t.Errorf("%v", err)
	}
	if _, err := document.Open(t.Context(), st, "order:1", &document.Options{Template: "order:*"}); !isNone(err) {
		t.Errorf("%v", err)
	}
}
