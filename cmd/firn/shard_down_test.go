//go:build !windows

package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// drastic is what nobody must be told to do about a server that merely does not answer:
// each of these takes for granted that it is lost, or cannot be taken back.
var drastic = regexp.MustCompile(`--gone|--incomplete|shards? (abort|finish|reopen|remove-server|recover)\b|firn\.open`)

// downCommands are the words of every command that asks servers, by name. {dir} is a
// directory with a migration.
var downCommands = map[string][]string{
	"add-server":    {"add-server c={c}"},
	"adopt":         {"adopt --keys-by mod --count 8"},
	"apply":         {"apply {dir}", "apply {dir} --dry-run", "apply {dir} --status"},
	"abort":         {"abort 1", "abort 0"},
	"doctor":        {"doctor", "doctor --clean", "doctor --json"},
	"exec":          {"exec SELECT+1"},
	"finish":        {"finish 2", "finish 2 --yes"},
	"init":          {"init", "init --count 8 --yes"},
	"ls":            {"ls"},
	"map":           {"ls --map", "ls --map --json"},
	"metrics":       {"metrics"},
	"move":          {"move 0 --to b", "move 1 --to b", "move 2 --to a", "move 0 --to b --dry-run"},
	"pause":         {"pause 1", "pause 2"},
	"rebalance":     {"rebalance", "rebalance --dry-run", "rebalance --drain b"},
	"remove-server": {"remove-server a", "remove-server b"},
	"reopen":        {"reopen a --yes", "reopen b --yes"},
	"resume":        {"resume 1"},
	"revert":        {"revert 2"},
	"status":        {"status", "status --json"},
	"where":         {"where --shard 0", "where --shard 2", "where --shard 7"},
	"sql":           nil, // it asks no server
}

// TestShardsSourceDown and TestShardsTargetDown run every command on a cluster of which
// one server does not answer, with moves under way: none hints at anything that would lose
// something.
func TestShardsSourceDown(t *testing.T) {
	testserver.OnlyLong(t) // TestShardsTargetDown types the same commands
	t.Parallel()
	serverDown(t, "a", "bad: no server that answers serves 3 shards: 0, 1, 3\n")
}

func TestShardsTargetDown(t *testing.T) {
	t.Parallel()
	serverDown(t, "b", "bad: no server that answers serves 5 shards: 2, 4, 5, 6, 7\n")
}

func serverDown(t *testing.T, down, status string) {
	away := movesServer(t)
	servers := map[string]*testserver.Server{"a": testserver.Shared(t, movesServer), "b": testserver.Shared(t, movesServer)}
	servers[down] = away
	a, b, c := database(t, servers["a"], "a"), database(t, servers["b"], "b"), database(t, testserver.Shared(t, movesServer), "c")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	onAll := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, onAll("init --count 8 --yes")...)
	succeed(t, onAll("move 2 --to b")...)
	leaves(t, a, onAll("move 1 --to b"))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "001_t.sql"), []byte("CREATE TABLE t (n integer)"), 0o600); err != nil {
		t.Fatal(err)
	}
	away.Kill(t)

	for _, cmd := range newShards().Commands() {
		all, known := downCommands[cmd.Name()]
		if !known {
			t.Errorf("firn shard %s has no line here", cmd.Name())
		}
		for _, words := range all {
			args := onAll(strings.NewReplacer("{dir}", dir, "{c}", c).Replace(words))
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "SELECT+1", "SELECT 1")
			}
			out, errs := says(t, args)
			if at := drastic.FindString(out + errs); at != "" {
				t.Errorf("firn shard %s, while %s is down, says %q:\n%s%s", words, down, at, out, errs)
			}
			if strings.Contains(errs, "firn: error: server "+down) && !strings.Contains(errs, "firn: hint: start server "+down+", or check its address; to see which servers answer: firn shard status") {
				t.Errorf("firn shard %s, while %s is down, does not say to start it:\n%s", words, down, errs)
			}
			if strings.Contains(errs, "failed to connect") && !strings.Contains(errs, ", or check its address") {
				t.Errorf("firn shard %s, while %s is down, does not say what to do:\n%s", words, down, errs)
			}
		}
	}
	// What a server that does not answer has is unknown, and not closed.
	if down == "b" {
		for words, want := range map[string]string{
			"where --shard 2":        "shard 2, schema insta2, server b, unknown (server b does not say)\n",
			"where --shard 2 --json": `"state":"unknown"`,
			"ls":                     "unknown  ",
			"ls --json":              `"state":"unknown"`,
		} {
			if out, _ := says(t, onAll(words)); !strings.Contains(out, want) || strings.Contains(out, "closed") {
				t.Errorf("firn shard %s: no %q in\n%s", words, want, out)
			}
		}
	}
	// All shards that the server serves are counted, not only those of moves.
	out, _ := says(t, onAll("status"))
	if !strings.Contains(out, status) {
		t.Errorf("no %q in\n%s", status, out)
	}
	if strings.Contains(out, "0 of 0") {
		t.Errorf("status shows a number of rows that it does not know:\n%s", out)
	}
	if !regexp.MustCompile(`(?m)^bad: server `+down+`: .*; start it, or check its address; if it is permanently lost: docs/guides/shards-operating.md, "A server that is lost"$`).MatchString(out) || strings.Contains(out, "nobody can say") {
		t.Errorf("status does not say to start %s, or does not know what a server serves that answers:\n%s", down, out)
	}
}

// says is what a command prints, whether it succeeds or not.
func says(t *testing.T, args []string) (out, errs string) {
	t.Helper()
	p := command(t, "none", args...)
	var b strings.Builder
	p.Stdout = &b
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	return b.String(), p.errs.String()
}

// leaves begins a move of shard 1, and kills the mover once the servers know of it.
func leaves(t *testing.T, source string, args []string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background()) // which ends the transaction
	if _, err := c.Exec(t.Context(), "CREATE TABLE insta1.t (id bigint PRIMARY KEY); BEGIN; INSERT INTO insta1.t VALUES (1)", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	p := waitingMove(t, source, args)
	p.Process.Kill()
	p.Wait()
}
