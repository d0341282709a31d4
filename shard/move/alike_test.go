package move

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// stuckCopy begins a move of shard 1 whose copy of users never comes to its end, and leaves it.
func stuckCopy(t *testing.T) (a, b *site) {
	t.Helper()
	a, b = shops(t, 2)
	a.must(t, "INSERT INTO insta1.users VALUES (3, 'cannot come')")
	if !runChild(t, a, b, "move", "after", `firn\.publish`) {
		t.Fatal("it was not published")
	}
	settled(t, a, b)
	b.must(t, "SET session_replication_role = replica; INSERT INTO insta1.users SELECT id, 'in the way' FROM generate_series(1, 5) AS id; RESET session_replication_role")
	return a, b
}

// TestAlteredMove: somebody changes a table on one of the servers, before a move is continued or while it copies. The
// move says so, though it would wait for an hour, and the shard stays where it is.
func TestAlteredMove(t *testing.T) {
	for name, alter := range map[string]struct {
		source, first bool
		sql           string
	}{
		"on the source, before":         {true, true, "ALTER TABLE insta1.events ADD COLUMN nick text"},
		"on the source":                 {true, false, "ALTER TABLE insta1.events ADD COLUMN nick text"},
		"on the target, before":         {false, true, "ALTER TABLE insta1.events ADD COLUMN nick text"},
		"on the target":                 {false, false, "ALTER TABLE insta1.users DROP COLUMN name"},
		"a check on the target, before": {false, true, "ALTER TABLE insta1.users ADD CHECK (id < 0) NOT VALID"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !alter.first || name == "on the target, before" {
				testserver.OnlyLong(t)
			}
			a, b := stuckCopy(t)
			altered := b
			if alter.source {
				altered = a
			}
			change := func() { altered.must(t, alter.sql) }
			var begun atomic.Bool
			o := hasty()
			o.Stall = time.Hour
			o.Progress = func(p Progress) {
				if p.Phase == Copying {
					begun.Store(true)
				}
			}
			m := New(a.Server, b.Server, o)
			defer m.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if alter.first {
				change()
			}
			ended := make(chan error, 1)
			go func() {
				_, err := m.Move(ctx, []int64{1})
				ended <- err
			}()
			if !alter.first {
				for !begun.Load() {
					time.Sleep(10 * time.Millisecond)
				}
				change()
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "the two copies of shard 1 are not alike any more") {
				t.Errorf("%v", err)
			}
			if got := ownersOf(a, b)("1"); got != "a" {
				t.Errorf("it is served by %q", got)
			}
			mustEnd(t, m.Abort, 1)
			nothingLeft(t, a, b)
		})
	}
}

// TestStalledWhileWritten: a copy that comes to no end is given up also while programs write to the tables that are
// copied already, whether a table cannot be copied or what was written since cannot be applied. The first is for make full:
// TestStalled has it too, without the programs.
func TestStalledWhileWritten(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T) (a, b *site, spoil func()){
		"a row of the copy is there": func(t *testing.T) (a, b *site, spoil func()) {
			a, b = stuckCopy(t)
			return a, b, func() {}
		},
		"a row of the log is there": func(t *testing.T) (a, b *site, spoil func()) {
			a, b = shops(t, 2)
			if !runChild(t, a, b, "move", "after", `firn\.publish`) {
				t.Fatal("it was not published")
			}
			settled(t, a, b)
			holder := dial(t, b.Server.Config.ConnString())
			mustExec(t, holder, "BEGIN; LOCK TABLE insta1.users IN SHARE MODE")
			return a, b, func() {
				b.eventually(t, "SELECT count(*)::text FROM pg_subscription_rel WHERE srrelid::regclass::text ~ '^insta1.events_' AND srsubstate = 'r'", "1")
				b.must(t, "SET session_replication_role = replica; INSERT INTO insta1.events VALUES (7, 1)")
				a.must(t, "INSERT INTO insta1.events VALUES (7, 1)")
				mustExec(t, holder, "COMMIT")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a row of the copy is there" {
				testserver.OnlyLong(t)
			}
			t.Parallel()
			a, b, spoil := begin(t)
			writes, stop := context.WithCancel(t.Context())
			defer stop()
			c := dial(t, a.Server.Config.ConnString())
			var writer sync.WaitGroup
			t.Cleanup(writer.Wait)
			t.Cleanup(stop) // before the connection is closed
			writer.Go(func() {
				for writes.Err() == nil {
					c.Exec(writes, "INSERT INTO insta1.events (day) SELECT 1 FROM generate_series(1, 100)")
					time.Sleep(20 * time.Millisecond)
				}
			})
			o := hasty()
			o.Stall = 3 * time.Second
			m := New(a.Server, b.Server, o)
			defer m.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := m.Move(ctx, []int64{1})
				ended <- err
			}()
			spoil()
			if err := <-ended; !errors.As(err, new(*StalledError)) {
				t.Errorf("%v", err)
			}
			stop()
			mustEnd(t, m.Abort, 1)
			nothingLeft(t, a, b)
		})
	}
}

// TestInvalidIndex: an index that is being built CONCURRENTLY, or whose building failed, is not copied, and
// stands in no move's way.
func TestInvalidIndex(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	a.must(t, "INSERT INTO insta1.users VALUES (41, 'twice'), (42, 'twice')")
	c := dial(t, a.Server.Config.ConnString())
	if _, err := c.Exec(t.Context(), "CREATE UNIQUE INDEX CONCURRENTLY failed ON insta1.users (name)"); err == nil {
		t.Fatal("an index of equal names is unique")
	}
	m := New(a.Server, b.Server, hasty())
	defer m.Close()
	if _, err := m.Move(t.Context(), []int64{1}); err != nil {
		t.Fatal(err)
	}
	mustEnd(t, m.Finish, 1)
}
