package document_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/storetest"
)

func TestMain(m *testing.M) { testserver.Main(m, func() error { return goleak.Find() }) }

const invoice = "INV-{yyyyMMdd}-{6}"

var saigon = document.Options{Zone: "Asia/Ho_Chi_Minh"}

// noon is at 19:00 in Saigon.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// at returns a store whose clock stands where set puts it.
func at(now time.Time) (s *memory.Store, set func(time.Time)) {
	var mu sync.Mutex
	s = memory.NewClock(func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	})
	return s, func(t time.Time) {
		mu.Lock()
		defer mu.Unlock()
		now = t
	}
}

// with is the options with a pattern.
func with(pattern string, o *document.Options) *document.Options {
	c := *o
	c.Pattern = pattern
	return &c
}

func opened(t *testing.T, st store.Store, pattern string, o document.Options) *document.Series {
	t.Helper()
	s, err := document.Open(t.Context(), st, "invoice", with(pattern, &o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func wantNext(t *testing.T, s *document.Series, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if got, err := s.Next(t.Context()); err != nil || got.Text != want {
			t.Fatalf("%s, %v; want %s", got.Text, err, want)
		}
	}
}

func TestNext(t *testing.T) {
	st, set := at(noon)
	s := opened(t, st, invoice, saigon)
	wantNext(t, s, "INV-20261120-000001", "INV-20261120-000002")
	got, err := s.Append(t.Context(), nil, 3)
	if err != nil || len(got) != 3 || got[2] != (document.Number{Text: "INV-20261120-000005", Period: "20261120", Count: 5}) {
		t.Errorf("%+v, %v", got, err)
	}
	other := opened(t, st, invoice, saigon)
	wantNext(t, other, "INV-20261120-000006")
	wantNext(t, s, "INV-20261120-000007")
	if st := s.State(); st.Last.Text != "INV-20261120-000007" || !st.Durable || st.Reserved != 0 || st.Err != nil || st.Zone != saigon.Zone {
		t.Errorf("%+v", st)
	}

	// Midnight in Saigon is at 17:00 UTC; and the clock may be set back over it.
	set(noon.Add(5 * time.Hour))
	time.Sleep(sight)
	wantNext(t, s, "INV-20261121-000001", "INV-20261121-000002")
	set(noon)
	wantNext(t, other, "INV-20261120-000008") // its last look was before
}

// Numbers of a fixed width that are used up are an error of their own, and asking
// uses nothing up; the next day goes on.
func TestOverflow(t *testing.T) {
	st, set := at(noon)
	s := opened(t, st, "{yyyyMMdd}{1}", saigon)
	var used *document.EndError
	if got, err := s.Append(t.Context(), nil, 20); len(got) != 0 || !errors.As(err, &used) || used.Max != 9 || used.Left != 9 || used.Period != "20261120" || !used.NextAt.IsZero() {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := s.Append(t.Context(), nil, 9); err != nil || got[8].ID != 202611209 {
		t.Errorf("%v, %v", got, err)
	}
	rec, _ := st.Get(t.Context(), "serial/invoice/20261120")
	for range 3 {
		if _, err := s.Next(t.Context()); !errors.As(err, &used) || !used.NextAt.Equal(noon.Add(5*time.Hour)) {
			t.Error(err)
		}
	}
	if again, _ := st.Get(t.Context(), rec.Key); again.Version != rec.Version {
		t.Error("asking wrote something")
	}
	if !errors.As(s.State().Err, &used) {
		t.Error(s.State().Err)
	}

	// More digits for the rest of the day; whoever has it open goes on as it was.
	if _, err := document.Widen(t.Context(), st, "invoice", &document.Options{Pattern: "{yyyyMMdd}{3}", Zone: saigon.Zone}); err != nil {
		t.Fatal(err)
	}
	if got, err := opened(t, st, "{yyyyMMdd}{3}", saigon).Next(t.Context()); err != nil || got.Text != "20261120010" {
		t.Errorf("%v, %v", got, err)
	}
	set(noon.Add(24 * time.Hour))
	time.Sleep(sight)
	wantNext(t, s, "202611211")
}

func TestDefinitionStays(t *testing.T) {
	st := memory.New()
	opened(t, st, invoice, saigon)
	for _, tt := range []struct{ pattern, zone, want string }{
		{"INV-{yyyyMMdd}-{7}", saigon.Zone, "has pattern INV-{yyyyMMdd}-{6}, not INV-{yyyyMMdd}-{7}"},
		{invoice, "UTC", "has zone Asia/Ho_Chi_Minh, not UTC"},
		{"X{1+}", "", "has pattern INV-{yyyyMMdd}-{6}, not X{1+} and zone Asia/Ho_Chi_Minh, not none"},
	} {
		_, err := document.Open(t.Context(), st, "invoice", &document.Options{Pattern: tt.pattern, Zone: tt.zone})
		var other *document.DefinitionError
		if !errors.As(err, &other) || err.Error() == other.Reason() || !strings.HasSuffix(other.Reason(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	for _, tt := range []struct{ pattern, zone, want string }{
		{"INV-{yyyyMM}-{6}", "UTC", "they differ in INV-{yyyyMMdd}-{n} and INV-{yyyyMM}-{n}"},
		{"INV{yyyyMMdd}-{6}", "UTC", "only the width of the counter and the zone may change"},
		{"INV-{yyyyMMdd}-{6}{luhn}", "UTC", "they differ in"},
		{"INV-{6}-{yyyyMMdd}", "UTC", "they differ in"},
	} {
		_, err := document.Widen(t.Context(), st, "invoice", &document.Options{Pattern: tt.pattern, Zone: tt.zone})
		var no *document.OptionError
		if !errors.As(err, &no) || no.Option != "pattern" || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	if _, err := document.Widen(t.Context(), st, "invoice", &document.Options{Pattern: "INV-{yyyyMMdd}-{1+}", Zone: "UTC"}); err != nil {
		t.Error(err)
	}
	opened(t, st, "INV-{yyyyMMdd}-{1+}", document.Options{Zone: "UTC"})
	if _, err := document.Widen(t.Context(), st, "other", &document.Options{Pattern: invoice, Zone: "UTC"}); !isNone(err) {
		t.Error(err)
	}
}

func isNone(err error) bool {
	var none *document.MissingError
	return errors.As(err, &none)
}

// A series is begun by itself only on a store that notices when it was replaced.
func TestCreate(t *testing.T) {
	st := &promising{Store: memory.New(), p: store.Durability{Durable: true}}
	if _, err := document.Open(t.Context(), st, "invoice", with(invoice, &saigon)); !isNone(err) {
		t.Error(err)
	}
	if info, err := document.Create(t.Context(), st, "invoice", with(invoice, &saigon)); err != nil || info.Name != "invoice" || info.Pattern != invoice || info.Zone != saigon.Zone {
		t.Errorf("%+v, %v", info, err)
	}
	for _, o := range []*document.Options{with(invoice, &saigon), {Pattern: "{6}"}} {
		var exists *document.ExistsError
		if _, err := document.Create(t.Context(), st, "invoice", o); !errors.As(err, &exists) || exists.Info.Pattern != invoice {
			t.Error(err)
		}
	}
	var option *document.OptionError
	if _, err := document.Create(t.Context(), st, "other", nil); !errors.As(err, &option) || option.Option != "pattern" {
		t.Error(err)
	}
	if _, err := document.Open(t.Context(), st, "other", nil); !isNone(err) {
		t.Error(err)
	}
	if _, err := opened(t, st, invoice, saigon).Next(t.Context()); err != nil {
		t.Error(err)
	}
}

// Whoever leaves out the pattern, and with it the zone, gets what the store has.
func TestPatternOfTheStore(t *testing.T) {
	st, _ := at(noon)
	wantNext(t, opened(t, st, invoice, saigon), "INV-20261120-000001")
	wantNext(t, opened(t, st, "", document.Options{}), "INV-20261120-000002")
	wantNext(t, opened(t, st, "", saigon), "INV-20261120-000003")
	var other *document.DefinitionError
	if _, err := document.Open(t.Context(), st, "invoice", &document.Options{Zone: "UTC"}); !errors.As(err, &other) || other.WantZone != "UTC" {
		t.Error(err)
	}
}

// A counter goes on above a text that was given out elsewhere, for those who have
// the series open, too.
func TestRaise(t *testing.T) {
	st, _ := at(noon)
	s := opened(t, st, invoice, saigon)
	wantNext(t, s, "INV-20261120-000001")
	for _, text := range []string{"INV-20261120-000041", "INV-20261121-000007"} {
		if info, err := document.Raise(t.Context(), st, "invoice", text); err != nil || info.Text != text {
			t.Errorf("%s: %+v, %v", text, info, err)
		}
		var option *document.OptionError
		if _, err := document.Raise(t.Context(), st, "invoice", text); !errors.As(err, &option) || option.Option != "to" {
			t.Errorf("%s again: %v", text, err)
		}
	}
	wantNext(t, s, "INV-20261120-000042")
	var wrong *firn.SyntaxError
	if _, err := document.Raise(t.Context(), st, "invoice", "INV-41"); !errors.As(err, &wrong) {
		t.Error(err)
	}
	if _, err := document.Raise(t.Context(), st, "invoice/20261120", "INV-41"); err == nil || !strings.Contains(err.Error(), "a name has no slash") {
		t.Error(err)
	}
	if _, err := document.Raise(t.Context(), st, "order", "INV-41"); !isNone(err) {
		t.Error(err)
	}
	// Without a date nothing comes after the last text.
	if _, err := document.Create(t.Context(), st, "few", &document.Options{Pattern: "F{3}"}); err != nil {
		t.Fatal(err)
	}
	var over *document.EndError
	if _, err := document.Raise(t.Context(), st, "few", "F999"); !errors.As(err, &over) {
		t.Error(err)
	}
	if info, err := document.Raise(t.Context(), st, "few", "F998"); err != nil || info.Count != 998 {
		t.Error(info, err)
	}
}

func TestOptionErrors(t *testing.T) {
	for _, tt := range []struct {
		name, pattern string
		o             document.Options
		option, want  string
	}{
		{"", "{1+}", document.Options{}, "series", `series "": a name has 1 to`},
		{"a/b", "{1+}", document.Options{}, "series", `series "a/b": a name has no slash`},
		{"a b", "{1+}", document.Options{}, "series", `a name is printable ASCII without spaces`},
		{"a", "{0}", document.Options{}, "pattern", `pattern "{0}": column 1: a counter has 1 to 18 digits, not 0`},
		{"a", invoice, document.Options{}, "zone", "zone: a date needs a time zone, such as Asia/Ho_Chi_Minh or UTC"},
		{"a", invoice, document.Options{Zone: "Asia/Saigonn"}, "zone", `zone "Asia/Saigonn": unknown time zone`},
		{"a", invoice, document.Options{Zone: "../etc/passwd"}, "zone", `zone "../etc/passwd": invalid`},
		{"a", invoice, document.Options{Zone: "Local"}, "zone", "zone Local differs from host to host"},
		{"a", "{6}", document.Options{Zone: "UTC"}, "zone", "zone UTC: the pattern {6} has no date"},
		{"a", "{2}", document.Options{Cache: -1}, "cache", "cache -1: there can be 1 to 1000000"},
		{"a", "{2}", document.Options{Cache: 2e9}, "cache", "cache 2000000000: there can be"},
	} {
		err := with(tt.pattern, &tt.o).Check(tt.name)
		var option *document.OptionError
		if !errors.As(err, &option) || option.Option != tt.option || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
		if _, err2 := document.Open(t.Context(), memory.New(), tt.name, with(tt.pattern, &tt.o)); err2 == nil || err2.Error() != err.Error() {
			t.Errorf("%+v: Open: %v", tt, err2)
		}
	}
	err := (&document.Options{Pattern: invoice}).Check("a/b")
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("not all at once: %v", err)
	}
}

// Many callers of several processes get each number once, and none is missing;
// those who wait share a write.
func TestManyCallers(t *testing.T) {
	const processes, callers, each = 4, 50, 20
	st := &counting{Store: memory.New()}
	var mu sync.Mutex
	var all []int64
	var wg sync.WaitGroup
	for range processes {
		s := opened(t, st, "T{1+}", document.Options{})
		for range callers {
			wg.Go(func() {
				for range each {
					got, err := s.Next(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					all = append(all, got.Count)
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	slices.Sort(all)
	for i, n := range all {
		if n != int64(i)+1 {
			t.Fatalf("number %d is %d", i+1, n)
		}
	}
	if len(all) != processes*callers*each {
		t.Errorf("%d numbers", len(all))
	}
	t.Logf("%d numbers by %d writes", len(all), st.puts)
}

// counting counts Puts, and takes as long as a quick store.
type counting struct {
	store.Store
	mu   sync.Mutex
	puts int
}

func (c *counting) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	c.mu.Lock()
	c.puts++
	c.mu.Unlock()
	time.Sleep(100 * time.Microsecond)
	return c.Store.Put(ctx, key, value, cond)
}

func TestStep(t *testing.T) {
	st, set := at(noon)
	count := &counting{Store: st}
	s := opened(t, count, invoice, document.Options{Zone: saigon.Zone, Cache: 10})
	for i := range 10 {
		wantNext(t, s, fmt.Sprintf("INV-20261120-%06d", 1+i))
	}
	if count.puts != 2 { // with the definition
		t.Errorf("%d writes", count.puts)
	}
	wantNext(t, s, "INV-20261120-000011")
	if got := s.State().Reserved; got != 9 {
		t.Errorf("%d reserved", got)
	}
	// What was reserved for a day is not used on the next.
	set(noon.Add(5 * time.Hour))
	time.Sleep(sight)
	wantNext(t, s, "INV-20261121-000001")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// What was in hand is given back.
	wantNext(t, opened(t, st, invoice, saigon), "INV-20261121-000002")
}

// A tail that others drew after is not given back.
func TestStepTaken(t *testing.T) {
	st, _ := at(noon)
	a := opened(t, st, invoice, document.Options{Zone: saigon.Zone, Cache: 10})
	b := opened(t, st, invoice, document.Options{Zone: saigon.Zone, Cache: 10})
	wantNext(t, a, "INV-20261120-000001")
	wantNext(t, b, "INV-20261120-000011")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	wantNext(t, b, "INV-20261120-000012")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	wantNext(t, opened(t, st, invoice, saigon), "INV-20261120-000013")
}

// A call that gives up waiting leaves its number to others.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := storetest.NewFaulty(memory.New())
		s, err := document.Open(t.Context(), st, "s", &document.Options{Pattern: "{1+}"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Next(gone); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		st.Next(storetest.Delay(time.Second, time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wantNext(t, s, "1", "2")
	})
}

// A write whose reply is lost is found again; one that is lost is sent again.
func TestUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := storetest.NewFaulty(memory.New())
		s, err := document.Open(t.Context(), st, "s", &document.Options{Pattern: "{1+}"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		wantNext(t, s, "1")
		st.Next(storetest.LoseReply())
		wantNext(t, s, "2")
		st.Next(storetest.LoseRequest(), storetest.LoseRequest())
		wantNext(t, s, "3")
		st.Next(storetest.LoseRequest(), storetest.LoseRequest(), storetest.LoseReply())
		if _, err := s.Next(t.Context()); !errors.Is(err, storetest.ErrLost) {
			t.Error(err)
		}
		wantNext(t, s, "4") // it was its own, after all

		// One that comes late, with another's in between or not.
		late, release := storetest.Later()
		st.Next(late, storetest.LoseRequest(), storetest.LoseRequest())
		if _, err := s.Next(t.Context()); !errors.Is(err, storetest.ErrLost) {
			t.Error(err)
		}
		release()
		wantNext(t, s, "6") // 5 is lost: its write was the first of three

		// A store that hangs is an error after a while.
		resume := st.Hang()
		begun := time.Now()
		if _, err := s.Next(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if d := time.Since(begun); d != 10*time.Second {
			t.Error(d)
		}
		resume()
		wantNext(t, s, "7")
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := storetest.NewFaulty(memory.New())
		s, err := document.Open(t.Context(), st, "s", &document.Options{Pattern: "{1+}", Cache: 5})
		if err != nil {
			t.Fatal(err)
		}
		st.Next(storetest.Delay(time.Second, time.Second))
		var wg sync.WaitGroup
		wg.Go(func() { wantNext(t, s, "1") }) // it is under way
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		for range 2 {
			if _, err := s.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		s, err = document.Open(t.Context(), st, "s", &document.Options{Pattern: "{1+}", Cache: 5})
		if err != nil {
			t.Fatal(err)
		}
		wantNext(t, s, "2")
		st.Away(errors.New("away"))
		if err := s.Close(); err == nil || !strings.Contains(err.Error(), `4 reserved numbers of series "s" were not handed back: away`) {
			t.Error(err)
		}
		// A store that hangs keeps nobody.
		st.Away(nil)
		s, err = document.Open(t.Context(), st, "s", &document.Options{Pattern: "{1+}"})
		if err != nil {
			t.Fatal(err)
		}
		resume := st.Hang()
		defer resume()
		wg.Go(func() {
			if _, err := s.Next(t.Context()); err == nil {
				t.Error("no error")
			}
		})
		synctest.Wait()
		begun := time.Now()
		if err := s.Close(); err != nil || time.Since(begun) > 5*time.Second {
			t.Errorf("%s, %v", time.Since(begun), err)
		}
		wg.Wait()
	})
}

// Whatever there is to wait for, Close takes 5 s.
func TestCloseOfAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := storetest.NewFaulty(memory.New())
		s, err := document.Open(t.Context(), st, "s", &document.Options{Pattern: "{yyyy}-{1+}", Zone: "UTC", Cache: 5})
		if err != nil {
			t.Fatal(err)
		}
		wantNext(t, s, "2000-1")
		time.Sleep(time.Minute) // the clock is read again
		resume := st.Hang()
		defer resume()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := s.Next(t.Context()); err == nil {
				t.Error("no error")
			}
		})
		synctest.Wait()
		begun := time.Now()
		if err := s.Close(); err == nil || !strings.Contains(err.Error(), "4 reserved numbers") || time.Since(begun) > 5*time.Second {
			t.Errorf("%s, %v", time.Since(begun), err)
		}
		wg.Wait()
	})
}

func TestList(t *testing.T) {
	st, set := at(noon)
	wantNext(t, opened(t, st, invoice, saigon), "INV-20261120-000001", "INV-20261120-000002")
	set(noon.Add(24 * time.Hour))
	wantNext(t, opened(t, st, invoice, saigon), "INV-20261121-000001")
	if _, err := document.Open(t.Context(), st, "invoice-2", &document.Options{Pattern: "{1+}"}); err != nil {
		t.Fatal(err)
	}
	got, err := document.List(t.Context(), st)
	want := []document.Info{
		{
			Name: "invoice", Pattern: invoice, Zone: saigon.Zone, Period: "20261121", Count: 1, Text: "INV-20261121-000001", Periods: 2, Today: "20261121",
			Texts: []document.Number{{Text: "INV-20261121-000001", Period: "20261121", Count: 1}},
		},
		{Name: "invoice-2", Pattern: "{1+}"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A year that texts cannot have is an error.
func TestClockFarAhead(t *testing.T) {
	st, set := at(time.Date(10000, 1, 1, 12, 0, 0, 0, time.UTC))
	s := opened(t, st, invoice, saigon)
	var wrong *document.ClockError
	if _, err := s.Next(t.Context()); !errors.As(err, &wrong) || wrong.Period != "100000101" {
		t.Error(err)
	}
	set(noon)
	time.Sleep(sight)
	wantNext(t, s, "INV-20261120-000001")
}

// sight is longer than what was read of the store's clock is trusted.
const sight = 1100 * time.Millisecond

// A later format is refused, and a number that cannot be.
func TestFormats(t *testing.T) {
	for value, want := range map[string]string{
		`{"v":2}`: "has format 2, written by a later firn; this one knows 1", `{}`: "has no format number",
		`{"v":1,"count":"-1"}`: "has a negative number", `x`: "invalid character",
		`{"v":1,"count":"1000000000000000001"}`: "has a number above 1000000000000000000",
	} {
		st := memory.New()
		s := opened(t, st, "{1+}", document.Options{})
		if _, err := st.Put(t.Context(), "serial/invoice/all", []byte(value), store.Condition{}); err != nil {
			t.Fatal(err)
		}
		var wrong *store.FormatError
		if _, err := s.Next(t.Context()); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// slow is a store at the other end of a line.
type slow struct{ store.Store }

func (s slow) Get(ctx context.Context, key string) (store.Record, error) {
	defer time.Sleep(time.Millisecond)
	time.Sleep(time.Millisecond)
	return s.Store.Get(ctx, key)
}

func (s slow) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	defer time.Sleep(time.Millisecond)
	time.Sleep(time.Millisecond)
	return s.Store.Put(ctx, key, value, cond)
}

// Processes that draw without a pause leave each other room.
func TestNobodyStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const processes = 16
		st := memory.New()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		var mu sync.Mutex
		var got []int
		var longest time.Duration
		for range processes {
			s, err := document.Open(t.Context(), slow{st}, "s", &document.Options{Pattern: "{1+}"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			wg.Go(func() {
				n, wait := 0, time.Duration(0)
				for ctx.Err() == nil {
					began := time.Now()
					if _, err := s.Next(ctx); err == nil {
						n++
					}
					wait = max(wait, time.Since(began))
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, n)
				longest = max(longest, wait)
			})
		}
		wg.Wait()
		slices.Sort(got)
		t.Logf("%v, longest wait %s", got, longest)
		if got[0] < got[processes-1]/4 || longest > 5*time.Second {
			t.Errorf("%v, longest wait %s", got, longest)
		}
	})
}
