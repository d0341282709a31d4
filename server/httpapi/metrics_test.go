package httpapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/httpapi"
	"github.com/firn-id/firn/store/memory"
)

// scrape reads /metrics.
func scrape(t testing.TB, h http.Handler, headers ...string) map[string]*dto.MetricFamily {
	t.Helper()
	got := call(h, "GET", "/metrics", headers...)
	if got.status != 200 {
		t.Fatal(got)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(got.body))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// value is that of a metric with a label of this value, or with none.
func value(t testing.TB, all map[string]*dto.MetricFamily, name, label string) float64 {
	t.Helper()
	for _, m := range all[name].GetMetric() {
		ok := label == ""
		for _, l := range m.GetLabel() {
			ok = ok || l.GetValue() == label
		}
		if ok {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	t.Errorf("there is no %s of %q", name, label)
	return -1
}

func TestMetrics(t *testing.T) {
	s := newServer(t, nil, photo(t), orders(t, "orders", nil), invoices(t, "invoice"))
	h := handler(t, s, &httpapi.Options{Version: "v1.2.3"})
	for _, path := range []string{"photo/next", "photo/next?n=99", "orders/next", "orders/range?n=50", "none/next", "photo/range"} {
		call(h, "POST", "/v1/series/"+path)
	}
	all := scrape(t, h)
	for _, tt := range []struct {
		name, label string
		least, most float64
	}{
		{"firn_build_info", "v1.2.3", 1, 1},
		{"firn_ready", "", 1, 1},
		{"firn_refused_total", "", 2, 2},
		{"firn_requests_total", "photo", 2, 2},
		{"firn_values_total", "photo", 100, 100},
		{"firn_errors_total", "photo", 0, 0},
		{"firn_values_total", "orders", 51, 51},
		{"firn_requests_total", "invoice", 0, 0},
		{"firn_draw_duration_seconds", "photo", 1e-9, 60},
		{"firn_http_responses_total", "200", 4, 4},
		{"firn_http_responses_total", "404", 1, 1},
		{"firn_http_responses_total", "409", 1, 1},
		{"firn_series_info", "photo", 1, 1},
		{"firn_series_ready", "photo", 1, 1},
		{"firn_series_store_away", "photo", 0, 0},
		{"firn_series_durable", "orders", 1, 1},
		{"firn_lease_held_seconds", "default", 1e-9, 60},
		{"firn_lease_age_seconds", "default", 1e-9, 60},
		{"firn_lease_left_seconds", "default", 1, 400},
		{"firn_lease_budget_seconds", "default", 1, 400},
		{"firn_lease_store_away", "default", 0, 0},
		{"firn_lease_workers", "default", 1, 1},
		{"firn_lease_term", "default", 1, 1},
		{"firn_clock_ahead_seconds", "default", -1, 1},
		{"firn_borrowed_seconds", "default", 0, 1},
		{"firn_waits_total", "default", 0, 100},
		{"firn_ends_timestamp_seconds", "photo", float64(time.Now().Unix()), 1e11},
		{"firn_numbers_reserved", "orders", 1, 1000},
		{"firn_numbers_remaining", "orders", 9.2e18, 9.3e18},
		{"firn_numbers_wasted_total", "orders", 0, 0},
		{"go_goroutines", "", 1, 1e6},
	} {
		if got := value(t, all, tt.name, tt.label); got < tt.least || got > tt.most {
			t.Errorf("%s of %q is %v, want %v to %v", tt.name, tt.label, got, tt.least, tt.most)
		}
	}
	for _, name := range []string{"firn_numbers_reserved", "firn_ends_timestamp_seconds"} {
		if n := len(all[name].GetMetric()); n != 1 {
			t.Errorf("%s of %d series, want that of the only one that has it", name, n)
		}
	}
	problems, err := promlint.New(bytes.NewReader(call(h, "GET", "/metrics").body)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

// Of numbers that are not next to each other, those between them do not remain.
func TestRemaining(t *testing.T) {
	for _, tt := range []struct{ next, last, increment, want int64 }{
		{11, 50, 0, 40}, {11, 50, 10, 4}, {41, 50, 10, 1}, {51, 50, 10, 0}, {1, 1<<63 - 1, 1, 1<<63 - 1},
	} {
		state := func() server.State {
			return server.State{Kind: "sequence", Counter: &server.Counter{Next: tt.next, Last: tt.last, Increment: tt.increment}}
		}
		h := handler(t, newServer(t, nil, server.Numbers("orders", nil, &server.SeriesOptions{Source: &server.Source{State: state}})), nil)
		if got := value(t, scrape(t, h), "firn_numbers_remaining", "orders"); got != float64(tt.want) {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// Series of different shards have leases of their own in one pool. None is left out, and
// one that many series share counts once.
func TestLeasesOfAPool(t *testing.T) {
	now := time.Now()
	source := func(st server.State) *server.Source { return &server.Source{State: func() server.State { return st }} }
	one := source(server.State{EndsAt: now.Add(time.Hour), Waits: 3, Lease: &server.Lease{Pool: "main", Workers: []int64{1}, Term: 1}})
	two := source(server.State{EndsAt: now.Add(time.Minute), Waits: 5, StoreAway: true, Lease: &server.Lease{Pool: "main", Workers: []int64{1}, Term: 1}})
	none := source(server.State{Err: errors.New("it gives nothing"), Kind: "flake"}) // as the name of a counter that was lost
	var all []*server.Series
	for name, of := range map[string]*server.Source{"a": one, "b": two, "c": one, "d": two, "e": none} {
		all = append(all, server.Numbers(name, nil, &server.SeriesOptions{Source: of}))
	}
	metrics := scrape(t, handler(t, newServer(t, nil, all...), nil))
	for name, want := range map[string]float64{"firn_lease_workers": 2, "firn_waits_total": 8, "firn_lease_store_away": 1} {
		if got := value(t, metrics, name, "main"); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := value(t, metrics, "firn_lease_left_seconds", "main"); got > 60 || got < 1 {
		t.Errorf("%v s are left, and one lease has no more than 60", got)
	}
}

// What operators see on their listener is what clients were answered on another.
func TestMetricsElsewhere(t *testing.T) {
	s := newServer(t, nil, photo(t))
	o := &httpapi.Options{NoMetrics: true, Stats: new(httpapi.Stats)}
	admin, err := httpapi.Admin(s, o)
	if err != nil {
		t.Fatal(err)
	}
	h := handler(t, s, o)
	for range 3 {
		call(h, "POST", "/v1/series/none/next")
	}
	if got := value(t, scrape(t, admin), "firn_http_responses_total", "404"); got != 3 {
		t.Errorf("%v answers of 404, want 3", got)
	}
}

// A scrape that was refused, as too many were under way, is counted as what it was.
func TestRefusedScrape(t *testing.T) {
	const most = 4
	asked, answer := make(chan bool, most), make(chan bool)
	state := func() server.State {
		select {
		case asked <- true:
		default:
		}
		<-answer
		return server.State{}
	}
	h := handler(t, newServer(t, nil, server.Numbers("a", nil, &server.SeriesOptions{Source: &server.Source{State: state}})), nil)
	var scrapes sync.WaitGroup
	for range most {
		scrapes.Go(func() { call(h, "GET", "/metrics") })
		<-asked
	}
	if got := call(h, "GET", "/metrics"); got.status != 503 {
		t.Error(got)
	}
	close(answer)
	scrapes.Wait()
	all := scrape(t, h)
	for status, want := range map[string]float64{"200": most, "503": 1} {
		if got := value(t, all, "firn_http_responses_total", status); got != want {
			t.Errorf("%v answers of %s, want %v", got, status, want)
		}
	}
}

// Names that clients choose do not make metrics without end, and none is lost: the
// sums are what was issued, and no counter goes back.
func TestManySeries(t *testing.T) {
	const names, most = 300, 200
	h := handler(t, newServer(t, &server.Options{Others: unknown(t)}), nil)
	before, issued := map[string]float64{}, 0.0
	for round := range 3 {
		for i := range names {
			// Later names come before earlier ones in the alphabet, too.
			name := fmt.Sprintf("name%03d", (i*89+round)%names)
			if a := call(h, "POST", "/v1/series/"+name+"/next?n=2"); a.status != 200 {
				t.Fatal(a)
			}
			if issued += 2; i > 0 && i < names-1 {
				continue
			}
			sum, all := 0.0, scrape(t, h)
			for _, m := range all["firn_values_total"].GetMetric() {
				label, n := m.GetLabel()[0].GetValue(), m.GetCounter().GetValue()
				if sum += n; n < before[label] {
					t.Errorf("%s went back from %v to %v", label, before[label], n)
				}
				before[label] = n
			}
			if series := len(all["firn_values_total"].GetMetric()); sum != issued || series > most+1 {
				t.Fatalf("%v values of %d series, want %v of at most %d", sum, series, issued, most+1)
			}
			if n := len(all["firn_lease_term"].GetMetric()); n != 1 {
				t.Fatalf("the one lease of all is counted %d times", n)
			}
		}
	}
	if before["(others)"] == 0 {
		t.Errorf("all %d series have metrics of their own", names)
	}
}

// The lease that all names share is seen before anybody has asked for one, and after a
// reload, which forgets no name either.
func TestLeaseBeforeNames(t *testing.T) {
	o := &server.Options{Others: unknown(t)}
	s := newServer(t, o)
	h := handler(t, s, nil)
	for round := range 3 {
		all := scrape(t, h)
		if n := len(all["firn_lease_left_seconds"].GetMetric()); n != 1 {
			t.Errorf("round %d: %d leases", round, n)
		}
		if got := len(all["firn_requests_total"].GetMetric()); got != min(round, 1)+1 {
			t.Errorf("round %d: counts of %d names", round, got)
		}
		if a := call(h, "POST", "/v1/series/photo/next"); a.status != 200 {
			t.Fatal(a)
		}
		if err := s.Replace(o); err != nil {
			t.Fatal(err)
		}
	}
}

// Series that the server was given have metrics of their own, however many they are.
func TestManyGivenSeries(t *testing.T) {
	var all []*server.Series
	maker := unknown(t)
	for i := range 250 {
		one, err := maker(fmt.Sprintf("name%03d", i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	found := scrape(t, handler(t, newServer(t, nil, all...), nil))
	for _, name := range []string{"firn_values_total", "firn_series_ready"} {
		if n := len(found[name].GetMetric()); n != len(all) {
			t.Errorf("%s of %d series, want %d", name, n, len(all))
		}
	}
}

// Metrics are for those who have the right admin, or on a listener of their own.
func TestWhoSeesMetrics(t *testing.T) {
	s := newServer(t, &server.Options{Tokens: tokens}, photo(t))
	both := handler(t, s, nil)
	split := handler(t, s, &httpapi.Options{NoMetrics: true})
	a, err := httpapi.Admin(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		h       http.Handler
		headers []string
		path    string
		want    int
	}{
		{both, nil, "/metrics", 401},
		{both, bearer("nobody's"), "/metrics", 401},
		{both, bearer(issuer), "/metrics", 403},
		{both, bearer(admin), "/metrics", 200},
		{split, bearer(admin), "/metrics", 404},
		{a, nil, "/metrics", 200},
		{a, nil, "/v1/series", 404},
		{a, bearer(admin), "/v1/series/photo/next", 404},
	} {
		if got := call(tt.h, "GET", tt.path, tt.headers...); got.status != tt.want {
			t.Errorf("%s with %v: %s, want %d", tt.path, tt.headers, got, tt.want)
		}
	}
	for i, h := range []http.Handler{both, split} {
		document := string(call(h, "GET", "/v1/openapi.json").body)
		if strings.Contains(document, `"/metrics"`) != (i == 0) || strings.Contains(document, "tinyid/id") {
			t.Errorf("the document has other routes than there are")
		}
	}
}

// With the store away, metrics say it.
func TestMetricsOfOutage(t *testing.T) {
	st := server.State{
		Kind: "flake", Durable: new(bool), StoreAway: true, Budget: time.Minute,
		EndsAt: time.Now().Add(10 * time.Second), UsedUpAt: time.Unix(4e9, 0), Lease: &server.Lease{Pool: "main"},
	}
	l, err := lease.Open(t.Context(), memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := newServer(t, nil, server.Numbers("photo", l, &server.SeriesOptions{Source: &server.Source{State: func() server.State { return st }}}))
	all := scrape(t, handler(t, s, nil))
	for name, want := range map[string]float64{
		"firn_ready": 0, "firn_series_ready": 0, "firn_series_store_away": 1, "firn_series_durable": 0,
		"firn_lease_store_away": 1, "firn_ends_timestamp_seconds": 4e9,
	} {
		if got := value(t, all, name, ""); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := value(t, all, "firn_lease_left_seconds", ""); got < 1 || got > 10 {
		t.Errorf("%v s left", got)
	}
}
