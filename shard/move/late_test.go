package move

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/topology"
)

// A tape has what movers have sent to servers, in order: each as what would arrive late
// if a mover, or the way to a server, was held up for as long as one likes. What is in one
// transaction is one piece.
type tape struct {
	mu     sync.Mutex
	pieces []piece
}

type piece struct {
	server string
	sql    string
}

// changes are in the pieces that change something.
var changes = regexp.MustCompile(`firn\.(begin_move|claim|begin_load|end_load|publish|empty_publication|subscribe|enable_subscription|lock_tables|let_go|take|record_owner|cancel_cutover|end_move|unsubscribe|discard|drop_leftovers|drop_fences)|pg_create_logical|firn_mark`)

// record is a server like another one, whose messages are recorded.
func (r *tape) record(s topology.Server) topology.Server {
	config := s.Config.Copy()
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		var open []string // of the transaction that is under way
		return &hookedConn{c, hook{before: func(message string) {
			if message[0] != 'Q' {
				return
			}
			sql := strings.TrimRight(message[5:], "\x00")
			switch begins, ends := strings.EqualFold(sql, "begin"), strings.EqualFold(sql, "commit") || strings.HasSuffix(sql, "COMMIT"); {
			case begins:
				open = []string{sql}
			case len(open) > 0 && ends:
				r.add(s.Name, strings.Join(append(open, sql), ";\n"))
				open = nil
			case strings.EqualFold(sql, "rollback"):
				open = nil
			case len(open) > 0:
				open = append(open, sql)
			default:
				r.add(s.Name, sql)
			}
		}}}, nil
	}
	return topology.Server{Name: s.Name, Config: config}
}

func (r *tape) add(server, sql string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if changes.MatchString(sql) {
		r.pieces = append(r.pieces, piece{server, sql})
	}
}

// replay has everything arrive again.
func (r *tape) replay(t *testing.T, sites ...*site) (refused int) {
	t.Helper()
	sessions := make(map[string]*pgx.Conn)
	for _, p := range r.pieces {
		for _, s := range sites {
			if s.Name != p.server {
				continue
			}
			c := sessions[s.Name]
			if c == nil || c.IsClosed() {
				c = dial(t, s.Server.Config.ConnString())
				sessions[s.Name] = c
			}
			if _, err := c.PgConn().Exec(t.Context(), p.sql).ReadAll(); err != nil {
				refused++
			}
			if c.IsClosed() {
				continue
			}
			for _, sql := range []string{"ROLLBACK", "DISCARD ALL"} { // the next one finds a session as if it was new
				mustExec(t, c, sql)
			}
		}
	}
	for _, c := range sessions {
		c.Close(t.Context())
	}
	return refused
}

// rowsOf are what servers say of a shard, without the words of movers.
func ownership(t *testing.T, sites ...*site) string {
	t.Helper()
	var all []string
	for _, s := range sites {
		all = append(all, s.Name+" "+s.one(t, `SELECT format('%s %s %s %s', s.state, s.term, s.attempt, s.moved_to) FROM firn.shard AS s WHERE shard = 1`)+
			" "+s.one(t, "SELECT count(*)::text FROM pg_subscription WHERE subenabled AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())")+
			" "+s.one(t, "SELECT count(*)::text FROM pg_publication_rel"))
	}
	return strings.Join(all, "; ")
}

// TestLate has everything that movers have sent arrive again, at every later stage: it
// changes nothing.
func TestLate(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	w := write(t, 1, a, b)
	r := &tape{}
	late := func(stage string) {
		t.Helper()
		before, owners := everything(t, a, b), ownership(t, a, b)
		refused := r.replay(t, a, b)
		if after := ownership(t, a, b); after != owners {
			t.Errorf("%s: %s is now %s", stage, owners, after)
		}
		if left := difference(before, everything(t, a, b)); left != "" {
			t.Errorf("%s: what came late has changed\n%s", stage, left)
		}
		w.some(t, 5)
		t.Logf("%s: of %d pieces %d were refused", stage, len(r.pieces), refused)
	}
	do := func(what string) {
		t.Helper()
		m := New(r.record(a.Server), r.record(b.Server), hasty())
		defer m.Close()
		switch what {
		case "move":
			mustMove(t, m.Move, 1)
		case "revert":
			mustMove(t, m.Revert, 1)
		case "abort":
			mustEnd(t, m.Abort, 1)
		case "finish":
			mustEnd(t, m.Finish, 1)
		}
		late(fmt.Sprintf("after %s", what))
	}
	if !runChild(t, a, b, "move", "after", `firn\.lock_tables`) {
		t.Fatal("it was not killed")
	}
	do("abort")
	for _, what := range some([]string{"move", "revert", "move", "finish"}, "move", "finish") {
		do(what)
	}
	nothingLeft(t, a, b)
	w.stop(t, b, 1)
}

// TestLockedLate: what locks the tables of a shard that is let go comes again when the other server has the shard, and
// follows it. What comes back from there is not sent there again.
func TestLockedLate(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	mustMove(t, mover(t, a, b).Move, 1)
	c := dial(t, a.Server.Config.ConnString())
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, err := c.Exec(t.Context(), "SELECT firn.lock_tables(shard, term, attempt) FROM firn.shard WHERE shard = 1")
		if err == nil {
			break
		}
		if sqlstate(err) != "ID008" || time.Since(begun) > time.Minute { // ID008: the copy on a does not follow yet
			t.Fatal(err)
		}
	}
	if n := a.one(t, "SELECT count(*)::text FROM pg_publication_rel"); n != "0" {
		t.Errorf("%s tables are published by the server that the shard has left", n)
	}
	mustMove(t, mover(t, a, b).Revert, 1)
	if n := a.one(t, "SELECT count(*)::text FROM pg_publication_rel"); n == "0" {
		t.Error("the server that has the shard again publishes nothing")
	}
}
