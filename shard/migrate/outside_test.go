package migrate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/shard/install"
)

const concurrent = outside + `
DROP INDEX CONCURRENTLY IF EXISTS users_name;
CREATE UNIQUE INDEX CONCURRENTLY users_name ON users (name);
`

// TestOutside: statements that cannot be in a transaction run outside, with the
// shard's search path.
func TestOutside(t *testing.T) {
	servers := newServers(t)
	files := map[string]string{"1_users.sql": users, "2_index.sql": strings.TrimPrefix(concurrent, outside)}
	failed := apply(t, servers, files, nil)
	if len(failed) != 4 || !strings.Contains(failed[0].Error(), "cannot run inside a transaction block (25001)") {
		t.Fatalf("inside: %v", failed)
	}
	files["2_index.sql"] = concurrent
	files["3_vacuum.sql"] = outside + "\nVACUUM users; SET search_path = public; SET lock_timeout = '1s'"
	files["4_last.sql"] = "CREATE TABLE last AS SELECT current_setting('lock_timeout')::text AS v"
	mustApply(t, servers, files)
	if got := texts(t, servers, "SELECT to_regclass('users_name')::text || v FROM last"); got != "users_name2s users_name2s users_name2s users_name2s" {
		t.Errorf("index and setting: %s", got)
	}
	if got := texts(t, servers, applied); !strings.HasPrefix(got, "1:true,2:true,3:true,4:true ") {
		t.Errorf("records: %s", got)
	}
}

// TestOutsideFails: a file that was broken off is known as begun, runs anew from its
// first statement, and may be mended first.
func TestOutsideFails(t *testing.T) {
	servers := newServers(t)
	mustApply(t, servers, map[string]string{"1_users.sql": users})
	twice := on(t, servers[1])
	do(t, twice, `INSERT INTO "S'h-3".users (name) VALUES ('twice'), ('twice')`)
	files := map[string]string{"1_users.sql": users, "2_index.sql": concurrent}
	failed := apply(t, servers, files, nil)
	if len(failed) != 1 || !strings.HasPrefix(failed[3].Error(), "2_index.sql:3: ") {
		t.Fatalf("failed: %v", failed)
	}
	if got := texts(t, servers, applied); got != "1:true,2:true 1:true,2:true 1:true,2:true 1:true,2:false" {
		t.Errorf("records: %s", got)
	}
	do(t, twice, `DELETE FROM "S'h-3".users`)
	if p := mustPlan(t, servers, mustRead(t, files)); len(p.Work) != 1 || p.Work[0].Shard != 3 {
		t.Errorf("left to do: %+v", p.Work)
	}
	mustApply(t, servers, files)
	if got := texts(t, servers, applied); !strings.HasSuffix(got, " 1:true,2:true") {
		t.Errorf("records: %s", got)
	}
}

// TestInvalidIndex: an index that is there and not valid is no success, though
// IF NOT EXISTS finds it.
func TestInvalidIndex(t *testing.T) {
	servers := newServers(t)
	mustApply(t, servers, map[string]string{"1_users.sql": users})
	twice := on(t, servers[0])
	do(t, twice, `INSERT INTO "S'h-0".users (name) VALUES ('twice'), ('twice')`)
	files := map[string]string{"1_users.sql": users, "2.sql": outside + "\nCREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS users_name ON users (name)"}
	if failed := apply(t, servers, files, nil); len(failed) != 1 {
		t.Fatalf("failed: %v", failed)
	}
	do(t, twice, `DELETE FROM "S'h-0".users`)
	failed := apply(t, servers, files, nil)
	if len(failed) != 1 || !strings.Contains(failed[0].Error(), "the index users_name is not valid") {
		t.Errorf("the second time: %v", failed)
	}
	if got := texts(t, servers, applied); !strings.HasPrefix(got, "1:true,2:false ") {
		t.Errorf("records: %s", got)
	}
}

// TestOutsideAlone: two do not run one file on one shard at once.
func TestOutsideAlone(t *testing.T) {
	servers := newServers(t)
	files := mustRead(t, map[string]string{"1.sql": outside + "\nSELECT pg_advisory_lock_shared(7, 7)"})
	other := on(t, servers[0])
	do(t, other, "SELECT pg_advisory_lock(7, 7)")
	state := mustLook(t, servers)
	plan, err := NewPlan(state, files, func(n int64) bool { return n == 0 }, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	first := make(chan []Result)
	go func() { first <- plan.Run(ctx, servers, nil) }()
	waiting := func() (n int) {
		err := other.QueryRow(context.Background(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").Scan(&n)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for waiting() == 0 && !t.Failed() {
	}
	soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	second := make(chan []Result)
	go func() { second <- plan.Run(soon, servers, nil) }()
	for soon.Err() == nil {
		if n := waiting(); n != 1 {
			t.Errorf("%d run the file at once", n)
			break
		}
	}
	if r := <-second; len(r) != 1 || !errors.Is(r[0].Err, context.DeadlineExceeded) {
		t.Errorf("the second: %+v", r)
	}
	// Ctrl-C ends the statement on the server too.
	stop()
	if r := <-first; len(r) != 1 || !errors.Is(r[0].Err, context.Canceled) {
		t.Errorf("the first: %+v", r)
	}
	for deadline := time.Now().Add(time.Minute); waiting() > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the statement goes on")
		}
	}
}

// TestOutsideUnderLock: an index is made concurrently under the lock of the servers, also
// where transactions are repeatable read by default: those keep a snapshot, which it waits for.
func TestOutsideUnderLock(t *testing.T) {
	servers := newServers(t)
	mustApply(t, servers, map[string]string{"1.sql": users})
	for _, s := range servers {
		do(t, on(t, s), "ALTER DATABASE "+s.Config.Database+" SET default_transaction_isolation = 'repeatable read'")
	}
	release, err := install.LockAll(t.Context(), servers)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	files := mustRead(t, map[string]string{"1.sql": users, "2.sql": outside + "\nCREATE INDEX CONCURRENTLY by_name ON users (name)"})
	for _, r := range mustPlan(t, servers, files).Run(ctx, servers, nil) {
		if r.Err != nil {
			t.Errorf("shard %d: %v", r.Shard, r.Err)
		}
	}
}
