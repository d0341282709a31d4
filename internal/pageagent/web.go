package pageagent

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler returns /healthz, /readyz and /metrics of an agent. Nothing there names a store, and nothing can be changed.
func (a *Agent) Handler(version string) (http.Handler, error) {
	reg := prometheus.NewPedanticRegistry()
	info := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "firn_build_info", Help: "The program; always 1.", ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
	for _, c := range []prometheus.Collector{&metrics{a}, info, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		now, state := time.Now(), a.State()
		if err := state.Ready(now); err != nil {
			answer(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		text := "ready"
		if but := state.Lacking(now); but != "" {
			text += ", but " + but
		}
		answer(w, http.StatusOK, text)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	return mux, nil
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // who does not read it has gone
}

// A fact is one metric of a lane.
type fact struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(l *Lane, now time.Time) (value float64, ok bool)
}

func newFact(name, help string, kind prometheus.ValueType, of func(*Lane, time.Time) (float64, bool)) fact {
	return fact{prometheus.NewDesc(name, help, []string{"pool", "lane"}, nil), kind, of}
}

func count(of func(*Lane) int64) func(*Lane, time.Time) (float64, bool) {
	return func(l *Lane, _ time.Time) (float64, bool) { return float64(of(l)), true }
}

var facts = []fact{
	newFact("firn_page_ids_total", "Ids that clients took from the page, read every 10 ms; less than there were where more than a tick has were taken in that time.", prometheus.CounterValue, count(func(l *Lane) int64 { return l.Taken })),
	newFact("firn_page_left_seconds", "For how long ids continue without the agent and its store; 0 where there are none.", prometheus.GaugeValue, func(l *Lane, now time.Time) (float64, bool) { return l.Left(now).Seconds(), true }),
	newFact("firn_page_renewals_total", "How many times the store confirmed that ids continue.", prometheus.CounterValue, count(func(l *Lane) int64 { return l.Renewals })),
	newFact("firn_pages_total", "Pages made: one for each term of a worker.", prometheus.CounterValue, count(func(l *Lane) int64 { return l.Pages })),
	newFact("firn_page_worker", "The worker of the page; absent while there is no page.", prometheus.GaugeValue, func(l *Lane, _ time.Time) (float64, bool) {
		if l.Lease == nil || !l.Made {
			return 0, false
		}
		return float64(l.Lease.Worker), true
	}),
	newFact("firn_page_store_away", "1 where the store does not answer.", prometheus.GaugeValue, func(l *Lane, _ time.Time) (float64, bool) {
		if l.Lease == nil {
			return 0, false
		}
		if l.Lease.StoreAway {
			return 1, true
		}
		return 0, true
	}),
}

var (
	readyDesc = prometheus.NewDesc("firn_ready", "1 where clients get ids: what /readyz says.", nil, nil)
	lanesDesc = prometheus.NewDesc("firn_page_lanes", "How many lanes the agent has.", nil, nil)
)

// metrics collects what the lanes say of themselves.
type metrics struct{ agent *Agent }

// Describe sends nothing: which metrics there are depends on the lanes.
func (*metrics) Describe(chan<- *prometheus.Desc) {}

func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	now, state := time.Now(), m.agent.State()
	ready := 0.0
	if state.Ready(now) == nil {
		ready = 1
	}
	ch <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, ready)
	ch <- prometheus.MustNewConstMetric(lanesDesc, prometheus.GaugeValue, float64(len(state.Lanes)))
	for i := range state.Lanes {
		l := &state.Lanes[i]
		for _, f := range facts {
			if value, ok := f.of(l, now); ok {
				ch <- prometheus.MustNewConstMetric(f.desc, f.kind, value, m.agent.options.Pool, strconv.Itoa(i))
			}
		}
	}
}
