package metrics

import (
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// example has each metric at least once.
func example() *seen {
	now := time.Unix(1_800_000_000, 0)
	return &seen{
		at: now,
		servers: []*check.Server{
			{Name: "a", View: &topology.View{Shards: []topology.Row{{Shard: 0, State: topology.StateOpen, Here: true}, {Shard: 1, State: topology.StateMoved}, {Shard: 2, State: topology.StateClosed}}}, Bytes: 4096, Offset: -time.Second},
			{Name: "b", Err: os.ErrDeadlineExceeded},
		},
		moves: []move.Move{
			{Batch: "aaaaaaaaaaaa", Source: "a", Target: "b", Shards: []int64{1, 2}, Began: now.Add(-time.Minute), Phase: move.Ready, Unapplied: 7, WAL: map[string]int64{"a": 9}, Idle: true},
			{Batch: "bbbbbbbbbbbb", Source: "b", Target: "a", Shards: []int64{3}, Began: now, Phase: move.Unknown, Unapplied: -1, Problem: "b does not answer"},
		},
		pauses: map[string]move.Pauses{"a": {Cutovers: 3, Seconds: 0.25, Last: 0.125}, "c": {}},
		err:    os.ErrDeadlineExceeded,
	}
}

// TestMetrics: what was seen, in the text format of Prometheus.
func TestMetrics(t *testing.T) {
	var b strings.Builder
	if err := write(&b, example()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`firn_shard_server_up{server="a"} 1`, `firn_shard_server_up{server="b"} 0`,
		`firn_shard_server_shards{server="a",state="serves"} 1`, `firn_shard_server_shards{server="a",state="closed"} 1`, `firn_shard_server_shards{server="a",state="moved"} 1`,
		`firn_shard_server_size_bytes{server="a"} 4096`, `firn_shard_server_clock_ahead_seconds{server="a"} -1`, `firn_shard_moves_known 0`,
		`firn_shard_move_shards{from="a",move="aaaaaaaaaaaa",phase="following",to="b"} 2`, `firn_shard_move_age_seconds{from="a",move="aaaaaaaaaaaa",to="b"} 60`,
		`firn_shard_move_idle{from="a",move="aaaaaaaaaaaa",to="b"} 1`, `firn_shard_move_idle{from="b",move="bbbbbbbbbbbb",to="a"} 0`,
		`firn_shard_move_problem{from="b",move="bbbbbbbbbbbb",to="a"} 1`, `firn_shard_move_lag_bytes{from="a",move="aaaaaaaaaaaa",to="b"} 7`,
		`firn_shard_cutover_pause_seconds_sum{server="a"} 0.25`, `firn_shard_cutover_pause_seconds_count{server="a"} 3`, `firn_shard_cutover_pause_last_seconds{server="a"} 0.125`,
		`firn_shard_cutover_pause_seconds_count{server="c"} 0`,
		`firn_shard_move_wal_bytes{from="a",move="aaaaaaaaaaaa",server="a",to="b"} 9`,
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), `server_size_bytes{server="b"}`) || strings.Contains(b.String(), `move_lag_bytes{from="b"`) || strings.Contains(b.String(), `last_seconds{server="c"}`) {
		t.Errorf("%s", &b)
	}
}

// TestHandlerServersAway: a server that does not answer is a metric, and no failure of the request.
func TestHandlerServersAway(t *testing.T) {
	config, err := pgx.ParseConfig("postgres://127.0.0.1:1/x")
	if err != nil {
		t.Fatal(err)
	}
	s := topology.Server{Name: "a", Config: config}
	w := httptest.NewRecorder()
	Handler([]topology.Server{s}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, `firn_shard_server_up{server="a"} 0`) || !strings.Contains(body, "firn_shard_moves_known 0") {
		t.Errorf("%d\n%s", w.Code, body)
	}
}

// TestMetricsAreDocumented: rules, dashboard and page name no metric that is not there, and the page explains each.
func TestMetricsAreDocumented(t *testing.T) {
	families, err := registryOf(example()).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, f := range families {
		there = append(there, f.GetName())
	}
	name := regexp.MustCompile(`\bfirn_shard_[a-z_]+\b`)
	for _, path := range []string{"alerts.yml", "alerts_test.yml", "dashboard.json", "../reference/metrics.md"} {
		text, err := os.ReadFile("../../docs/monitoring/" + path)
		if err != nil {
			t.Fatal(err)
		}
		found := name.FindAllString(string(text), -1)
		for _, n := range found {
			if !slices.Contains(there, n) {
				t.Errorf("%s: there is no metric %s", path, n)
			}
		}
		for _, n := range there {
			if path == "../reference/metrics.md" && !slices.Contains(found, n) {
				t.Errorf("%s does not explain %s", path, n)
			}
		}
	}
}
