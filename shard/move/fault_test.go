package move

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/topology"
)

// TestTwoMovers has two movers at work on the same shards at once.
func TestTwoMovers(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 3)
	w := write(t, 1, a, b)
	errs := make(chan error, 2)
	for range 2 {
		m := New(a.Server, b.Server, hasty())
		t.Cleanup(m.Close)
		go func() {
			_, err := m.Move(context.WithoutCancel(t.Context()), []int64{0, 1})
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Log(err)
			if code := sqlstate(err); code != "ID007" && code != "ID008" && !errors.As(err, new(*StuckError)) {
				t.Errorf("a mover that was overtaken ends with %v", err)
			}
		}
	}
	m := mover(t, a, b)
	mustMove(t, m.Move, 0, 1)
	if got := ownersOf(a, b)("1"); got != "b" {
		t.Errorf("it is served by %q", got)
	}
	w.some(t, 10)
	mustEnd(t, m.Finish, 0) // one of the two, while the other one goes on
	w.some(t, 10)
	mustMove(t, m.Revert, 1)
	w.some(t, 10)
	mustEnd(t, m.Abort, 1)
	w.stop(t, a, 1)
	nothingLeft(t, a, b)
	if got := ownersOf(a, b)("0"); got != "b" {
		t.Errorf("the other one is served by %q", got)
	}
}

// TestChanged changes the schema of a shard while it moves: it does not change over, and
// serves on.
func TestChanged(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	for _, sql := range []string{
		"ALTER TABLE insta1.users ADD COLUMN late integer",
		"CREATE TABLE insta1.late (id bigint PRIMARY KEY)",
		"CREATE TABLE insta1.events_3 PARTITION OF insta1.events FOR VALUES FROM (100) TO (200)",
	} {
		m := New(at(a, "before", seizes, func() { a.must(t, sql) }), b.Server, hasty())
		_, err := m.Move(t.Context(), []int64{1})
		m.Close()
		if sqlstate(err) != "ID008" {
			t.Errorf("%s: %v", sql, err)
		}
		a.one(t, "INSERT INTO insta1.users (name) VALUES ('x') RETURNING id::text")
		refusedOn(t, b, "ID002", "INSERT INTO insta1.users (name) VALUES ('x')")
		mustEnd(t, mover(t, a, b).Abort, 1)
	}
	mustMove(t, mover(t, a, b).Move, 1)
	b.one(t, "INSERT INTO insta1.users (name, late) VALUES ('x', 1) RETURNING id::text")

	b.must(t, "ALTER TABLE insta1.users ADD later integer")
	m := mover(t, a, b)
	var backless *NoWayBackError
	if _, err := m.Revert(t.Context(), []int64{1}); !errors.As(err, &backless) || backless.Shard != 1 || backless.Server != "a" {
		t.Errorf("%v", err)
	}
	b.one(t, "INSERT INTO insta1.users (name, later) VALUES ('y', 1) RETURNING id::text")
}

// TestHeld has somebody hold a shard: it does not change over, it says who it is, and
// nobody waits for long. What the mover tried is undone. make full has a shard held while it is copied too, which
// a mover waits for as long as for any copy that comes no farther.
func TestHeld(t *testing.T) {
	a, b := shops(t, 2)
	holder := dial(t, a.Server.Config.ConnString())
	hold := func() {
		mustExec(t, holder, "SET application_name = 'nightly'; BEGIN; UPDATE insta1.users SET n = 5 WHERE number = 1")
	}
	o := hasty()
	o.LockWait = 500 * time.Millisecond
	held := func(server topology.Server) {
		t.Helper()
		m := New(server, b.Server, o)
		defer m.Close()
		_, err := m.Move(t.Context(), []int64{1})
		var by *HoldersError
		if !errors.As(err, &by) || len(by.Holders) != 1 || !strings.Contains(err.Error(), "nightly") {
			t.Errorf("held: %v", err)
		}
	}
	hold()
	held(a.Server) // the slot waits for it
	mustExec(t, holder, "COMMIT")
	if testserver.Long() {
		held(at(a, "before", `firn\.check_schema`, hold))
		mustExec(t, holder, "COMMIT")
	}
	held(at(a, "before", `firn\.prepare_session`, hold)) // the copy is there, and it is to change over
	a.one(t, "INSERT INTO insta1.users (name) VALUES ('x') RETURNING id::text")
	// Who comes between the look and the lock.
	mustExec(t, holder, "COMMIT")
	tries := 0
	late := hooked(a.Server, hook{before: func(message string) {
		if strings.Contains(message, "firn.let_go") {
			if tries++; tries == 1 {
				mustExec(t, holder, "BEGIN; UPDATE insta1.events SET day = day WHERE day = 1")
			}
		}
		if tries == 1 && strings.Contains(message, "firn.cancel_cutover") {
			mustExec(t, holder, "COMMIT")
		}
	}})
	m := New(late, b.Server, hasty())
	defer m.Close()
	mustMove(t, m.Move, 1)
	if tries < 2 {
		t.Errorf("it changed over at try %d, while somebody wrote", tries)
	}
	b.one(t, "INSERT INTO insta1.users (name) VALUES ('x') RETURNING id::text")
}

// TestSourceDiesAfterATry: the source dies just after it has let nothing go, because somebody
// held the shard. The move ends with an error, and goes on when the source is back.
func TestSourceDiesAfterATry(t *testing.T) {
	a, b := shops(t, 2)
	holder := dial(t, a.Server.Config.ConnString())
	var held, died, dead atomic.Bool
	source := hooked(a.Server, hook{
		before: once(`firn\.let_go`, func() {
			mustExec(t, holder, "BEGIN; UPDATE insta1.events SET day = day WHERE day = 1")
			held.Store(true)
		}),
		loses: func(message string) bool {
			dies := held.Load() && strings.Contains(message, "ROLLBACK") && !died.Swap(true)
			if dies {
				dead.Store(true)
			}
			return dies
		},
	})
	dial := source.Config.DialFunc
	source.Config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dead.Load() {
			return nil, net.ErrClosed
		}
		return dial(ctx, network, addr)
	}
	o := hasty()
	o.Patience = 500 * time.Millisecond
	m := New(source, b.Server, o)
	defer m.Close()
	if _, err := m.Move(t.Context(), []int64{1}); !dead.Load() || !errors.As(err, new(*topology.ServerError)) {
		t.Fatalf("the source died: %v", err)
	}
	mustExec(t, holder, "COMMIT")
	dead.Store(false)
	mustMove(t, m.Move, 1)
}

// TestSeized: from the instant on at which a shard is seized nobody writes to it or changes
// its schema, on neither server, and no other mover comes in between; what is compared
// after that stays so. Who reads goes on.
func TestSeized(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	refused := func(s *site, sql string) {
		t.Helper()
		_, err := s.Exec(t.Context(), "BEGIN; SET LOCAL lock_timeout = '20ms'; "+sql+"; COMMIT", pgx.QueryExecModeSimpleProtocol)
		if sqlstate(err) != "55P03" {
			t.Errorf("on %s, while it is seized, %s: %v", s.Name, sql, err)
		}
		s.must(t, "ROLLBACK")
	}
	looked := 0
	// On the source another session does what the mover does in the message that ends with let_go.
	source := once(seizes, func() {
		mover := dial(t, a.Server.Config.ConnString())
		mustExec(t, mover, "BEGIN; SELECT firn.lock_tables(shard, term, attempt) FROM firn.shard WHERE shard = 1")
		for _, sql := range []string{
			"INSERT INTO insta1.users (name) VALUES ('x')", "UPDATE insta1.events SET day = day", "TRUNCATE insta1.events_1",
			"ALTER TABLE insta1.events_1 ADD CHECK (day > 0) NOT VALID", "CREATE INDEX ON insta1.users (name)", "SELECT nextval('insta1.users_number_seq')",
			"SELECT firn.begin_move(shard, term + 1, 'late', batch, 'b', false) FROM firn.shard JOIN firn.move USING (shard) WHERE shard = 1",
		} {
			refused(a, sql)
		}
		a.one(t, "SELECT count(*)::text FROM insta1.users")
		mustExec(t, mover, "ROLLBACK")
		looked++
	})
	target := once(`firn\.let_go`, func() {
		looked++
		for _, sql := range []string{
			"CREATE INDEX ON insta1.users (name)", "ALTER TABLE insta1.events_1 ADD CHECK (day > 0) NOT VALID",
			"SELECT firn.claim(shard, schema, term + 1, 'late', batch, 'a', 'b', true) FROM firn.shard JOIN firn.move USING (shard) WHERE shard = 1",
		} {
			refused(b, sql)
		}
	})
	m := New(hooked(a.Server, hook{before: func(message string) { source(message); target(message) }}), b.Server, hasty())
	defer m.Close()
	mustMove(t, m.Move, 1)
	if looked != 2 {
		t.Errorf("%d of 2 servers were looked at", looked)
	}
}

// TestHeldUp holds a mover up when the source has let the shard go and the target's row is
// locked: another one opens it within seconds. What the first one does when it goes on
// changes nothing.
func TestHeldUp(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	w := write(t, 1, a, b)
	held, goOn := make(chan struct{}), make(chan struct{})
	first := New(a.Server, at(b, "before", `firn\.take.*COMMIT`, func() { close(held); <-goOn }), hasty())
	defer first.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := first.Move(t.Context(), []int64{1})
		ended <- err
	}()
	<-held
	begun := time.Now()
	second := New(a.Server, b.Server, hasty())
	defer second.Close()
	mustMove(t, second.Move, 1)
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it was opened after %s", took)
	}
	w.some(t, 20)
	owners := ownership(t, a, b)
	close(goOn)
	if err := <-ended; err != nil {
		t.Errorf("the first, when it went on: %v", err)
	}
	if now := ownership(t, a, b); now != owners {
		t.Errorf("%s is now %s", owners, now)
	}
	w.some(t, 20)
	mustEnd(t, second.Finish, 1)
	nothingLeft(t, a, b)
	w.stop(t, b, 1)
}

// TestGeneratorIsEnded has the source's transaction fail after its generators were ended,
// which no rollback takes back: they go on above what they gave.
func TestGeneratorIsEnded(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	last := ""
	failing := hooked(a.Server, hook{before: once(`firn\.let_go`, func() {
		// The mark cannot be written: it is there.
		last = a.one(t, "SELECT insta1.next_id()::text")
		a.must(t, "INSERT INTO insta1.firn_mark (term, attempt) SELECT term, 'x' FROM firn.shard WHERE shard = 1")
	})})
	m := New(failing, b.Server, hasty())
	_, err := m.Move(t.Context(), []int64{1})
	m.Close()
	if sqlstate(err) != "23505" {
		t.Fatalf("it cannot let go: %v", err)
	}
	if next := a.one(t, "SELECT insta1.next_id()::text"); next <= last {
		t.Errorf("id %s after %s", next, last)
	}
	mustMove(t, mover(t, a, b).Move, 1) // at another term
}

// TestFloor moves a shard whose generator is hours ahead of the target's clock: ids go on
// above all that the source gave, drawn and not written ones too.
func TestFloor(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	a.must(t, "SELECT firn.close(1); SELECT firn.open(1, firn.now_state() + 3600000 * 1024::bigint)")
	last := a.one(t, "SELECT max(x)::text FROM insta1.next_ids(1000) AS x")
	mustMove(t, mover(t, a, b).Move, 1)
	if next := b.one(t, "SELECT insta1.next_id()::text"); next <= last {
		t.Errorf("id %s after %s", next, last)
	}
	if ahead := b.one(t, fmt.Sprintf("SELECT ((firn.decode(%s)).time > clock_timestamp() + interval '50 minutes')::text", last)); ahead != "true" {
		t.Error("the source was not ahead")
	}
}

// TestByHand has an operator close and open the shard, and finish and begin things, in
// between: a mover gives way.
func TestByHand(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	m := New(at(a, "before", `firn\.let_go`, func() { a.must(t, "SELECT firn.close(1)") }), b.Server, hasty())
	_, err := m.Move(t.Context(), []int64{1})
	m.Close()
	if sqlstate(err) != "ID007" {
		t.Errorf("closed: %v", err)
	}
	if _, err := mover(t, a, b).Move(t.Context(), []int64{1}); !errors.As(err, new(*StuckError)) {
		t.Errorf("closed: %v", err)
	}
	a.must(t, "SELECT firn.open(1)")
	mustMove(t, mover(t, a, b).Move, 1)
	// A server that is not of this move.
	if _, err := Jobs(t.Context(), []topology.Server{a.Server, b.Server}, []int64{1}, "a"); !errors.As(err, new(*UnderwayError)) {
		t.Errorf("to a: %v", err)
	}
	if _, err := mover(t, a, b).Finish(t.Context(), []int64{0}); err != nil {
		t.Errorf("finish of what never moved: %v", err)
	}
	if _, err := mover(t, a, b).Abort(t.Context(), []int64{1}); err != nil || ownersOf(a, b)("1") != "b" {
		t.Errorf("abort of what has moved: %v", err)
	}
	mustEnd(t, mover(t, a, b).Finish, 1)
}
