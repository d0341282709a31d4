package main

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/sqlite"
)

// toldCommands are the firn commands of the hints, and of what is to follow, in an output.
func toldCommands(output string) (all [][]string) {
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "firn: hint: ") && !strings.HasPrefix(line, "then: ") && !strings.HasPrefix(line, "bad ") && !strings.HasPrefix(line, "warn ") {
			continue
		}
		line = strings.TrimPrefix(line, "firn: hint: ")
		for _, found := range mention.FindAllStringIndex(line, -1) {
			if to, length := commandAt(newRoot(), line[found[0]:]); to != nil {
				args := line[found[0]+length:]
				all = append(all, shellWords(line[found[0]+5:found[0]+length]+args[:commandEnd(args)]))
			}
		}
	}
	return all
}

// What a command with --store or --config tells to type acts on the same store, also where
// the environment and the default file name others, and comes to an end that is no circle.
func TestHintsMeanTheSameStore(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "the store.db")
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", other)
	elsewhere := "sqlite:" + filepath.Join(other, "ids.db")
	t.Setenv("FIRN_STORE", elsewhere)
	must := func(args ...string) {
		t.Helper()
		if _, errs, code := called(t, args...); code != 0 {
			t.Fatalf("%q: %s", args, errs)
		}
	}
	must("next") // the other store has the pool default, and so has the default file
	if !inContainer(t) {
		os.Unsetenv("FIRN_STORE")
		must("next")
	}
	before := content(t, other)
	must("pool", "create", "shop", "--new", "--workers", "0-255", "--store", url)
	must("pool", "create", "one", "--new", "--workers", "700-700", "--store", url)
	must("series", "create", "invoice", "--pattern", "INV-{2}", "--store", url)
	must("next", "invoice", "-n", "99", "--store", url)
	write(t, dir, "shop.yaml", "store: 'sqlite:the store.db'\nseries: { photo: { kind: flake } }\n")
	write(t, dir, "times.txt", "2026-11-01\n")
	s, err := sqlite.Open(t.Context(), filepath.Join(dir, "the store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := lease.Open(t.Context(), s, &lease.Options{Pool: "one", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	write(t, dir, "range.yaml", "store: 'sqlite:the store.db'\npools: { shop: { worker: 900 } }\nseries: { photo: { kind: flake } }\n")
	write(t, dir, "layout.yaml", "store: 'sqlite:the store.db'\npools: { shop: { layout: twitter } }\nseries: { photo: { kind: flake } }\n")
	write(t, dir, "a:b@c.yaml", "store: 'sqlite:the store.db'\npools: { l: {} }\n") // which is no URL with a password
	in := func(name string) []string { return []string{"--config", filepath.Join(dir, name)} }
	store, config := []string{"--store", url}, in("shop.yaml")
	for _, tt := range []struct {
		given []string
		args  string
		told  int // commands at least
	}{
		{store, "next --pool shop --worker 600", 1},
		{store, "next --pool a", 2}, // each a pool of its own, as a hint creates it
		{config, "next --pool b", 2},
		{store, "next --pool e --outage 10m", 2},
		{store, "worker ls --pool f", 2},
		{store, "run --pool g -- echo", 2},
		{store, "worker release 7 --pool shop", 1},
		{store, "backfill times.txt --pool h  --worker 5", 2},
		{store, "serve --pool i --resp 127.0.0.1:0 --http off", 2},
		{config, "serve --pool j --resp 127.0.0.1:0 --http off", 2},
		{in("range.yaml"), "serve --resp 127.0.0.1:0 --http off", 0},
		{in("layout.yaml"), "serve --resp 127.0.0.1:0 --http off", 1},
		{in("layout.yaml"), "next photo", 1},
		{in("a:b@c.yaml"), "next", 2},
		{store, "doctor --pool k", 2},
		{store, "next --pool one --wait 1ms", 1},
		{store, "next --pool shop --layout twitter", 1},
		{store, "pool show m", 2},
		{store, "pool create mail", 2},
		{store, "pool create mail --workers 0-7 --layout firn", 2},
		{store, "pool create mail --new", 1},
		{store, "pool create shop --new", 2},
		{store, "pool set shop --workers 0-900", 1},
		{store, "store recover --numbers 7", 1},
		{store, "next orders --kind sequence", 1},
		{store, "series set refunds --cache 5", 1},
		{store, "next bill --pattern B-{6}", 1},
		{store, "next invoice --pattern INV-{4}", 1},
		{[]string{"--store", "sqlite:" + filepath.Join(dir, "none.db")}, "pool ls", 1},
		{store, "next --pool c --layout leaf", 1},
		{store, "next --pool d --layout time:41@1ms,worker:10,seq:12;epoch=2020-01-01T00:00:00Z", 1},
	} {
		t.Setenv("FIRN_STORE", elsewhere)
		if tt.given[0] == "--config" { // whose store a variable would replace
			os.Unsetenv("FIRN_STORE")
		}
		args, program, _ := strings.Cut(tt.args, " -- ")
		given := append(strings.Fields(args), tt.given...)
		if program != "" {
			given = append(given, "--", program)
		}
		out, errs, code := called(t, given...)
		told := toldCommands(out + errs)
		if code == 0 && args != "doctor --pool k" || len(told) < tt.told {
			t.Errorf("%s: exit code %d, and these commands: %q\n%s%s", tt.args, code, told, out, errs)
		}
		failed, _, _ := newRoot().Find(given)
		checkSaidFlags(t, failed, out+errs)
		followHints(t, tt.args, told, tt.given, 3)
		if after := content(t, other); !maps.Equal(before, after) {
			t.Fatalf("%s: a hint changed another store\n%s%s", tt.args, out, errs)
		}
	}
}

// checkSaidFlags checks that a command has the flags that its hints name for it.
func checkSaidFlags(t *testing.T, failed *cobra.Command, output string) {
	t.Helper()
	for line := range strings.Lines(toldOf(output)) {
		named := failed // "add --outage" and "wants --numbers" are about the command before it
		for rest := line; ; {
			at := mention.FindStringIndex(rest)
			prose := rest
			if at != nil {
				prose = rest[:at[0]]
			}
			for _, m := range anyFlag.FindAllStringSubmatch(prose, -1) {
				of := failed
				if strings.Contains(prose, "add --"+m[1]) || strings.Contains(prose, "wants --"+m[1]) {
					of = named
				}
				if of.Flag(m[1]) == nil {
					t.Errorf("%s has no flag --%s: %s", of.CommandPath(), m[1], line)
				}
			}
			if at == nil {
				break
			}
			to, length := commandAt(newRoot(), rest[at[0]:])
			if to != nil {
				named = to
			}
			rest = rest[at[0]+max(length, len("firn")):]
			rest = rest[commandEnd(rest):]
		}
	}
}

var anyFlag = regexp.MustCompile(`--([a-z][a-z-]*)`)

// followHints types what was told, and what that tells, so many times.
func followHints(t *testing.T, from string, told [][]string, given []string, depth int) {
	t.Helper()
	for _, words := range told {
		if i := slices.Index(words, "N"); i > 0 { // a number that only a person knows
			words[i] = "1000"
		}
		cmd, rest, err := newRoot().Find(words)
		if err != nil {
			t.Errorf("%s: %q: %v", from, words, err)
			continue
		}
		cmd.InitDefaultHelpFlag()
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%s: %q: %v", from, words, err)
			continue
		}
		if cmd.Flag("store") != nil && cmd.Flag(given[0][2:]).Value.String() != given[1] {
			t.Errorf("%s: firn %s: without %q", from, strings.Join(words, " "), given)
			continue
		}
		if depth == 0 {
			t.Errorf("%s: hints go on and on: %q", from, words)
			continue
		}
		if words[0] == "serve" {
			t.Errorf("%s: a hint starts a server, which does not end: %q", from, words)
			continue
		}
		out, errs, code := called(t, words...)
		if code != 0 {
			followHints(t, from+"; "+strings.Join(words, " "), toldCommands(out+errs), given, depth-1)
		}
	}
}

// Where a URL has a password, what is typed from a hint is refused and not obeyed by
// another store, and shows nothing of the password.
func TestHintsShowNoPassword(t *testing.T) {
	emptyHome(t)
	const store, server = "postgres://app:s3cret@127.0.0.1:1/app?connect_timeout=1", "a=postgres://app:s3cret@127.0.0.1:1/app"
	for _, args := range [][]string{
		{"pool", "create", "--store", store},
		{"pool", "create", "--layout", "twitter", "--store", store},
		{"store", "recover", "--yez", "--store", store},
		{"shard", "status", "--server", server},
	} {
		out, errs, _ := called(t, args...)
		if strings.Contains(out+errs, "s3cret") {
			t.Errorf("%q shows the password: %s%s", args, out, errs)
		}
		for _, words := range toldCommands(out + errs) {
			if words[len(words)-1] == "--help" {
				continue
			}
			if joined := strings.Join(words, " "); !strings.Contains(joined, "--store URL") && !strings.Contains(joined, "--server a=URL") || !strings.Contains(errs, remedy.MaskedNote[2:]) {
				t.Errorf("%q: %s\n%s", args, joined, errs)
			}
			if _, _, code := called(t, words...); code != ui.ExitUsage {
				t.Errorf("%q: firn %q: exit code %d", args, words, code)
			}
		}
	}
}

// A URL that names no store is told with what said it: a flag, a variable, or a line of a
// config.
func TestBadStoreIsNamed(t *testing.T) {
	dir := emptyHome(t)
	write(t, dir, "bad.yaml", "pools: { default: {} }\nstore: postgre://db/app\n")
	for _, tt := range []struct {
		variable string
		args     []string
		want     string
	}{
		{"postgre://db/app", nil, `error: FIRN_STORE: "postgre://db/app"`},
		{"memory:", nil, "error: FIRN_STORE: memory: forgets"},
		{"", []string{"--store", "postgre://db/app"}, `error: --store: "postgre://db/app"`},
		{"postgre://db/other", []string{"--store", "postgre://db/app"}, `error: --store: "postgre://db/app"`},
		{"", []string{"--config", "bad.yaml"}, `bad.yaml:2:8: store: "postgre://db/app"`},
	} {
		for _, command := range []string{"next", "pool ls", "doctor", "store recover", "serve --resp 127.0.0.1:0 --http off", "series ls"} {
			t.Setenv("FIRN_STORE", tt.variable)
			if tt.variable == "" {
				os.Unsetenv("FIRN_STORE")
			}
			out, errs, code := called(t, append(strings.Fields(command), tt.args...)...)
			if code == 0 || !strings.Contains(out+errs, tt.want) {
				t.Errorf("%s %q, FIRN_STORE=%s: exit code %d: %s%s", command, tt.args, tt.variable, code, out, errs)
			}
			if hints := toldOf(errs); strings.Contains(hints, "--store") && tt.variable != "" && len(tt.args) == 0 {
				t.Errorf("%s: the hint is about a flag that nobody gave: %s", command, hints)
			}
		}
	}
}

// toldOf are the hints of an output.
func toldOf(output string) string {
	var all strings.Builder
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "firn: hint: ") {
			all.WriteString(line)
		}
	}
	return all.String()
}

// A hint hands on a long outage budget, which a pool has to allow, and no short one: to a
// command that makes a pool safe it would say that no process had more.
func TestHintOutage(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	if _, errs, code := called(t, "pool", "create", "shop", "--new", "--workers", "0-511"); code != 0 {
		t.Fatal(errs)
	}
	for outage, want := range map[string]string{"10m": "firn pool ensure default --workers 512-1023 --outage 10m (", "1s": "firn pool ensure default --workers 512-1023 ("} {
		if _, errs, code := called(t, "next", "--outage", outage); code != ui.ExitFailed || !strings.Contains(errs, want) {
			t.Errorf("--outage %s: exit code %d, no %q in %s", outage, code, want, errs)
		}
	}
}

// TestHintWithoutTheGone: what is left of a server that is gone is removed from the servers that are there.
func TestHintWithoutTheGone(t *testing.T) {
	emptyHome(t)
	root := newRoot()
	cmd, rest, err := root.Find([]string{"shard", "reopen"})
	if err != nil || len(rest) != 0 {
		t.Fatal(rest, err)
	}
	if err := cmd.ParseFlags([]string{"a", "--gone", "b", "--server", "a=postgres://h/a", "--server", "b=postgres://h/b"}); err != nil {
		t.Fatal(err)
	}
	h := hinter{cmd: cmd}
	if got := h.compose("firn shard doctor --clean"); got != "firn shard doctor --clean --server a=postgres://h/a" {
		t.Error(got)
	}
	if got := h.compose("firn shard status"); got != "firn shard status --server a=postgres://h/a --server b=postgres://h/b" {
		t.Error(got)
	}
}
