package httpapi

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapes is how many may be answered at once.
const scrapes = 4

// newMetrics returns what serves /metrics. Each answer is made from what the server
// says then; nothing is kept between two of them but which series have a name.
func (a *api) newMetrics(o *Options) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(o.Version), answers{a.stats},
		&seriesMetrics{a.server}, &processMetrics{a.server, o.Traffic, o.Reloaded},
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
