// Package metrics says how servers of shards and their moves are, for Prometheus.
//
// Nothing is counted between two looks, and nothing is kept: each look asks all servers. A server that does
// not answer is down, and has no other metric.
package metrics

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// Patience is how long one look may take.
const Patience = 15 * time.Second

// Write looks at servers, and writes what it sees in the text format of Prometheus, as the textfile
// collector of node_exporter reads it.
func Write(ctx context.Context, w io.Writer, servers []topology.Server) error {
	return write(w, look(ctx, servers))
}

func write(w io.Writer, s *seen) error {
	families, err := registryOf(s).Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return nil
}

// Handler answers each request with a look at servers. One look is under way at a time: a request that comes
// meanwhile waits, for as long as one look may take.
func Handler(servers []topology.Server) http.Handler {
	turn := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), Patience)
		defer cancel()
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			http.Error(w, "another look at the servers is under way", http.StatusServiceUnavailable)
			return
		}
		promhttp.HandlerFor(registryOf(look(ctx, servers)), promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
}

// seen is what one look has found.
type seen struct {
	servers []*check.Server
	moves   []move.Move
	pauses  map[string]move.Pauses // by server
	err     error                  // of a server that has not said which moves there are
	at      time.Time
}

func look(ctx context.Context, servers []topology.Server) *seen {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	s := &seen{}
	var all sync.WaitGroup
	all.Go(func() { s.moves, s.err = move.Moves(ctx, servers) })
	all.Go(func() { s.pauses = move.AllPauses(ctx, servers) })
	s.servers = check.Look(ctx, servers)
	all.Wait()
	s.at = time.Now()
	return s
}

func registryOf(s *seen) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(s)
	return reg
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("firn_shard_"+name, help, labels, nil)
}

var (
	upDesc     = desc("server_up", "1 where the server answers and says which shards it has.", "server")
	shardsDesc = desc("server_shards", "Shards of a server: those it serves, those closed there, and those that have moved away.", "server", "state")
	sizeDesc   = desc("server_size_bytes", "Size of the server's database.", "server")
	clockDesc  = desc("server_clock_ahead_seconds", "How far the server's clock is ahead of this host's.", "server")
	badDesc    = desc("findings", "What is wrong with the cluster as a whole, by level, as firn shard status says.", "level")
	knownDesc  = desc("moves_known", "1 where all servers have said which moves there are.")

	pauseDesc = desc("cutover_pause_seconds", "For how long shards that came to a server took no writes while they changed over.", "server")
	lastDesc  = desc("cutover_pause_last_seconds", "The same of the last shard that came to a server.", "server")

	moveLabels = []string{"move", "from", "to"}
	movingDesc = desc("move_shards", "Shards of a move that is not finished, by how far the move is.", append(slices.Clone(moveLabels), "phase")...)
	ageDesc    = desc("move_age_seconds", "Since when a move is not finished.", moveLabels...)
	idleDesc   = desc("move_idle", "1 where no mover is at work on a move.", moveLabels...)
	brokenDesc = desc("move_problem", "1 where something is wrong with a move: firn shard doctor says what.", moveLabels...)
	lagDesc    = desc("move_lag_bytes", "WAL that the other server of a move has not applied.", moveLabels...)
	walDesc    = desc("move_wal_bytes", "WAL that a server keeps for a move.", append(slices.Clone(moveLabels), "server")...)
)

// Describe sends nothing: which metrics there are is known after a look.
func (*seen) Describe(chan<- *prometheus.Desc) {}

// Collect sends what was seen.
func (s *seen) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	views := make(map[string]*topology.View)
	for _, one := range s.servers {
		send(upDesc, flag(one.Err == nil), one.Name)
		if one.Err == nil {
			views[one.Name] = one.View
			sendServer(send, one)
		}
	}
	for _, server := range slices.Sorted(maps.Keys(s.pauses)) {
		p := s.pauses[server]
		ch <- prometheus.MustNewConstSummary(pauseDesc, p.Cutovers, p.Seconds, nil, server)
		if p.Cutovers > 0 {
			send(lastDesc, p.Last, server)
		}
	}
	levels := map[check.Level]int{check.Bad: 0, check.Warn: 0}
	for _, f := range check.Together(views, len(views) == len(s.servers)) {
		levels[f.Level]++
	}
	for _, l := range []check.Level{check.Bad, check.Warn} {
		send(badDesc, float64(levels[l]), string(l))
	}
	send(knownDesc, flag(s.err == nil))
	for _, f := range s.moves {
		s.sendMove(send, f)
	}
}

func sendServer(send func(*prometheus.Desc, float64, ...string), one *check.Server) {
	var serves, closed, moved int
	for _, row := range one.Shards {
		switch {
		case row.State == topology.StateMoved:
			moved++
		case row.Serves():
			serves++
		default:
			closed++
		}
	}
	send(shardsDesc, float64(serves), one.Name, "serves")
	send(shardsDesc, float64(closed), one.Name, "closed")
	send(shardsDesc, float64(moved), one.Name, "moved")
	send(sizeDesc, float64(one.Bytes), one.Name)
	send(clockDesc, one.Offset.Seconds(), one.Name)
}

func (s *seen) sendMove(send func(*prometheus.Desc, float64, ...string), f move.Move) {
	labels := []string{f.Batch, f.Source, f.Target}
	send(movingDesc, float64(len(f.Shards)), append(slices.Clone(labels), string(f.Stage()))...)
	send(ageDesc, s.at.Sub(f.Began).Seconds(), labels...)
	send(idleDesc, flag(f.Idle), labels...)
	send(brokenDesc, flag(f.Problem != "" || f.Copy != "" || len(f.Lost)+len(f.Twice) > 0), labels...)
	if f.Unapplied >= 0 {
		send(lagDesc, float64(f.Unapplied), labels...)
	}
	for _, server := range slices.Sorted(maps.Keys(f.WAL)) {
		send(walDesc, float64(f.WAL[server]), append(slices.Clone(labels), server)...)
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
