package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/store/memory"
)

func TestTexts(t *testing.T) {
	st := memory.New()
	if _, err := document.Create(t.Context(), st, "invoice", &document.Options{Pattern: "INV-{4}"}); err != nil {
		t.Fatal(err)
	}
	s, err := document.Open(t.Context(), st, "invoice", &document.Options{Pattern: "INV-{4}"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	invoice := server.Texts("invoice", s, nil)
	x := enter(t, newServer(t, nil, invoice), "")
	values, err := x.Next(t.Context(), "invoice", nil, 2)
	if err != nil || fmt.Sprint(values) != "[{0 INV-0001} {0 INV-0002}]" {
		t.Errorf("%v, %v", values, err)
	}
	if invoice.Numeric() || invoice.Step() != 0 {
		t.Error("texts are numbers")
	}
}

// Documents of digits only are numbers, with or without zeros in front.
func TestDigits(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		form    public.Form
		numeric bool
		want    string
	}{
		{"7{4}", nil, true, "[{70001 } {70002 }] 70001"},
		{"{4}", nil, true, "[{1 0001} {2 0002}] 1"},
		{"7{4}", public.Base62, false, "[{70001 00000000ID3} {70002 00000000ID4}] 0"},
		{"7{4}", public.Reversed{}, true, "[{70001 5135299843853385728} {70002 2829456834639691776}] 5135299843853385728"},
		{"I{4}", public.Base62, false, "[{0 I0001} {0 I0002}] 0"},
	} {
		s := openDocument(t, tt.pattern)
		p, err := document.ParsePattern(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		bill := server.Texts("bill", s, &server.SeriesOptions{Form: tt.form, FormName: "a form", Pattern: p})
		values, err := enter(t, newServer(t, nil, bill), "").Next(t.Context(), "bill", nil, 2)
		if err != nil {
			t.Fatal(err)
		}
		n, ok := values[0].Number()
		if got := fmt.Sprintf("%v %d", values, int64(n)); got != tt.want || ok != tt.numeric || bill.Numeric() != tt.numeric {
			t.Errorf("%s in %v: %s, %v, numeric %v; want %s", tt.pattern, tt.form, got, ok, bill.Numeric(), tt.want)
		}
		if name := bill.FormName(); (name == "") == (tt.form != nil && p.IsNumeric()) {
			t.Errorf("%s in %v: the form is %q", tt.pattern, tt.form, name)
		}
	}
}

// openDocument opens a new document of a pattern without a date.
func openDocument(t *testing.T, pattern string) *document.Series {
	t.Helper()
	st := memory.New()
	if _, err := document.Create(t.Context(), st, "bill", &document.Options{Pattern: pattern}); err != nil {
		t.Fatal(err)
	}
	s, err := document.Open(t.Context(), st, "bill", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// What has a form is never seen without it.
func TestForm(t *testing.T) {
	l, err := lease.Open(t.Context(), memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	layout := l.State().Layout
	key, err := public.NewKey(1)
	if err != nil {
		t.Fatal(err)
	}
	cipher, err := public.NewCipher("photo", key, nil)
	if err != nil {
		t.Fatal(err)
	}
	lettered, err := public.NewCipher("photo", key, &public.CipherOptions{Encoding: public.Base58})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		form    public.Form
		numeric bool
	}{{public.Base58, false}, {cipher, true}, {lettered, false}} {
		photo := server.Numbers("photo", l, &server.SeriesOptions{Form: tt.form, Layout: layout, Reserve: func(context.Context, int) (firn.Range, error) {
			t.Error("a range was asked for")
			return firn.Range{First: 1, Count: 10, Step: 1}, nil
		}})
		if photo.Numeric() != tt.numeric {
			t.Errorf("%v: numeric %v", tt.form, photo.Numeric())
		}
		x := enter(t, newServer(t, nil, photo), "")
		values, err := x.Next(t.Context(), "photo", nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		id, err := tt.form.Parse(values[0].Text)
		if err != nil || !within(layout, id) || id != values[0].ID {
			t.Errorf("%+v is %d, %v", values[0], id, err)
		}
		if n, ok := values[0].Number(); ok != tt.numeric || n == id || string(values[0].Append(nil)) != values[0].Text {
			t.Errorf("%+v is the number %d, %v, and %s", values[0], n, ok, values[0].Append(nil))
		}
		decoded, err := x.Decode(values[0].Text)
		if err != nil || len(decoded) != 1 || decoded[0].ID != id || !decoded[0].Known {
			t.Errorf("%s says %+v, %v", values[0].Text, decoded, err)
		}
		if _, err := x.Reserve(t.Context(), "photo", 10); !errors.Is(err, server.ErrNoRange) {
			t.Errorf("a range: %v", err)
		}
	}
}

// within reports whether an id was made just now.
func within(l firn.Layout, id firn.ID) bool {
	p, err := l.Decode(id)
	return err == nil && time.Since(p.Time).Abs() < time.Hour
}

func TestDecode(t *testing.T) {
	tokens := []server.Token{
		{Name: "one", Hash: server.HashToken("1"), Rights: map[string]server.Right{"photo": server.Decode}},
		{Name: "none", Hash: server.HashToken("0"), Rights: map[string]server.Right{"*": server.Issue}},
	}
	photo := server.Numbers("photo", nil, &server.SeriesOptions{Layout: firn.Default()})
	video := server.Numbers("video", nil, &server.SeriesOptions{Layout: firn.Default()})
	tweet := server.Numbers("tweet", nil, &server.SeriesOptions{Layout: firn.MustLayout("twitter")})
	orders := server.Numbers("orders", nil, nil)
	token := server.Numbers("token", nil, &server.SeriesOptions{Form: public.Base58, Layout: firn.Default()})
	const id = "175928847299117063"
	then := func() time.Time { return time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC) }
	for _, tt := range []struct {
		name   string
		series []*server.Series
		o      server.Options
		token  string
		text   string
		want   string // layouts; with "?" where it is a guess
	}{
		{"two series of one layout", []*server.Series{photo, video}, server.Options{}, "", id, "firn"},
		{"two layouts", []*server.Series{photo, tweet, orders}, server.Options{}, "", id, "firn twitter"},
		{"no layout: a guess", []*server.Series{orders}, server.Options{Now: then}, "", id, "?discord ?twitter ?classic ?firn ?sonyflake ?sharded ?shardingsphere ?idgen ?uidgenerator ?instagram ?instagram;epoch=2011-01-01T00:00:00Z"},
		{"no layout, and a small number", []*server.Series{orders}, server.Options{}, "", "42", "?"},
		{"another layout", []*server.Series{orders}, server.Options{Layout: firn.MustLayout("twitter")}, "", id, "?twitter"},
		{"no guess where it is known", []*server.Series{photo}, server.Options{}, "", id, "firn"},
		{"in the future", []*server.Series{photo}, server.Options{}, "", "9000000000000000000", "?uidgenerator"},
		{"no id", []*server.Series{photo}, server.Options{}, "", "12x", "error"},
		{"a form", []*server.Series{token}, server.Options{}, "", "Py5KYvoYSs", "firn"},
		{"a form of what is no id of the layout", []*server.Series{token}, server.Options{}, "", "zzzzzzzzzz", ""},
		{"not as a number where there is a form", []*server.Series{token}, server.Options{}, "", "0", "error"},
		{"only what one may", []*server.Series{photo, tweet}, server.Options{Tokens: tokens}, "1", id, "firn"},
		{"nothing", []*server.Series{photo, tweet}, server.Options{Tokens: tokens}, "0", id, "denied"},
		{"nobody", []*server.Series{photo}, server.Options{Tokens: tokens}, "", id, "no token"},
	} {
		x := enter(t, newServer(t, &tt.o, tt.series...), tt.token)
		all, err := x.Decode(tt.text)
		var got []string
		for _, d := range all {
			guess := "?"
			if d.Known {
				guess = ""
			}
			got = append(got, guess+d.Name)
		}
		switch {
		case errors.Is(err, server.ErrDenied):
			got = []string{"denied"}
		case errors.Is(err, server.ErrNoToken):
			got = []string{"no token"}
		case err != nil:
			got = []string{"error"}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %v (%v), want %s", tt.name, got, err, tt.want)
		}
	}
	all, err := enter(t, newServer(t, nil, photo), "").Decode(id)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(all)
	want := `[{"id":"175928847299117063","layout":"firn","time":"2026-05-01T11:18:25.796Z","unix_ms":1777634305796,"worker":32,"seq":7}]`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

// failing gives ids until it fails.
type failing struct {
	src firn.Source
	err atomic.Pointer[error]
}

func (f *failing) Next(ctx context.Context) (firn.ID, error) {
	if err := f.err.Load(); err != nil {
		return 0, *err
	}
	return f.src.Next(ctx)
}

func (f *failing) Append(ctx context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	if err := f.err.Load(); err != nil {
		dst, _ = f.src.Append(ctx, dst, n/2)
		return dst, *err
	}
	return f.src.Append(ctx, dst, n)
}

func TestErrors(t *testing.T) {
	l, err := lease.Open(t.Context(), memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	away := errors.New("away")
	for _, tt := range []struct {
		err     error
		explain bool
		again   bool
		hint    string
	}{
		{&firn.HorizonError{}, false, true, ""},
		{firn.ErrBusy, false, true, ""},
		{context.DeadlineExceeded, false, true, ""},
		{&firn.EndError{}, false, false, ""},
		{away, false, false, ""},
		{away, true, true, "wait"},
		{firn.ErrBusy, true, false, ""},
	} {
		o := &server.SeriesOptions{}
		if tt.explain {
			o.Explain = func(err error) server.Explanation {
				if errors.Is(err, away) {
					return server.Explanation{Again: true, Trouble: "it rains", Hint: "wait"}
				}
				return server.Explanation{}
			}
		}
		src := &failing{src: l}
		src.err.Store(&tt.err)
		x := enter(t, newServer(t, nil, server.Numbers("photo", src, o)), "")
		had := make([]server.Value, 1, 100)
		values, err := x.Next(t.Context(), "photo", had, 10)
		if !errors.Is(err, tt.err) || len(values) != 1 || server.Retry(err) != tt.again || strings.HasPrefix(server.Hint(err), "retry: ") != tt.again {
			t.Errorf("%v: %d values, %v, retry %v, hint %q", tt.err, len(values), err, server.Retry(err), server.Hint(err))
		}
		if _, hint := x.Explain(err, nil); hint != tt.hint {
			t.Errorf("%v: hint %q, want %q", tt.err, hint, tt.hint)
		}
		if values, err := x.Gather(t.Context(), "photo", had, []int{4, 3, 3}); len(values) != 6 || !errors.Is(err, tt.err) {
			t.Errorf("%v: gathered %d values, %v", tt.err, len(values), err)
		}
	}
}

func TestCounts(t *testing.T) {
	photo := flake(t, "photo")
	s := newServer(t, nil, photo, orders(t, "orders"))
	x := enter(t, s, "")
	x.Next(t.Context(), "photo", nil, 10)
	x.Gather(t.Context(), "photo", nil, []int{6, 6, 6, 6, 6})
	x.Reserve(t.Context(), "orders", 100)
	x.Next(t.Context(), "nosuch", nil, 1)
	x.Next(t.Context(), "photo", nil, 0)
	x.Gather(t.Context(), "nosuch", nil, []int{1, 1, 1})
	c := photo.Counts()
	if c.Requests != 6 || c.Values != 40 || c.Errors != 0 || c.Took <= 0 {
		t.Errorf("%+v", c)
	}
	if s.Refused() != 5 {
		t.Errorf("%d refused", s.Refused())
	}
	draws := uint64(0)
	for _, n := range c.Latency {
		draws += n
	}
	if draws != 2 {
		t.Errorf("%d draws", draws)
	}
	// A series that replaces another goes on counting.
	again := flake(t, "photo")
	if err := s.Replace(nil, again); err != nil {
		t.Fatal(err)
	}
	x.Next(t.Context(), "photo", nil, 1)
	if c := again.Counts(); c.Values != 41 {
		t.Errorf("after Replace: %+v", c)
	}
}

func TestLatencyBounds(t *testing.T) {
	n := reflect.TypeFor[server.Counts]().Field(3).Type.Len()
	last := time.Duration(0)
	for i := range n - 1 {
		if b := server.LatencyBound(i); b <= last {
			t.Errorf("bucket %d: %s after %s", i, b, last)
		} else {
			last = b
		}
	}
	if server.LatencyBound(n-1) >= 0 || last < 5*time.Second {
		t.Errorf("the last bounds are %s and %s", last, server.LatencyBound(n-1))
	}
}

// Replace takes series away from under those who use them: nobody gets an error, and
// nothing twice.
func TestReplaceUnderLoad(t *testing.T) {
	st := memory.New()
	open := func() (*lease.Lease, *server.Series) {
		l, err := lease.Open(t.Context(), st, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l, server.Numbers("photo", l, nil)
	}
	old, series := open()
	s := newServer(t, nil, series)
	ctx, cancel := context.WithCancel(t.Context())
	var drawing sync.WaitGroup
	results := make([][]server.Value, 4)
	for i := range results {
		x := enter(t, s, "")
		drawing.Go(func() {
			for ctx.Err() == nil && len(results[i]) < 200_000 {
				all, err := x.Next(context.Background(), "photo", results[i], 20)
				if err != nil {
					t.Error(err)
					return
				}
				results[i] = all
			}
		})
	}
	for range 20 {
		l, series := open()
		if err := s.Replace(nil, series); err != nil {
			t.Error(err)
		}
		if err := old.Close(); err != nil {
			t.Error(err)
		}
		old = l
	}
	cancel()
	drawing.Wait()
	old.Close()
	seen := map[firn.ID]bool{}
	for _, all := range results {
		for _, v := range all {
			if seen[v.ID] {
				t.Fatalf("%d twice", v.ID)
			}
			seen[v.ID] = true
		}
	}
}

// replaced is a source that Replace takes away while it is asked.
type replaced struct{ replace func() }

func (r *replaced) Next(context.Context) (firn.ID, error) { return 0, firn.ErrClosed }
func (r *replaced) Append(_ context.Context, dst []firn.ID, _ int) ([]firn.ID, error) {
	r.replace()
	return append(dst, 1), firn.ErrClosed
}

// A request that a reload has come upon is one, and none that failed.
func TestReplacedCounts(t *testing.T) {
	after := orders(t, "orders")
	src := &replaced{}
	reserve := func(context.Context, int) (firn.Range, error) { src.replace(); return firn.Range{}, firn.ErrClosed }
	s := newServer(t, nil, server.Numbers("orders", src, &server.SeriesOptions{Reserve: reserve}))
	src.replace = func() {
		if err := s.Replace(nil, after); err != nil {
			t.Error(err)
		}
	}
	x := enter(t, s, "")
	if all, err := x.Gather(t.Context(), "orders", nil, []int{1, 2}); err != nil || len(all) != 3 {
		t.Errorf("%v, %v", all, err)
	}
	if err := s.Replace(nil, server.Numbers("orders", src, &server.SeriesOptions{Reserve: reserve})); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Reserve(t.Context(), "orders", 10); err != nil {
		t.Error(err)
	}
	if c := after.Counts(); c.Requests != 3 || c.Errors != 0 || c.Values != 13 {
		t.Errorf("%+v", c)
	}
}

// held gives ids when it is let.
type held struct {
	firn.Source
	asked atomic.Int64
	let   chan struct{}
}

func (s *held) Append(_ context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	s.asked.Add(1)
	<-s.let
	for i := range n {
		dst = append(dst, firn.ID(i+1))
	}
	return dst, nil
}

// Thousands that ask for much at once do not all hold memory for it; and those who
// ask for little do not wait for them, whatever the names are.
func TestLargeDraws(t *testing.T) {
	src := &held{let: make(chan struct{})}
	x := enter(t, newServer(t, &server.Options{Others: func(name string) (*server.Series, error) {
		return server.Numbers(name, src, nil), nil
	}}), "")
	const large, small, most = 100, 20, 16
	var all sync.WaitGroup
	draw := func(name string, n int) {
		all.Go(func() {
			if _, err := x.Next(t.Context(), name, nil, n); err != nil {
				t.Error(err)
			}
		})
	}
	until := func(n int64) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); src.asked.Load() < n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d draws, not %d", src.asked.Load(), n)
			}
		}
	}
	for i := range large {
		draw(fmt.Sprintf("s%d", i%10), 1000)
	}
	until(most)
	for range small {
		draw("s0", 256)
	}
	until(most + small)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Next(ctx, "s0", nil, 1000); !server.Retry(err) {
		t.Errorf("one who gives up: %v", err)
	}
	if n := src.asked.Load(); n != most+small {
		t.Errorf("%d draws at a time", n)
	}
	close(src.let)
	all.Wait()
	if n := src.asked.Load(); n != large+small {
		t.Errorf("%d draws", n)
	}
}
