//go:build !windows

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/testserver"
)

// A jsonCall is a command with arguments, for TestJSON. It works, or ends with the exit code of a check.
type jsonCall struct {
	command string // without firn
	args    string // {dir} is a directory, {id} an id, {servers} the flags of two servers of shards, {c} the address of a third
	in      string
	code    int
	refused string // why the command has no JSON; empty: it has
	silent  bool   // standard output is empty
}

// jsonCalls are the commands in an order in which each has what it needs.
var jsonCalls = []jsonCall{
	{command: "pool create", args: "--new"},
	{command: "pool ensure"},
	{command: "pool ls"},
	{command: "pool show"},
	{command: "pool set", args: "--workers 0-511"},
	{command: "next", args: "-n 2"},
	{command: "decode", args: "{id} 01ARZ3NDEKTSV4RRFFQ69G5FAV"},
	{command: "encode", args: "--layout firn --time 2026-01-01"},
	{command: "backfill", args: "- --worker 9", in: "2025-03-03\n"},
	{command: "verify", in: "{id}\n"},
	{command: "plan", args: "--rate 1000 --workers 100 --years 20"},
	{command: "layout ls"},
	{command: "layout show", args: "twitter"},
	{command: "public ls"},
	{command: "public encode", args: "--as hex {id}"},
	{command: "public keygen"},
	{command: "run", args: "-- echo {}"},
	{command: "serve", args: "--resp off --http off", code: 2, silent: true}, // its log is JSON
	{command: "agent", args: "page", code: 2, silent: true},                  // TestAgent has its line and its log
	{command: "token create", args: "shop"},
	{command: "worker ls"},
	{command: "worker release", args: "0 --yes"},
	{command: "series create", args: "orders --kind sequence", silent: true}, // it says a note,
	{command: "series ls"},
	{command: "series show", args: "orders"},
	{command: "series set", args: "orders --cache 100"},
	{command: "series raise", args: "orders 1000 --yes"},
	{command: "series import", args: "--query 'SELECT 1' --db sqlite:x", code: 2, silent: true}, // TestImport has the rest
	{command: "store setup"},
	{command: "store recover", args: "--yes --numbers 10"},
	{command: "doctor"},
	{command: "config check", args: "{dir}/some.yaml", silent: true}, // without a fault there is nothing,
	{command: "config show"},
	{command: "version"},
	{command: "completion", args: "bash", refused: "firn completion prints a script of a shell, which is no JSON"},
	{command: "shard sql", args: "--shard 5"},
	{command: "help", args: "next"},
	{command: "next", args: "--help"},
	{command: "", args: "--version"},

	{command: "shard init", args: "--yes --count 2 {servers}"},
	{command: "shard adopt", args: "{servers} --yes --dry-run", silent: true}, // all shards are firn's
	{command: "shard ls", args: "{servers}"},
	{command: "shard where", args: "{servers} --shard 1"},
	{command: "shard status", args: "{servers}"},
	{command: "shard doctor", args: "{servers}", code: 3}, // fsync is off in tests
	{command: "shard apply", args: "{servers} {dir}/sql"},
	{command: "shard exec", args: "{servers} 'SELECT 1 AS n'"},
	{command: "shard move", args: "{servers} 0 --to b"},
	{command: "shard revert", args: "{servers} 0"},
	{command: "shard move", args: "{servers} 0 --to b"},
	{command: "shard pause", args: "{servers} 0", code: 1, silent: true}, // it has moved
	{command: "shard resume", args: "{servers} 0", code: 1, silent: true},
	{command: "shard finish", args: "{servers} 0 --yes"},
	{command: "shard abort", args: "{servers} 0", silent: true}, // there is no move
	{command: "shard metrics", args: "{servers}", refused: "--json: metrics are in the text format of Prometheus"},
	{command: "shard rebalance", args: "{servers} --dry-run"},
	{command: "shard add-server", args: "{servers} c={c}"},
	{command: "shard remove-server", args: "{servers} --server c={c} c"},
	{command: "shard reopen", args: "{servers} a --yes"},
}

// Every command prints JSON with --json, or refuses it and says why. What it says besides is JSON in any case.
func TestJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "some.yaml", "series: { photo: { kind: flake } }\n")
	store := filepath.Join(dir, "ids.db")
	if err := os.Mkdir(filepath.Join(dir, "sql"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "sql"), "001.sql", "CREATE TABLE photos (id bigint PRIMARY KEY)")
	server := testserver.Shared(t, movesServer)
	fill := strings.NewReplacer("{dir}", dir, "{id}", "250041753275469782", "{c}", database(t, server, "c"),
		"{servers}", "--server a="+database(t, server, "a")+" --server b="+database(t, server, "b"))
	for _, c := range jsonCalls {
		c.check(t, dir, store, fill)
	}
}

func (c *jsonCall) check(t *testing.T, dir, store string, fill *strings.Replacer) {
	t.Helper()
	args := slices.Concat(strings.Fields(c.command), []string{"--json"}, words(fill.Replace(c.args)))
	p := command(t, store, args...)
	p.Dir = dir
	p.Stdin = strings.NewReader(fill.Replace(c.in))
	var out bytes.Buffer
	p.Stdout = &out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	code := p.code(t)
	want := c.code
	if c.refused != "" {
		want = 2
	}
	if code != want {
		t.Errorf("firn %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, &out, &p.errs)
	}
	if err := jsonOnly(out.Bytes()); err != nil {
		t.Errorf("firn %s: standard output: %v", strings.Join(args, " "), err)
	}
	if err := jsonOnly(p.errs.Bytes()); err != nil {
		t.Errorf("firn %s: standard error: %v", strings.Join(args, " "), err)
	}
	if empty := out.Len() == 0; c.refused == "" && empty != c.silent && want == 0 {
		t.Errorf("firn %s printed nothing", strings.Join(args, " "))
	}
	if c.refused != "" && !strings.Contains(p.errs.String(), c.refused) {
		t.Errorf("firn %s: %s, want %s", strings.Join(args, " "), &p.errs, c.refused)
	}
}

// words are the words of a line of a shell, with ' around some.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// jsonOnly reports that a text is not JSON values, one after the other.
func jsonOnly(text []byte) error {
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("%w: %.300q", err, text)
		}
	}
}

// TestJSONIsWhole: no command is forgotten in jsonCalls.
func TestJSONIsWhole(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "firn ")
		if !c.HasSubCommands() && !slices.ContainsFunc(jsonCalls, func(j jsonCall) bool { return j.command == name }) {
			t.Errorf("jsonCalls has no %s", name)
		}
		for _, s := range c.Commands() {
			walk(s)
		}
	}
	walk(newRoot())
}
