//go:build !windows

package main

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/recovery"
)

// A server that starts before its store answers finds what is created there after that, by
// itself, and creates nothing: neither where firn.yaml lists the series nor where every name is
// one.
func TestServeFindsWhatIsCreatedLate(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	urls := databases(t, pg, "listed", "unlisted")
	pg.Stop(t)
	listed, others := t.TempDir(), t.TempDir()
	write(t, listed, "firn.yaml", "store: "+urls[0]+"\nseries:\n  "+photoLine+"  "+ordersLine+"  "+invoiceLine)
	write(t, others, "firn.yaml", "store: "+urls[1]+"\n")
	servers := []*served{serve(t, listed), serve(t, others)}
	pg.Start(t)
	for i, want := range []int{3, 1} {
		s := servers[i]
		s.until("it has looked", func() bool { return strings.Count(s.log.String(), "the server looks again") == want })
		s.until("it says what to type", func() bool {
			_, text := s.do("POST", "/v1/series/photo/next", "")
			return strings.Contains(text, "has no pool") && strings.Contains(text, "firn pool create")
		})
		if i == 0 {
			firnOn(t, urls[i], 0, "series", "create", "orders", "--kind", "sequence")
			firnOn(t, urls[i], 0, "series", "create", "invoice", "--pattern", "INV-{6}")
			// Somebody who has lost it raises it now: it must not give its first text before.
			s.until("the document is seen", func() bool { return strings.Contains(s.log.String(), "has given nothing yet") })
			if text, err := s.redis("").Do(t.Context(), "FIRN.NEXT", "invoice").Text(); err == nil {
				t.Errorf("FIRN.NEXT invoice, created and not raised: %s", text)
			}
			firnOn(t, urls[i], 0, "series", "raise", "invoice", "INV-000041")
		}
		firnOn(t, urls[i], 0, "pool", "create", "--new") // which refuses where there is a pool
	}
	for _, s := range servers {
		s.until("ready", s.ready)
		if text := s.log.String(); strings.Contains(text, "SIGHUP tries") {
			t.Errorf("it asks for a reload:\n%s", text)
		}
		if id, err := s.redis("").Do(t.Context(), "INCR", "photo").Int64(); err != nil || id < 1e16 {
			t.Errorf("INCR photo: %d, %v", id, err)
		}
	}
	if n, err := servers[0].redis("").Do(t.Context(), "INCR", "orders").Int64(); err != nil || n != 1 {
		t.Errorf("INCR orders: %d, %v", n, err)
	}
	if text, err := servers[0].redis("").Do(t.Context(), "FIRN.NEXT", "invoice").Text(); err != nil || text != "INV-000042" {
		t.Errorf("FIRN.NEXT invoice: %s, %v", text, err)
	}
	for _, s := range servers {
		s.stop()
	}
}

// While a store has not answered since the start, no command says of which kind a name is: all
// say to come again.
func TestServeKnowsNoKindYet(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: postgres://app@127.0.0.1:1/app?connect_timeout=1\nlisten: { foreign: true }\n")
	s := serve(t, dir)
	c := s.redis("")
	for _, args := range [][]any{
		{"INCR", "orders"}, {"INCRBY", "orders", 10}, {"INCRBY", "orders", 1}, {"FIRN.NEXT", "orders"}, {"FIRN.NEXT", "orders", 5}, {"FIRN.RANGE", "orders", 10},
	} {
		if got, err := c.Do(t.Context(), args...).Result(); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN ") {
			t.Errorf("%v: %v, %v; want TRYAGAIN", args, got, err)
		}
	}
	for path, method := range map[string]string{
		"/v1/series/orders/next": "POST", "/v1/series/orders/next?n=5": "POST", "/v1/series/orders/range?n=10": "POST",
		"/api/segment/get/orders": "GET", "/api/snowflake/get/orders": "GET",
		"/tinyid/id/nextId?bizType=orders": "GET", "/tinyid/id/nextIdSimple?bizType=orders&batchSize=3": "POST",
	} {
		if code, text := s.do(method, path, ""); code != 503 {
			t.Errorf("%s %s: %d %s", method, path, code, text)
		}
	}
	s.stop()
}

// A document that is new, and created after the server has started without its store, begins at
// SIGHUP.
func TestServeBeginsANewDocumentAtSIGHUP(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: "+pg.URL()+"\nseries:\n  "+invoiceLine)
	pg.Stop(t)
	s := serve(t, dir)
	pg.Start(t)
	s.until("it has looked", func() bool { return strings.Contains(s.log.String(), "the server looks again") })
	firnOn(t, pg.URL(), 0, "series", "create", "invoice", "--pattern", "INV-{6}")
	s.until("the document is seen", func() bool { return strings.Contains(s.log.String(), "only if it is new: SIGHUP") })
	s.reload(reloaded)
	if text, err := s.redis("").Do(t.Context(), "FIRN.NEXT", "invoice").Text(); err != nil || text != "INV-000001" {
		t.Errorf("FIRN.NEXT invoice: %s, %v", text, err)
	}
	s.stop()
}

// A pool whose creation was refused halfway is served by the server that waited for it, once
// another try has created it.
func TestServeFindsAPoolCreatedInTwoSteps(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	do := func(statement string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), pg.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	firnOn(t, pg.URL(), 0, "store", "setup")
	do("CREATE ROLE app LOGIN; GRANT SELECT, INSERT ON firn_records TO app")
	at, err := url.Parse(pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User("app")
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: "+at.String()+"\n")
	firnOn(t, at.String(), 1, "pool", "create", "--new")
	pg.Stop(t)
	s := serve(t, dir)
	pg.Start(t)
	s.until("it has looked", func() bool { return strings.Contains(s.log.String(), "is not created yet") })
	do("GRANT UPDATE ON firn_records TO app")
	firnOn(t, at.String(), 0, "pool", "create", "--new")
	s.until("ready", s.ready)
	s.stop()
}

// A server whose store was recovered takes that up by itself: its counters count as soon as they are
// there, its answers say when ids start, and it issues them from then on.
func TestServeTakesUpARecoveredStore(t *testing.T) {
	dir := emptyHome(t)
	path := filepath.Join(dir, "ids.db")
	write(t, dir, "firn.yaml", "store: sqlite:"+path+"\npools: { default: { worker: 3 } }\nseries:\n  "+photoLine+"  "+ordersLine)
	s := serve(t, dir)
	c := s.redis("")
	for _, name := range []string{"photo", "orders"} {
		if err := c.Incr(t.Context(), name).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		os.Remove(name)
	}
	s.until("the server gives no ids", func() bool {
		err := c.Incr(t.Context(), "photo").Err()
		return err != nil && strings.Contains(err.Error(), "forgotten")
	})
	if _, text := s.get("/readyz"); !strings.Contains(text, "if the store was recovered since: send SIGHUP to this server, or restart it") {
		t.Errorf("/readyz leaves out what follows the recovery: %s", text)
	}
	for rest := s.log.String(); ; { // people type it in another shell
		_, after, ok := strings.Cut(rest, "firn store recover")
		if rest = after; !ok {
			break
		}
		if !strings.HasPrefix(rest, " --store ") {
			t.Errorf("a hint of the log names no store: firn store recover%.60s", rest)
		}
	}
	time.Sleep(3 * time.Second) // it looks for a recovery, and must not make the file anew
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatalf("the file is there again: %v", err)
	}
	mustAll(t, "store recover --lost --outage 5s --yes --store sqlite:"+path, "series create orders --kind sequence --first 100 --store sqlite:"+path)
	s.until("the store is used again", func() bool { return strings.Contains(s.log.String(), "the store was recovered, and is used again") })
	if n, err := c.Incr(t.Context(), "orders").Result(); err != nil || n != 100 {
		t.Errorf("INCR orders: %d, %v; want 100", n, err)
	}
	if _, text := s.get("/metrics"); !strings.Contains(text, "\nfirn_last_reload_successful 1\n") {
		t.Error(text)
	}
	if _, text := s.do("POST", "/v1/series/photo/next", ""); !strings.Contains(text, "start at 20") || strings.Contains(text, "store recover") {
		t.Errorf("before ids start: %s", text)
	}
	s.until("ids start", func() bool { return c.Incr(t.Context(), "photo").Err() == nil })
	s.stop()
}

// A document that had given nothing when the backup was made was raised by the recovery, and keeps
// nothing back. One that the backup lacks does, and each answer names it and says what to type.
func TestServeTakesUpARecoveredDocument(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	do := func(statement string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: "+pg.URL()+"\nseries:\n  "+ordersLine+"  "+invoiceLine+"  late: { kind: document, pattern: \"L-{4}\" }\n")
	firnOn(t, pg.URL(), 0, "series", "create", "orders", "--kind", "sequence")
	firnOn(t, pg.URL(), 0, "series", "create", "invoice", "--pattern", "INV-{6}")
	do("CREATE TABLE dump AS SELECT * FROM firn_records")
	firnOn(t, pg.URL(), 0, "series", "create", "late", "--pattern", "L-{4}")
	s := serve(t, dir)
	c := s.redis("")
	for _, args := range [][]any{{"INCR", "orders"}, {"FIRN.NEXT", "late"}} {
		if err := c.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	do("BEGIN; DELETE FROM firn_records; INSERT INTO firn_records SELECT * FROM dump; COMMIT")
	s.until("the server gives no numbers", func() bool {
		err := c.Do(t.Context(), "FIRN.RANGE", "orders", "1000").Err()
		return err != nil && strings.Contains(err.Error(), "firn store recover")
	})
	time.Sleep(recovery.ClockError) // a mark nearer to the loss may be of before it, by another clock
	firnOn(t, pg.URL(), 0, "store", "recover", "--numbers", "5000", "--outage", "1s", "--yes")
	const cure = "firn series create late --pattern 'L-{4}' --after TEXT"
	s.until("each answer names the document", func() bool {
		_, text := s.do("POST", "/v1/series/orders/next", "")
		_, ready := s.get("/readyz")
		return strings.Contains(text, cure) && strings.Contains(ready, cure)
	})
	if text := s.log.String(); strings.Contains(text, "invoice is there now") {
		t.Errorf("a document that was recovered is doubted:\n%s", text)
	}
	firnOn(t, pg.URL(), 0, "series", "create", "late", "--pattern", "L-{4}", "--after", "L-0001")
	s.until("the store is used again", func() bool { return strings.Contains(s.log.String(), "the store was recovered, and is used again") })
	if n, err := c.Incr(t.Context(), "orders").Result(); err != nil || n <= 5000 {
		t.Errorf("INCR orders: %d, %v", n, err)
	}
	for name, want := range map[string]string{"invoice": "INV-005001", "late": "L-0002"} {
		if text, err := c.Do(t.Context(), "FIRN.NEXT", name).Text(); err != nil || text != want {
			t.Errorf("FIRN.NEXT %s: %s, %v; want %s", name, text, err, want)
		}
	}
	s.stop()
}

// To stop while the store is not there yet is no error of the store.
func TestServeStopsWhileItsDatabaseIsMissing(t *testing.T) {
	pg := testserver.Postgres(t)
	url := strings.Replace(databases(t, pg, "there")[0], "/there", "/missing", 1)
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: "+url+"\nseries:\n  "+photoLine+"  "+ordersLine)
	for range 3 { // of which each stops somewhere else
		s := serve(t, dir)
		s.until("it has looked", func() bool { return strings.Contains(s.log.String(), "cannot be opened") })
		s.stop()
		_, after, _ := strings.Cut(s.log.String(), `"msg":"stopping"`)
		if strings.Contains(after, "ERROR") || strings.Contains(s.log.String(), "context canceled") { // the server's answer may still come
			t.Errorf("at the end:\n%s", s.log)
		}
	}
}
