package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/httpapi"
)

const monitoring = "../../docs/monitoring"

// metricName is how our metrics look in rules, queries and texts.
var metricName = regexp.MustCompile(`\b(firn_[a-z0-9_]+|process_[a-z_]+|go_[a-z_]+)\b`)

func readDoc(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// expressions are those of the dashboard, with values for its variables.
func expressions(t testing.TB) []string {
	t.Helper()
	var board struct {
		Panels []struct {
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
		Templating struct {
			List []struct {
				Definition string `json:"definition"`
			} `json:"list"`
		} `json:"templating"`
	}
	if err := json.Unmarshal([]byte(readDoc(t, "dashboard.json")), &board); err != nil {
		t.Fatal(err)
	}
	var all []string
	fill := strings.NewReplacer("$job", "firn", "$instance", ".*", "$series", ".*", "$__rate_interval", "1m")
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, fill.Replace(target.Expr))
		}
	}
	for _, v := range board.Templating.List {
		if inner, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
			all = append(all, fill.Replace(inner[:strings.LastIndex(inner, ",")])) // without the label
		}
	}
	if len(all) < 20 {
		t.Fatalf("the dashboard has %d expressions", len(all))
	}
	return all
}

// everything is what a program that has listeners says of them.
var everything = &httpapi.Options{
	Traffic: func() []server.Traffic {
		return []server.Traffic{{Listener: "resp", Open: 3, Accepted: 9, Refused: 2, Dropped: 1}, {Listener: "http"}}
	},
	Reloaded: func() (time.Time, error) { return time.Unix(1_800_000_000, 0), errors.New("a fault") },
}

// Every metric that the documentation, the dashboard and the alert rules name is one
// that there is, and every one of firn's is explained.
func TestMetricsAreDocumented(t *testing.T) {
	there := scrape(t, handler(t, newServer(t, nil, photo(t), orders(t, "orders", nil)), everything))
	shop := server.Token{Name: "shop", Hash: server.HashToken("s"), Rights: map[string]server.Right{"*": server.Admin}}
	guarded := newServer(t, &server.Options{Tokens: []server.Token{shop}}, photo(t))
	maps.Copy(there, scrape(t, handler(t, guarded, everything), "Authorization", "Bearer s"))
	explained := map[string]bool{}
	for _, path := range []string{"alerts.yml", "alerts_test.yml", "dashboard.json", "../reference/metrics.md"} {
		found := metricName.FindAllString(readDoc(t, path), -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", path)
		}
		for _, name := range found {
			// Those of firn shard metrics and of firn agent are tested in shard/metrics and internal/pageagent.
			if strings.HasPrefix(name, "firn_shard_") || strings.HasPrefix(name, "firn_page") {
				continue
			}
			family := name
			if there[name] == nil { // a part of a histogram
				family = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			}
			if there[family] == nil {
				t.Errorf("%s: there is no metric %s", path, name)
			}
			if path == "../reference/metrics.md" {
				explained[family] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if strings.HasPrefix(name, "firn_") && !explained[name] {
			t.Errorf("docs/reference/metrics.md does not explain %s", name)
		}
	}
}

// Every alert is explained, and none is that there is not.
func TestAlertsAreDocumented(t *testing.T) {
	alert := regexp.MustCompile(`\bFirn[A-Z][A-Za-z]+\b`)
	in := func(path string) []string {
		found := alert.FindAllString(readDoc(t, path), -1)
		slices.Sort(found)
		return slices.Compact(found)
	}
	rules := in("alerts.yml")
	for _, path := range []string{"alerts_test.yml", "../reference/alerts.md"} {
		if found := in(path); !slices.Equal(found, rules) {
			t.Errorf("%s has %v, alerts.yml %v", path, found, rules)
		}
	}
}

// promtool reads the rules, tries them on servers in trouble and on one that is well,
// and reads what the dashboard asks and what /metrics answers.
func TestPromtool(t *testing.T) {
	promtool := testserver.Promtool(t)
	dir := t.TempDir()
	queries := "groups:\n  - name: dashboard\n    rules:\n"
	for i, e := range expressions(t) {
		queries += fmt.Sprintf("      - {record: 'panel%d', expr: %q}\n", i, e)
	}
	file := filepath.Join(dir, "dashboard.yml")
	if err := os.WriteFile(file, []byte(queries), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", "--lint=none", file},
		{"check", "rules", filepath.Join(monitoring, "alerts.yml")},
		{"test", "rules", filepath.Join(monitoring, "alerts_test.yml")},
	} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = strings.NewReader(string(call(handler(t, newServer(t, nil, photo(t), orders(t, "orders", nil)), everything), "GET", "/metrics").body))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
