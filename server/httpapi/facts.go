package httpapi

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/server"
)

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

// limited is for what only a counter with a last number has.
func limited(of func(*server.Counter) float64) func(server.State, time.Time) (float64, bool) {
	return func(st server.State, _ time.Time) (float64, bool) {
		if st.Counter == nil || st.Counter.Last == 0 {
			return 0, false
		}
		return of(st.Counter), true
	}
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
func remaining(c *server.Counter) float64 {
	if c.Next > c.Last {
		return 0
	}
	return float64((c.Last-c.Next)/max(c.Increment, 1)) + 1
}

// What a lease says, which all series of its pool share.
var poolFacts = []fact{
	newFact("pool", "firn_lease_held_seconds", "For how long the worker of the first lane has been held.", gauge, age(func(st server.State) time.Time { return st.Lease.LeasedAt })),
	newFact("pool", "firn_lease_age_seconds", "Time since the store last acknowledged the lease.", gauge, age(func(st server.State) time.Time { return st.Lease.RenewedAt })),
	newFact("pool", "firn_lease_left_seconds", "For how long ids continue without the store; 0 where there are none.", gauge, func(st server.State, now time.Time) (float64, bool) { return st.Left(now).Seconds(), true }),
	newFact("pool", "firn_lease_budget_seconds", "For how long ids continue without the store, at most.", gauge, always(func(st server.State) float64 { return st.Budget.Seconds() })),
	newFact("pool", "firn_lease_store_away", "1 where the store does not answer.", gauge, always(func(st server.State) float64 { return flag(st.StoreAway) })),
	newFact("pool", "firn_lease_workers", "How many workers are held.", gauge, always(func(st server.State) float64 { return float64(len(st.Lease.Workers)) })),
	newFact("pool", "firn_lease_term", "The term of the first lane: a jump says that the worker was lost or is another.", gauge, always(func(st server.State) float64 { return float64(st.Lease.Term) })),
	newFact("pool", "firn_clock_ahead_seconds", "How far the clock of ids is ahead of the store's, as last read; negative: behind it.", gauge, always(func(st server.State) float64 { return st.Lease.Ahead.Seconds() })),
	newFact("pool", "firn_borrowed_seconds", "How far ids run ahead of the clock.", gauge, always(func(st server.State) float64 { return st.Lease.Borrowed.Seconds() })),
	newFact("pool", "firn_waits_total", "Calls that had to wait for the clock: the rate is at the ceiling of the layout.", counter, always(func(st server.State) float64 { return float64(st.Waits) })),
}

// What each series says.
var seriesFacts = []fact{
	newFact("series", "firn_series_ready", "1 where it issues, and will for a while without its store; or has given all there was.", gauge, func(st server.State, now time.Time) (float64, bool) { return flag(st.Ready(now) == nil), true }),
	newFact("series", "firn_series_store_away", "1 where its store does not answer.", gauge, always(func(st server.State) float64 { return flag(st.StoreAway) })),
	newFact("series", "firn_series_durable", "1 where its store keeps what it acknowledged, 0 where the store can lose writes; absent until the store has answered.", gauge, func(st server.State, _ time.Time) (float64, bool) {
		return flag(st.Durable != nil && *st.Durable), st.Durable != nil
	}),
	newFact("series", "firn_ends_timestamp_seconds", "When its layout or its numbers are used up, at this rate, as far as that can be told.", gauge, func(st server.State, _ time.Time) (float64, bool) {
		return float64(st.UsedUpAt.Unix()), !st.UsedUpAt.IsZero()
	}),
	newFact("series", "firn_numbers_reserved", "Numbers in hand: what can be issued without the store, and what a crash loses.", gauge, limited(func(c *server.Counter) float64 { return float64(c.Reserved) })),
	newFact("series", "firn_numbers_remaining", "Numbers up to the last one that nobody was granted yet, as far as this server knows.", gauge, limited(remaining)),
	newFact("series", "firn_numbers_wasted_total", "Numbers that this server threw away.", counter, limited(func(c *server.Counter) float64 { return float64(c.Wasted) })),
}

// seriesMetrics collects what series say of themselves. Names that clients make up have
// series of their own up to a number, and one for all others: see server.Options.
type seriesMetrics struct{ server *server.Server }

var (
	readyDesc   = prometheus.NewDesc("firn_ready", "1 where all series issue, and will for a while: what /readyz says.", nil, nil)
	refusedDesc = prometheus.NewDesc("firn_refused_total", "Requests that came to no series, over any protocol: no such series, no right to it, over a limit.", nil, nil)
	answersDesc = prometheus.NewDesc("firn_http_responses_total", "Answers over HTTP, by status.", []string{"code"}, nil)
	infoDesc    = prometheus.NewDesc("firn_series_info", "What a series is; always 1.", []string{"series", "kind", "pool"}, nil)

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
	for _, source := range m.server.Sources() {
		st := source.State
		if st.Lease != nil {
			pools[st.Lease.Pool] = together(pools[st.Lease.Pool], st)
		}
		for _, s := range source.Series {
			ch <- prometheus.MustNewConstMetric(infoDesc, gauge, 1, s.Name(), st.Kind, st.Pool())
			collect(ch, seriesFacts, s.Name(), st, now)
			collectCounts(ch, s.Name(), s.Counts())
		}
	}
	for pool, st := range pools {
		collect(ch, poolFacts, pool, st, now)
	}
}

// together is what two leases of one pool say, which series of different shards have: the
// one that ends first speaks for both. The zero State is no lease.
func together(a, b server.State) server.State {
	if a.Lease == nil {
		return b
	}
	if b.EndsAt.Before(a.EndsAt) {
		a, b = b, a
	}
	both := *a.Lease
	both.Workers = slices.Concat(a.Lease.Workers, b.Lease.Workers)
	both.Borrowed = max(a.Lease.Borrowed, b.Lease.Borrowed)
	a.Lease = &both
	a.Waits += b.Waits
	a.StoreAway = a.StoreAway || b.StoreAway
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
