package httpapi

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/firn-id/firn/server"
)

// scrapes is how many may be answered at once.
const scrapes = 4

// newMetrics returns what serves /metrics. Each answer is made from what the server
// says then; nothing is kept between two of them but which series have a name.
func (a *api) newMetrics(version string) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(version), answers{a.stats},
		&seriesMetrics{a.server},
	)
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes})
}

// metricsRoute is /metrics for those who may see everything.
func metricsRoute(h http.Handler) route {
	return route{method: http.MethodGet, path: "/metrics", handle: func(a *api, w http.ResponseWriter, r *http.Request) *problem {
		if p := a.admin(r); p != nil {
			return p
		}
		out := &watched{w, http.StatusOK}
		if h.ServeHTTP(out, r); out.status != http.StatusOK {
			return &problem{Status: out.status, sent: true}
		}
		return nil
	}}
}

// watched is a response whose status is noted.
type watched struct {
	http.ResponseWriter
	status int
}

func (w *watched) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func buildInfo(version string) prometheus.Collector {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if version == "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "firn_build_info", Help: "The program; always 1.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}

// Stats are answers that were counted by their status. The zero Stats are ready to be
// used.
type Stats struct {
	of [600]atomic.Uint64
}

func (s *Stats) count(status int) { s.of[status].Add(1) }

// answers collects Stats.
type answers struct{ *Stats }

func (answers) Describe(ch chan<- *prometheus.Desc) { ch <- answersDesc }

// Collect sends a count for each status that there can be, so that the first of its
// kind is seen as a step from 0.
func (a answers) Collect(ch chan<- prometheus.Metric) {
	statuses := map[int]bool{http.StatusOK: true}
	for _, k := range kinds {
		statuses[k.status] = true
	}
	for status := range statuses {
		ch <- prometheus.MustNewConstMetric(answersDesc, counter, float64(a.of[status].Load()), strconv.Itoa(status))
	}
}

// A fact is one metric that a State says something of.
type fact struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(st server.State, now time.Time) (value float64, ok bool)
}

func newFact(label, name, help string, kind prometheus.ValueType, of func(server.State, time.Time) (float64, bool)) fact {
	return fact{prometheus.NewDesc(name, help, []string{label}, nil), kind, of}
}

// age is for a time that has passed, until one that is to come.
func age(of func(server.State) time.Time) func(server.State, time.Time) (float64, bool) {
	return func(st server.State, now time.Time) (float64, bool) {
		t := of(st)
		return now.Sub(t).Seconds(), !t.IsZero()
	}
}

func always(of func(server.State) float64) func(server.State, time.Time) (float64, bool) {
	return func(st server.State, _ time.Time) (float64, bool) { return of(st), true }
}

// limited is for what only a series with a last number has.
func limited(of func(server.State) float64) func(server.State, time.Time) (float64, bool) {
	return func(st server.State, _ time.Time) (float64, bool) { return of(st), st.Last > 0 }
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// remaining is how many numbers nobody was granted yet.
func remaining(st server.State) float64 {
	if st.Next > st.Last {
		return 0
	}
	return float64((st.Last-st.Next)/max(st.Increment, 1)) + 1
}

// What a lease says, which all series of its pool share.
var poolFacts = []fact{
	newFact("pool", "firn_lease_held_seconds", "For how long the worker of the first lane has been held.", gauge, age(func(st server.State) time.Time { return st.Since })),
	newFact("pool", "firn_lease_age_seconds", "Time since the store last acknowledged the lease.", gauge, age(func(st server.State) time.Time { return st.Renewed })),
	newFact("pool", "firn_lease_left_seconds", "For how long ids go on without the store; 0 where there are none.", gauge, func(st server.State, now time.Time) (float64, bool) { return left(st, now), true }),
	newFact("pool", "firn_lease_budget_seconds", "For how long ids go on without the store, at most.", gauge, always(func(st server.State) float64 { return st.Budget.Seconds() })),
	newFact("pool", "firn_lease_degraded", "1 where the store does not answer.", gauge, always(func(st server.State) float64 { return flag(st.Degraded) })),
	newFact("pool", "firn_lease_workers", "How many workers are held.", gauge, always(func(st server.State) float64 { return float64(len(st.Worker)) })),
	newFact("pool", "firn_lease_term", "The term of the first lane: a jump says that the worker was lost or is another.", gauge, always(func(st server.State) float64 { return float64(st.Term) })),
	newFact("pool", "firn_clock_offset_seconds", "How far the clock of ids is ahead of the store's, as last read; negative: behind it.", gauge, always(func(st server.State) float64 { return st.ClockOffset.Seconds() })),
	newFact("pool", "firn_borrowed_seconds", "How far ids run ahead of the clock.", gauge, always(func(st server.State) float64 { return st.Borrowed.Seconds() })),
	newFact("pool", "firn_waits_total", "Calls that had to wait for the clock: the rate is at the ceiling of the layout.", counter, always(func(st server.State) float64 { return float64(st.Waits) })),
}

// What each series says.
var seriesFacts = []fact{
	newFact("series", "firn_series_ready", "1 where it issues, and will for a while without its store; or has given all there was.", gauge, func(st server.State, now time.Time) (float64, bool) { return flag(st.Ready(now) == nil), true }),
	newFact("series", "firn_series_degraded", "1 where its store does not answer.", gauge, always(func(st server.State) float64 { return flag(st.Degraded) })),
	newFact("series", "firn_series_lossy", "1 where its store can forget what it acknowledged.", gauge, always(func(st server.State) float64 { return flag(st.Class == "lossy") })),
	newFact("series", "firn_ends_timestamp_seconds", "When its layout or its numbers are used up, at this rate, as far as that can be told.", gauge, func(st server.State, _ time.Time) (float64, bool) {
		return float64(st.Ended.Unix()), !st.Ended.IsZero()
	}),
	newFact("series", "firn_numbers_reserved", "Numbers in hand: what can be issued without the store, and what a crash loses.", gauge, limited(func(st server.State) float64 { return float64(st.Left) })),
	newFact("series", "firn_numbers_prefetched", "Those of them in the next block.", gauge, limited(func(st server.State) float64 { return float64(st.Ahead) })),
	newFact("series", "firn_numbers_remaining", "Numbers up to the last one that nobody was granted yet, as far as this server knows.", gauge, limited(remaining)),
	newFact("series", "firn_numbers_wasted_total", "Numbers that this server threw away.", counter, limited(func(st server.State) float64 { return float64(st.Waste) })),
}

// seriesMetrics collects what series say of themselves. Names that clients make up have
// series of their own up to a number, and one for all others: see server.Options.
type seriesMetrics struct{ server *server.Server }

var (
	readyDesc   = prometheus.NewDesc("firn_ready", "1 where all series issue, and will for a while: what /readyz says.", nil, nil)
	refusedDesc = prometheus.NewDesc("firn_refused_total", "Requests that came to no series, over any protocol: no such series, no right to it, over a limit.", nil, nil)
	answersDesc = prometheus.NewDesc("firn_http_responses_total", "Answers over HTTP, by status.", []string{"code"}, nil)
	infoDesc    = prometheus.NewDesc("firn_series_info", "What a series is; always 1.", []string{"series", "kind", "pool", "class"}, nil)

	requestsDesc = prometheus.NewDesc("firn_requests_total", "Requests for values, over any protocol.", []string{"series"}, nil)
	valuesDesc   = prometheus.NewDesc("firn_values_total", "Values given out.", []string{"series"}, nil)
	errorsDesc   = prometheus.NewDesc("firn_errors_total", "Requests that the series could not answer.", []string{"series"}, nil)
	durationDesc = prometheus.NewDesc("firn_draw_duration_seconds", "How long the series took to give values, without the network. Requests of a pipeline may be drawn as one.", []string{"series"}, nil)
)

// Describe sends nothing: which metrics there are depends on the series.
func (*seriesMetrics) Describe(chan<- *prometheus.Desc) {}

func (m *seriesMetrics) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	ch <- prometheus.MustNewConstMetric(readyDesc, gauge, flag(m.server.Ready() == nil))
	ch <- prometheus.MustNewConstMetric(refusedDesc, counter, float64(m.server.Refused()))
	pools := map[string]server.State{}
	leases := map[string]bool{}
	all := m.server.All()
	if rest := m.server.Rest(); rest != nil {
		all = append(all, rest) // whose lease is seen before there is any name
	}
	for _, s := range all {
		st := s.State()
		if lease := fmt.Sprintf("%q %v %d", st.Pool, st.Worker, st.Term); st.Pool != "" && !leases[lease] {
			leases[lease] = true
			pools[st.Pool] = together(pools[st.Pool], st)
		}
		ch <- prometheus.MustNewConstMetric(infoDesc, gauge, 1, s.Name(), st.Kind, st.Pool, st.Class)
		collect(ch, seriesFacts, s.Name(), st, now)
		collectCounts(ch, s.Name(), s.Counts())
	}
	for pool, st := range pools {
		collect(ch, poolFacts, pool, st, now)
	}
}

// together is what two leases of one pool say, which series of different shards have: the
// one that ends first speaks for both. The zero State is no lease.
func together(a, b server.State) server.State {
	if a.Pool == "" {
		return b
	}
	if b.Until.Before(a.Until) {
		a, b = b, a
	}
	a.Worker = slices.Concat(a.Worker, b.Worker)
	a.Waits += b.Waits
	a.Borrowed = max(a.Borrowed, b.Borrowed)
	a.Degraded = a.Degraded || b.Degraded
	return a
}

func collect(ch chan<- prometheus.Metric, facts []fact, label string, st server.State, now time.Time) {
	for _, f := range facts {
		if value, ok := f.of(st, now); ok {
			ch <- prometheus.MustNewConstMetric(f.desc, f.kind, value, label)
		}
	}
}

func collectCounts(ch chan<- prometheus.Metric, label string, c server.Counts) {
	ch <- prometheus.MustNewConstMetric(requestsDesc, counter, float64(c.Requests), label)
	ch <- prometheus.MustNewConstMetric(valuesDesc, counter, float64(c.Values), label)
	ch <- prometheus.MustNewConstMetric(errorsDesc, counter, float64(c.Errors), label)
	buckets := map[float64]uint64{}
	sum := uint64(0)
	for i, n := range c.Latency {
		sum += n
		if bound := server.LatencyBound(i); bound >= 0 {
			buckets[bound.Seconds()] = sum
		}
	}
	ch <- prometheus.MustNewConstHistogram(durationDesc, sum, c.Took.Seconds(), buckets, label)
}
