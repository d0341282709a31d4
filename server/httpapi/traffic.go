package httpapi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/server"
)

// processMetrics collects what is of the whole process and of no series.
type processMetrics struct {
	server   *server.Server
	traffic  func() []server.Traffic
	reloaded func() (time.Time, error)
}

// What each listener says.
var trafficFacts = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(server.Traffic) float64
}{
	{listenerDesc("firn_connections", "Connections that are open."), gauge, func(t server.Traffic) float64 { return float64(t.Open) }},
	{listenerDesc("firn_connections_accepted_total", "Connections that came, those that were refused then among them."), counter, func(t server.Traffic) float64 { return float64(t.Accepted) }},
	{listenerDesc("firn_connections_refused_total", "Connections that were refused: there were as many as limits.connections allows."), counter, func(t server.Traffic) float64 { return float64(t.Refused) }},
	{listenerDesc("firn_connections_dropped_total", "Connections of the Redis protocol that were closed for what they sent or did not read."), counter, func(t server.Traffic) float64 { return float64(t.Dropped) }},
}

func listenerDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"listener"}, nil)
}

var (
	tokenRequestsDesc = prometheus.NewDesc("firn_token_requests_total", "Requests for values that came with a token, over any protocol.", []string{"token"}, nil)
	tokenValuesDesc   = prometheus.NewDesc("firn_token_values_total", "Values given out to a token.", []string{"token"}, nil)
	unknownDesc       = prometheus.NewDesc("firn_unknown_tokens_total", "How often a token was shown that the server does not have.", nil, nil)
	reloadDesc        = prometheus.NewDesc("firn_last_reload_successful", "1 where the settings in force are those that were last read; 0 where that reload was refused.", nil, nil)
	reloadTimeDesc    = prometheus.NewDesc("firn_last_reload_timestamp_seconds", "When the settings were last read, at the start or by a reload, whatever came of it.", nil, nil)
)

// Describe sends nothing: which metrics there are depends on listeners and tokens.
func (*processMetrics) Describe(chan<- *prometheus.Desc) {}

func (m *processMetrics) Collect(ch chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	if m.traffic != nil {
		for _, t := range m.traffic() {
			for _, f := range trafficFacts {
				send(f.desc, f.kind, f.of(t), t.Listener)
			}
		}
	}
	for name, c := range m.server.TokenCounts() {
		send(tokenRequestsDesc, counter, float64(c.Requests), name)
		send(tokenValuesDesc, counter, float64(c.Values), name)
	}
	send(unknownDesc, counter, float64(m.server.UnknownTokens()))
	if m.reloaded != nil {
		at, err := m.reloaded()
		send(reloadDesc, gauge, flag(err == nil))
		send(reloadTimeDesc, gauge, float64(at.UnixMilli())/1000)
	}
}
