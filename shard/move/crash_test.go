package move

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// TestRestarted kills the source and the target at moments of a move, and starts them
// again: the mover waits for them and continues, and nothing that was acknowledged is lost. The
// moments at which the shard changes hands are in the short form; make full has two more.
func TestRestarted(t *testing.T) {
	t.Parallel()
	source, target := sourceServer(t), targetServer(t)
	a, b := pairOn(t, source, target, 2)
	a.must(t, fmt.Sprintf(shop, 1))
	w := write(t, 1, a, b)
	w.crashes = true
	w.some(t, 10)
	kill := func(s *testserver.Server) func() {
		return func() {
			s.Kill(t)
			s.Start(t)
		}
	}
	o := hasty()
	o.Patience = time.Minute
	for _, tt := range []struct {
		at      string
		a, b    hook
		reverts bool
		long    bool
	}{
		{"the source is restarted with the copy there", hook{before: once(`firn\.empty_publication|firn\.check_schema`, kill(source))}, hook{}, false, true},
		{"the target is restarted", hook{}, hook{after: once(`firn\.lock_tables`, kill(target))}, true, true},
		{"the source is restarted as it lets go", hook{after: once(`firn\.let_go`, kill(source))}, hook{}, false, false},
		{"the target is restarted as it takes", hook{}, hook{before: once(`firn\.take\([^)]*\); COMMIT`, kill(target))}, true, false},
	} {
		if tt.long && !testserver.Long() {
			continue
		}
		m := New(hooked(a.Server, tt.a), hooked(b.Server, tt.b), o)
		way := m.Move
		if tt.reverts {
			way = m.Revert
		}
		if _, err := way(t.Context(), []int64{1}); err != nil {
			t.Fatalf("%s: %v", tt.at, err)
		}
		m.Close()
		w.some(t, 10)
		t.Log(tt.at)
	}
	for _, s := range []*site{a, b} {
		s.Conn = dial(t, s.Server.Config.ConnString())
	}
	if got := ownersOf(a, b)("1"); got != "a" {
		t.Errorf("it is served by %q", got)
	}
	w.stop(t, a, 1)
}

// TestPromoted has the source lost just after it let a shard go, and its standby promoted,
// which does not know that. Where the source's word has reached the target, the target
// opens. Where it has not, nobody does, until the standby is opened by hand; and then the
// target cannot any more: that is for make full, and TestReopenedAfterTheWord has it of a source
// that lives on.
func TestPromoted(t *testing.T) {
	t.Parallel()
	for _, arrives := range []bool{true, false} {
		t.Run(fmt.Sprintf("the word has arrived: %v", arrives), func(t *testing.T) {
			if !arrives {
				testserver.OnlyLong(t)
			}
			t.Parallel()
			source, target := sourceServer(t), testserver.Shared(t, targetServer)
			a, b := pairOn(t, source, target, 2)
			a.must(t, fmt.Sprintf(shop, 1))
			standby := testserver.PostgresStandby(t, source, "wal_level=logical", "max_replication_slots=20", "max_wal_senders=20", "max_worker_processes=30", "max_prepared_transactions=4")
			way := testserver.NewProxy(t, source.Addr())
			o := hasty()
			o.Patience = time.Second
			o.Addresses = map[string]string{"a": fmt.Sprintf("postgres://t@%s/%s?sslmode=disable", way.Addr(), a.Server.Config.Database)}
			m := New(hooked(a.Server, hook{
				before: once(`firn\.let_go`, func() {
					a.eventually(t, "SELECT count(*)::text FROM pg_stat_replication AS r LEFT JOIN pg_replication_slots AS s ON s.active_pid = r.pid WHERE s.slot_name IS NULL AND r.replay_lsn >= (SELECT pg_current_wal_lsn())", "1")
					for _, link := range []*testserver.Proxy{standby.Link, way} {
						if link != way || !arrives {
							link.Refuse(true)
							link.Cut()
						}
					}
				}),
				after: once(`firn\.let_go`, runtime.Goexit),
			}), b.Server, o)
			m.source.try = cutTime // the first try has to do
			letGo(t, m.Move)
			a.eventually(t, "SELECT state FROM firn.shard WHERE shard = 1", "moved")
			if arrives {
				b.eventually(t, "SELECT count(*)::text FROM insta1.firn_mark WHERE floor IS NOT NULL", "1")
			}
			source.Kill(t)
			standby.Promote(t)
			url := fmt.Sprintf("postgres://t@%s/%s?sslmode=disable", standby.Addr(), a.Server.Config.Database)
			now := &site{serverAt("a", url), dial(t, url)}
			refusedOn(t, now, "ID003", "SELECT insta1.next_id()")
			m = New(now.Server, b.Server, o)
			defer m.Close()
			_, err := m.Move(t.Context(), []int64{1})
			if arrives {
				if err != nil || ownersOf(now, b)("1") != "b" {
					t.Errorf("the target does not open: %v", err)
				}
				refusedOn(t, now, "ID002", "SELECT insta1.next_id()")
				return
			}
			if !errors.As(err, new(*BusyError)) || ownersOf(now, b)("1") != "" {
				t.Fatalf("nobody knows where it is: %v", err)
			}
			claim := b.one(t, "SELECT format('SELECT firn.take(1, %s, %L)', term, attempt) FROM firn.shard WHERE shard = 1")
			// The log says that b has received nothing that the standby lacks: no row is compared.
			plan := planReopen(t, now, b, func(n int64) bool { return n == 1 })
			plan.Compare = nil
			if err := plan.Check(t.Context(), now.Conn, map[string]*pgx.Conn{"b": b.Conn}); err != nil {
				t.Error(err)
			}
			reopen(t, now, b, 1)
			if got := ownersOf(now, b)("1"); got != "a" {
				t.Errorf("it is served by %q", got)
			}
			now.one(t, "INSERT INTO insta1.users (name) VALUES ('x') RETURNING id::text")
			// Were the word to come now, it would come too late.
			refusedOn(t, b, "ID007", claim)
		})
	}
}

// forgotten makes a server's row of a shard that of a copy, as a promotion does.
const forgotten = "UPDATE firn.shard SET timeline = 'FFFFFFFF' WHERE shard = 1"

// TestPromotedTarget has the source's word come to a target whose standby is promoted
// before it opens, and may lack rows that came before the word: the source has them all.
// The target is told so. What it has is in the way of a move there, whose end keeps it: finish
// compares it and drops it.
func TestPromotedTarget(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	letGo(t, New(hooked(a.Server, hook{after: diesWhenLetGo(a)}), b.Server, hasty()).Move)
	b.eventually(t, "SELECT count(*)::text FROM insta1.firn_mark WHERE floor IS NOT NULL", "1")
	a.eventually(t, "SELECT state FROM firn.shard WHERE shard = 1", "moved") // the word is sent a moment before
	b.must(t, forgotten)
	if err := tryReopen(t, b, a, 1); sqlstate(err) != "ID003" {
		t.Errorf("the target is opened: %v", err)
	}
	reopen(t, a, b, 1)
	if got := ownersOf(a, b)("1"); got != "a" {
		t.Errorf("it is served by %q", got)
	}
	if _, err := mover(t, a, b).Move(t.Context(), []int64{1}); sqlstate(err) != "ID003" {
		t.Errorf("moved to what does not know what it is: %v", err)
	}
	mustEnd(t, mover(t, a, b).Abort, 1)
	if err := planReopen(t, b, a, nil).Tell(t.Context(), b.Conn); err != nil {
		t.Fatal(err)
	}
	var way *InWayError
	if _, err := mover(t, a, b).Move(t.Context(), []int64{1}); !errors.As(err, &way) || !strings.Contains(way.Do, "firn shard finish 1") {
		t.Errorf("moved to where a copy is of before: %v", err)
	}
	mustEnd(t, mover(t, a, b).Abort, 1)
	servers := []topology.Server{a.Server, b.Server}
	old, err := OldCopies(t.Context(), servers, func(int64) bool { return true })
	if err != nil || len(old) != 1 {
		t.Fatal(old, err)
	}
	if err := errors.Join(old[0].Check(t.Context(), servers, ""), old[0].Drop(t.Context(), servers, "")); err != nil {
		t.Fatal(err)
	}
	mustMove(t, mover(t, a, b).Move, 1)
	if got := ownersOf(a, b)("1"); got != "b" {
		t.Errorf("it is served by %q", got)
	}
}

// TestRestoredOrigin has a shard on its way back to a server that comes back from before
// the move: what was written since is on the other one, which let it go.
func TestRestoredOrigin(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	m := New(a.Server, b.Server, hasty())
	defer m.Close()
	if _, err := m.Move(t.Context(), []int64{1}); err != nil {
		t.Fatal(err)
	}
	letGo(t, New(a.Server, hooked(b.Server, hook{after: diesWhenLetGo(b)}), hasty()).Revert)
	b.eventually(t, "SELECT state FROM firn.shard WHERE shard = 1", "moved")
	a.must(t, forgotten+"; UPDATE firn.shard SET state = 'open', moved_to = NULL, term = 1, attempt = NULL WHERE shard = 1")
	if err := tryReopen(t, a, b, 1); sqlstate(err) != "ID007" {
		t.Errorf("the server of before is opened: %v", err)
	}
	reopen(t, b, a, 1)
	if got := ownersOf(a, b)("1"); got != "b" {
		t.Errorf("it is served by %q", got)
	}
}

// letGo runs a mover that ends as soon as the shard was let go.
func letGo(t *testing.T, move func(context.Context, []int64) ([]Moved, error)) {
	t.Helper()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		move(t.Context(), []int64{1})
	}()
	<-ended
}

// diesWhenLetGo ends a mover after the message with which a server let shard 1 go. A try that
// came to nothing, as they do on a busy machine, ends nobody.
func diesWhenLetGo(s *site) func(string) {
	return func(message string) {
		if !strings.Contains(message, "firn.let_go") {
			return
		}
		for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			var state string
			err := s.QueryRow(context.Background(), "SELECT state FROM firn.shard WHERE shard = 1", pgx.QueryExecModeExec).Scan(&state)
			if err == nil && state == "moved" {
				runtime.Goexit()
			}
		}
	}
}

// reopen opens a shard on a server as "firn shard reopen" does.
func reopen(t *testing.T, s, other *site, n int64) {
	t.Helper()
	if err := tryReopen(t, s, other, n); err != nil {
		t.Fatal(err)
	}
}

func tryReopen(t *testing.T, s, other *site, n int64) error {
	t.Helper()
	plan := planReopen(t, s, other, func(x int64) bool { return x == n })
	if len(plan.Shards) != 1 {
		t.Fatalf("%+v", plan)
	}
	return plan.Reopen(t.Context(), s.Conn, map[string]*pgx.Conn{other.Name: other.Conn}, plan.Shards[0], 0)
}

func planReopen(t *testing.T, s, other *site, asked func(int64) bool) *setup.Reopening {
	t.Helper()
	views := make(map[string]*topology.View)
	for _, x := range []*site{s, other} {
		v, err := topology.Look(t.Context(), x.Conn)
		if err != nil {
			t.Fatal(err)
		}
		views[x.Name] = v
	}
	plan, err := setup.PlanReopen(s.Name, views, nil, nil, asked)
	if err != nil {
		t.Fatal(err)
	}
	plan.Compare = Compare
	return plan
}

// TestReopenedAfterTheWord has the target's stream cut for good after the source let go:
// the source is opened again, and the target cannot open.
func TestReopenedAfterTheWord(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	m := New(hooked(a.Server, hook{
		before: once(`firn\.let_go`, func() {
			b.must(t, "DO $$ DECLARE s name := (SELECT subname FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())); BEGIN EXECUTE format('ALTER SUBSCRIPTION %I DISABLE', s); END $$")
			b.eventually(t, "SELECT count(*)::text FROM pg_stat_subscription AS x JOIN pg_subscription AS s ON s.oid = x.subid WHERE x.pid IS NOT NULL AND s.subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())", "0")
		}),
		after: once(`firn\.let_go`, runtime.Goexit),
	}), b.Server, hasty())
	m.source.try = cutTime // the first try has to do
	letGo(t, m.Move)
	a.eventually(t, "SELECT state FROM firn.shard WHERE shard = 1", "moved")
	claim := b.one(t, "SELECT format('SELECT firn.take(1, %s, %L)', term, attempt) FROM firn.shard WHERE shard = 1")
	reopen(t, a, b, 1)
	a.one(t, "INSERT INTO insta1.users (name) VALUES ('x') RETURNING id::text")
	b.must(t, "DO $$ DECLARE s name := (SELECT subname FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())); BEGIN EXECUTE format('ALTER SUBSCRIPTION %I ENABLE', s); END $$")
	b.eventually(t, "SELECT count(*)::text FROM insta1.firn_mark WHERE floor IS NOT NULL", "1")
	refusedOn(t, b, "ID007", claim)
	refusedOn(t, b, "ID002", "INSERT INTO insta1.users (name) VALUES ('x')")
	if got := ownersOf(a, b)("1"); got != "a" {
		t.Errorf("it is served by %q", got)
	}
}

// TestStandbyBehind finishes a move while the target's standby is behind: the old copy
// stays.
func TestStandbyBehind(t *testing.T) {
	t.Parallel()
	source, target := testserver.Shared(t, sourceServer), targetServer(t)
	a, b := pairOn(t, source, target, 2)
	a.must(t, fmt.Sprintf(shop, 1))
	standby := testserver.PostgresStandby(t, target, "max_wal_senders=20", "max_worker_processes=30", "max_prepared_transactions=4")
	b.eventually(t, "SELECT count(*)::text FROM pg_stat_replication WHERE state = 'streaming'", "1")
	standby.Link.Hang(true)
	o := hasty()
	o.Patience = 2 * time.Second
	m := New(a.Server, b.Server, o)
	defer m.Close()
	mustMove(t, m.Move, 1)
	if _, err := m.Finish(t.Context(), []int64{1}); !errors.As(err, new(*StandbyError)) {
		t.Errorf("with a standby that is behind: %v", err)
	}
	if a.one(t, "SELECT count(*)::text FROM insta1.users") != "500" {
		t.Error("the old copy is gone")
	}
	standby.Link.Hang(false)
	m.options.Patience = time.Minute
	mustEnd(t, m.Finish, 1)
	nothingLeft(t, a, b)
}

// TestOwnerPutBack: the server that has a shard is put back to a state before it gave the
// shard away and got it back. The copy on the other server is the only one that has what was
// written there: neither abort, nor finish, nor a clean-up drops it.
func TestOwnerPutBack(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	before := a.one(t, "SELECT term::text FROM firn.shard WHERE shard = 1")
	m := mover(t, a, b)
	mustMove(t, m.Move, 1)
	b.must(t, "INSERT INTO insta1.users (name) VALUES ('on b alone')")
	mustMove(t, m.Revert, 1)
	a.must(t, "UPDATE firn.shard SET term = "+before+", attempt = NULL WHERE shard = 1; DELETE FROM firn.move WHERE shard = 1")
	b.must(t, "UPDATE firn.move SET began = began - interval '1 hour'")
	servers := []topology.Server{a.Server, b.Server}
	clean := func(ctx context.Context, _ []int64) ([]int64, error) {
		left, err := Leftovers(ctx, servers)
		if err != nil {
			return nil, err
		}
		return nil, Clean(ctx, servers, left, func(Leftover) {})
	}
	for name, end := range map[string]func(context.Context, []int64) ([]int64, error){"abort": m.Abort, "finish": m.Finish, "clean": clean} {
		if _, err := end(t.Context(), []int64{1}); !errors.As(err, new(*StuckError)) {
			t.Errorf("%s: %v", name, err)
		}
		if got := b.one(t, "SELECT count(*)::text FROM insta1.users WHERE name = 'on b alone'"); got != "1" {
			t.Fatalf("%s dropped what only b has", name)
		}
	}
}
