//go:build !windows

package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// This file starts commands about one shard at once.

// TestShardsMoveTwiceAtOnce: two moves of one shard to two servers begin at once. One of them gets
// there, and the other one names its target.
func TestShardsMoveTwiceAtOnce(t *testing.T) {
	t.Parallel()
	postgres, rounds := testserver.Shared(t, movesServer), 1
	if testserver.Long() {
		rounds = 2
	}
	a, b, c := database(t, postgres, "a"), database(t, postgres, "b"), database(t, postgres, "c")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b, "--server", "c=" + c}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 6 --yes")...)
	onDatabase(t, a, "CREATE TABLE insta0.t (id bigint PRIMARY KEY DEFAULT insta0.next_id(), x text); INSERT INTO insta0.t (x) SELECT repeat('x', 100) FROM generate_series(1, 20000)")
	for range rounds {
		var movers []*process
		for _, to := range []string{"b", "c"} {
			p := command(t, "none", with("move 0 --to "+to)...)
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			movers = append(movers, p)
		}
		codes := []int{movers[0].code(t), movers[1].code(t)}
		won := 0
		if codes[0] != 0 {
			won = 1
		}
		winner := []string{"b", "c"}[won]
		if codes[won] != 0 || codes[1-won] == 0 || !strings.Contains(movers[1-won].errs.String(), "from a to "+winner) {
			t.Fatalf("exit codes %d\nto b: %s\nto c: %s", codes, &movers[0].errs, &movers[1].errs)
		}
		if n := one[int64](t, []string{b, c}[won], "SELECT count(*) FROM insta0.t"); n != 20000 {
			t.Errorf("%s has %d rows", winner, n)
		}
		succeed(t, with("revert 0")...)
		succeed(t, with("abort 0")...)
	}
	if term := one[int64](t, a, "SELECT term FROM firn.shard WHERE shard = 0"); term > 20 {
		t.Errorf("the term is %d: they undid each other", term)
	}
}

// TestShardsAbortBesideMove: a move is given up while its mover is at work. The mover does not begin
// it again.
func TestShardsAbortBesideMove(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 4 --yes")...)
	holder, err := pgx.Connect(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	if _, err := holder.Exec(t.Context(), "CREATE TABLE insta1.t (id bigint PRIMARY KEY); BEGIN; INSERT INTO insta1.t VALUES (1)", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	p := waitingMove(t, a, with("move 1 --to b"))
	if out := succeed(t, with("abort 1")...); out != "1 move aborted\n" {
		t.Error(out)
	}
	if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 1 || !strings.Contains(p.errs.String(), "the move of shard 1 was ended by another command") {
		t.Errorf("exit code %d\n%s", code, &p.errs)
	}
	if got := one[string](t, a, "SELECT state FROM firn.shard WHERE shard = 1"); got != "open" {
		t.Errorf("it was given up, and is %s on a", got)
	}
	succeed(t, with("abort 1")...) // of what the mover made before it saw that
	if n := one[int64](t, b, "SELECT count(*) FROM pg_namespace WHERE nspname = 'insta1'"); n != 0 {
		t.Error("b has the copy still")
	}
}

// TestShardsRevertBesideFinish: a shard that has moved is taken back and finished at once. One of the
// commands gets there, the other one says why it does not, and the server that serves the shard has
// all rows.
func TestShardsRevertBesideFinish(t *testing.T) {
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	addresses := map[string]string{"a": database(t, postgres, "a"), "b": database(t, postgres, "b")}
	flags := []string{"--server", "a=" + addresses["a"], "--server", "b=" + addresses["b"]}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 4 --yes")...)
	onDatabase(t, addresses["a"], "CREATE TABLE insta0.t (id bigint PRIMARY KEY DEFAULT insta0.next_id(), x text); INSERT INTO insta0.t (x) SELECT repeat('x', 100) FROM generate_series(1, 2000)")
	rows, won := int64(2000), map[string]int{}
	at, other, rounds := "a", "b", 1
	if testserver.Long() {
		rounds = 10
	}
	for round := range rounds {
		succeed(t, with("move 0 --to "+other)...)
		onDatabase(t, addresses[other], "INSERT INTO insta0.t (x) VALUES ('y')")
		rows++
		var both []*process
		commands := []string{"revert 0", "finish 0 --yes"}
		if round%3 == 2 {
			slices.Reverse(commands)
		}
		for i, words := range commands {
			if i > 0 && round%3 != 2 { // revert takes longer
				time.Sleep(time.Duration(round) * 10 * time.Millisecond)
			}
			p := command(t, "none", with(words)...)
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			both = append(both, p)
		}
		codes := []int{both[0].code(t), both[1].code(t)}
		first := slices.Index(codes, 0)
		if first < 0 || codes[1-first] == 0 {
			t.Fatalf("round %d: exit codes %d\n%s: %s\n%s: %s", round, codes, commands[0], &both[0].errs, commands[1], &both[1].errs)
		}
		said := both[1-first].errs.String()
		if !strings.Contains(said, "firn: error: ") || !strings.Contains(said, "firn: hint: ") {
			t.Errorf("round %d: %s does not say why, and what to do: %s", round, commands[1-first], said)
		}
		t.Logf("round %d: %s wins; %s", round, commands[first], said)
		won[commands[first]]++
		if commands[first] == "revert 0" {
			succeed(t, with("abort 0")...)
		} else {
			at, other = other, at
		}
		if n := one[int64](t, addresses[at], "SELECT count(*) FROM insta0.t"); n != rows {
			t.Fatalf("round %d: %s has %d rows of %d", round, at, n, rows)
		}
		onDatabase(t, addresses[at], "INSERT INTO insta0.t (x) VALUES ('z')")
		rows++
		if out, _, code := called(t, with("status")...); code != 0 || strings.Contains(out, "MOVING") {
			t.Fatalf("round %d: status says %s", round, out)
		}
	}
	t.Log(won)
}
