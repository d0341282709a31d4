package shard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard"
)

// circle has the servers of a shard point at each other, as they do while it moves.
func (all servers) circle(t *testing.T, a, b string) {
	t.Helper()
	mustExec(t, all[b].Conn, fmt.Sprintf("UPDATE firn.shard SET state = 'moved', moved_to = '%s' WHERE shard = 0", a))
	mustExec(t, all[a].Conn, fmt.Sprintf("SELECT firn.close(0); UPDATE firn.shard SET state = 'moved', moved_to = '%s' WHERE shard = 0", b))
}

// TestCircle: while two servers point at each other, a transaction waits, for as long as
// it was told, and goes on where the shard opens.
func TestCircle(t *testing.T) {
	t.Parallel()
	all := newServers(t, "mod", 1, "a", "b")
	c := openCluster(t, all.pools(t), nil)
	short := openCluster(t, all.pools(t), &shard.Options{Wait: time.Second})
	file := mapFile(t, c)
	all.circle(t, "a", "b")
	done := make(chan error, 1)
	go func() {
		_, err := insert(t.Context(), c.Shard(0), "waited")
		done <- err
	}()
	begun := time.Now()
	_, err := insert(t.Context(), short.Shard(0), "")
	failsWith(t, err, "ID002", "moved to a", "moved to b", "waited 1", "firn shard status")
	if waited := time.Since(begun); waited < time.Second {
		t.Errorf("it gave up after %s", waited)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = insert(ctx, c.Shard(0), "")
	failsWith(t, err, "", "said", "moved to", "deadline exceeded")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	opened := make(chan error, 1)
	time.AfterFunc(time.Until(begun.Add(3*time.Second)), func() {
		select {
		case err := <-done:
			done <- fmt.Errorf("it did not wait: %w", err)
		default:
		}
		// Who takes a shard has a higher term than who let it go.
		_, err := all["b"].Exec(context.WithoutCancel(t.Context()), "UPDATE firn.shard SET state = 'closed', term = 9 WHERE shard = 0; SELECT firn.open(0)")
		opened <- err
	})
	pythonInsert(t, file, asApp(all["a"].url), asApp(all["b"].url))
	for _, result := range []chan error{opened, done} {
		if err := <-result; err != nil {
			t.Error(err)
		}
	}
	if n := query[int](t, all["b"].Conn, "SELECT count(*) FROM insta0.item"); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// TestOldWords: two servers that were put back to what they were point at each other, and a
// third one has the shard since: it is found.
func TestOldWords(t *testing.T) {
	t.Parallel()
	all := newServers(t, "mod", 1, "a", "b", "c")
	c := openCluster(t, all.pools(t), nil)
	all.move(t, 0, "a", "c")
	mustExec(t, all["c"].Conn, "UPDATE firn.shard SET term = term + 9 WHERE shard = 0")
	mustExec(t, all["a"].Conn, "UPDATE firn.shard SET moved_to = 'b' WHERE shard = 0")
	mustExec(t, all["b"].Conn, "INSERT INTO firn.shard (shard, schema, state, moved_to) SELECT 0, 'insta0', 'moved', 'a' ON CONFLICT (shard) DO UPDATE SET state = 'moved', moved_to = 'a'")
	if _, err := insert(t.Context(), c.Shard(0), "found"); err != nil {
		t.Error(err)
	}
}

// TestTargetAway: where a shard went to a server that is away, it is waited for.
func TestTargetAway(t *testing.T) {
	t.Parallel()
	all := newServers(t, "mod", 1, "a", "b")
	address := testserver.Shared(t, testserver.Postgres).Addr()
	proxy := testserver.NewProxy(t, address)
	far := strings.Replace(asApp(all["b"].url), address, proxy.Addr(), 1)
	pools := func() map[string]*pgxpool.Pool {
		p := all.pools(t, "a")
		p["b"] = pool(t, far)
		return p
	}
	c, short := openCluster(t, pools(), nil), openCluster(t, pools(), &shard.Options{Wait: 300 * time.Millisecond})
	file := mapFile(t, c)
	all.move(t, 0, "a", "b")
	proxy.Refuse(true)
	proxy.Cut()
	failsWith(t, short.Shard(0).InTx(t.Context(), nothing), "", "shard 0 on b", "a said", "moved to b")
	done := make(chan error, 1)
	go func() { done <- c.Shard(0).InTx(t.Context(), nothing) }()
	time.AfterFunc(time.Second, func() { proxy.Refuse(false) })
	pythonInsert(t, file, asApp(all["a"].url), far)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestLostAfterTheWord: a server that is lost after it has refused what f did is not asked
// again: nothing was committed, and f runs where the shard is.
func TestLostAfterTheWord(t *testing.T) {
	for name, f := range map[string]func(tx pgx.Tx, err error) error{
		"lost": func(tx pgx.Tx, err error) error { tx.Conn().Close(context.Background()); return err },
		"another statement": func(tx pgx.Tx, _ error) error {
			_, err := tx.Exec(context.Background(), "SELECT 1")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := newServers(t, "mod", 1, "a", "b")
			c := openCluster(t, all.pools(t), nil)
			runs := 0
			err := c.Shard(0).InTx(t.Context(), func(tx pgx.Tx) error {
				if runs++; runs == 1 {
					all.move(t, 0, "a", "b")
				}
				if _, err := tx.Exec(t.Context(), "INSERT INTO item DEFAULT VALUES"); err != nil {
					return f(tx, err)
				}
				return nil
			})
			if err != nil || runs != 2 {
				t.Errorf("%v after %d runs", err, runs)
			}
		})
	}
}

// mapFile has the map of a cluster.
func mapFile(t *testing.T, c *shard.Cluster) string {
	t.Helper()
	text, err := json.Marshal(c.Map())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "map.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// pythonInsert puts a row into shard 0 with router.py.
func pythonInsert(t *testing.T, file, a, b string) {
	t.Helper()
	out := python(t, `
import sys
from router import Cluster
Cluster(sys.argv[1], {"a": sys.argv[2], "b": sys.argv[3]}).in_tx(0, lambda c: c.execute("INSERT INTO item (text) VALUES ('python')"), 60)
print("done")
`, file, a, b)
	if out != "done\n" {
		t.Error(out)
	}
}
