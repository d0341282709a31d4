//go:build !windows

package main

import (
	"context"
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/ui"
)

const (
	photoLine   = "photo: { kind: flake }\n"
	ordersLine  = "orders: { kind: sequence }\n"
	invoiceLine = `invoice: { kind: document, pattern: "INV-{6}" }` + "\n"
)

// onPostgres writes a config for a store that nobody has used, and makes it one where
// ids begin at once. Ids go on for 4 s without it.
func onPostgres(t *testing.T, url, dir string, series ...string) {
	t.Helper()
	config := "store: " + url + "\npools: { main: { outage: 4s, renew: 1s, ttl: 3s, wait: 1s } }\nseries:\n"
	for _, one := range series {
		config += "  " + one
	}
	write(t, dir, "firn.yaml", config)
	begin := [][]string{{"pool", "create", "--new"}}
	if slices.Contains(series, ordersLine) {
		begin = append(begin, []string{"series", "create", "orders", "--kind", "sequence"})
	}
	if slices.Contains(series, invoiceLine) {
		begin = append(begin, []string{"series", "create", "invoice"})
	}
	for _, args := range begin {
		p := command(t, "", append(args, "--config", dir+"/firn.yaml")...)
		p.Env = append(p.Env, "FIRN_STORE="+isUnset)
		if out, err := p.Output(); err != nil {
			t.Fatalf("%v: %v\n%s%s", args, err, out, p.errs.String())
		}
	}
}

// The store is killed behind a loaded server: ids go on to the horizon, /readyz says
// so before that, then every call fails and says why, and when the store is back all
// goes on by itself. Nothing repeats.
func TestServeStoreKilled(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	dir := t.TempDir()
	onPostgres(t, pg.URL(), dir, photoLine)
	s := serve(t, dir)
	s.until("ready", s.ready)
	c := s.redis("")
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()

	var flakes ids
	var failures atomic.Int64
	var firstFailure, first503 atomic.Pointer[time.Time]
	set := func(at *atomic.Pointer[time.Time]) { now := time.Now(); at.CompareAndSwap(nil, &now) }
	failed := func(err error) {
		if text := err.Error(); !strings.HasPrefix(text, "TRYAGAIN ") || !strings.Contains(text, "photo") {
			t.Errorf("no clear error: %v", err)
		}
		failures.Add(1)
		set(&firstFailure)
		time.Sleep(10 * time.Millisecond)
	}
	for range 2 {
		load.Go(func() { drawUntil(ctx, t, c, "photo", &flakes, failed) })
	}
	load.Go(func() {
		for ctx.Err() == nil {
			if !s.ready() {
				set(&first503)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	s.until("load", func() bool { return flakes.count() > 1000 })
	if at := first503.Load(); at != nil {
		t.Fatalf("not ready before anything happened\n%s", s.log)
	}
	pg.Kill(t)
	killed := time.Now()
	given := flakes.count()
	s.until("ids end", func() bool { return failures.Load() > 0 })
	if n := flakes.count() - given; n < 100 {
		t.Errorf("%d ids were given without the store", n)
	}
	ended, unready := firstFailure.Load(), first503.Load()
	if unready == nil || !unready.Before(*ended) {
		t.Errorf("/readyz turned at %v, and ids ended at %v", unready, ended)
	}
	t.Logf("not ready %s after the kill, ids ended after %s", unready.Sub(killed), ended.Sub(killed))
	if code, text := s.get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "photo") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := s.do("POST", "/v1/series/photo/next", ""); code != http.StatusServiceUnavailable || strings.Contains(text, `"values"`) {
		t.Errorf("%d %s", code, text)
	}

	pg.Start(t)
	s.until("ready again", s.ready)
	given = flakes.count()
	s.until("ids again", func() bool { return flakes.count() > given+1000 })
	stop()
	load.Wait()
	s.stop()
}

// documentAway is what is said of a document whose store is away.
var documentAway = regexp.MustCompile(`: the store has not answered since 20\d\d-\d\d-\d\dT\S+Z, and there are no numbers until it answers`)

// A document has nothing to go on with while its store is away: metrics, API and /readyz say so,
// and by themselves that it is over.
func TestServeDocumentDegraded(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	dir := t.TempDir()
	onPostgres(t, pg.URL(), dir, invoiceLine)
	write(t, dir, "both.yaml", "store: "+pg.URL()+"\npools: { main: { outage: 5m } }\nseries: { photo: { kind: flake }, kept: { kind: document, pattern: \"K-{6}\", cache: 100 },\n  "+strings.TrimSuffix(invoiceLine, "\n")+" }\n")
	firnOn(t, isUnset, 0, "series", "create", "kept", "--config", filepath.Join(dir, "both.yaml"))
	both := serve(t, dir, "--config", "both.yaml")
	keeps := func(want string) {
		t.Helper()
		if text, err := both.redis("").Do(t.Context(), "FIRN.NEXT", "kept").Text(); err != nil || text != want {
			t.Errorf("FIRN.NEXT kept: %s, %v; want %s", text, err, want)
		}
	}
	keeps("K-000001")
	both.until("a budget of minutes", func() bool {
		_, text := both.get("/metrics")
		return regexp.MustCompile(`(?m)^firn_lease_budget_seconds\{[^}]*\} 300$`).MatchString(text)
	})
	s := serve(t, dir)
	s.until("ready", s.ready)
	degraded := func() string {
		_, text := s.get("/metrics")
		return regexp.MustCompile(`(?m)^firn_series_store_away\{[^}]*\} (\S+)$`).FindString(text)
	}
	if got := degraded(); !strings.HasSuffix(got, "} 0") {
		t.Errorf("with its store: %q", got)
	}
	pg.Kill(t)
	s.until("degraded", func() bool { return strings.HasSuffix(degraded(), "} 1") })
	if code, text := s.get("/readyz"); code != http.StatusServiceUnavailable || !documentAway.MatchString(text) {
		t.Errorf("%d %s", code, text)
	}
	both.until("only the document is not ready", func() bool {
		code, text := both.get("/readyz")
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
		return strings.HasPrefix(text, "ready, but for series invoice: ") && documentAway.MatchString(text)
	})
	if code, text := both.do("POST", "/v1/series/photo/next", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	// A document that has numbers in hand gives them, and says that its store is away.
	keeps("K-000002")
	_, kept := both.get("/v1/series/kept")
	_, metrics := both.get("/metrics")
	for _, want := range []string{`"ready":true`, `"store_away":true`, `"reserved":98`} {
		if !strings.Contains(kept, want) {
			t.Errorf("%s is missing in %s", want, kept)
		}
	}
	for _, want := range []string{`firn_series_ready{series="kept"} 1`, `firn_series_store_away{series="kept"} 1`} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, metrics)
		}
	}
	if code, _ := both.do("POST", "/v1/series/invoice/next", ""); code != http.StatusServiceUnavailable || !strings.Contains(both.log.String(), `"msg":"a series cannot issue"`) || strings.Contains(both.log.String(), `\n\t`) {
		t.Errorf("%d\n%s", code, both.log)
	}
	both.stop()
	if _, text := s.get("/v1/series/invoice"); !strings.Contains(text, `"store_away":true`) {
		t.Error(text)
	}
	pg.Start(t)
	s.until("over", func() bool { return strings.HasSuffix(degraded(), "} 0") && s.ready() })
	s.stop()
}

// The store is away when the server starts: it comes up, is not ready, says why, and
// begins by itself.
func TestServeStartsWithoutStore(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	dir := t.TempDir()
	onPostgres(t, pg.URL(), dir, photoLine, ordersLine, invoiceLine)
	pg.Stop(t)
	s := serve(t, dir)
	c := s.redis("")
	if code, text := s.get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "not open yet") {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := s.get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
	for _, series := range []string{"photo", "orders", "invoice"} {
		err := c.Do(t.Context(), "FIRN.NEXT", series).Err()
		if err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN ") || strings.Count(err.Error(), " since ") != 1 {
			t.Errorf("%s: %v", series, err)
		}
	}
	pg.Start(t)
	s.until("ready", s.ready)
	for _, series := range []string{"photo", "orders", "invoice"} {
		if err := c.Do(t.Context(), "FIRN.NEXT", series).Err(); err != nil {
			t.Errorf("%s: %v", series, err)
		}
	}
	// And away again, with nobody asking: only the document is lost at once.
	pg.Kill(t)
	s.until("the document is not ready", func() bool {
		_, text := s.get("/v1/series/invoice")
		return strings.Contains(text, `"ready":false`)
	})
	if err := c.Do(t.Context(), "FIRN.NEXT", "photo").Err(); err != nil {
		t.Error(err)
	}
	if err := c.Do(t.Context(), "FIRN.NEXT", "invoice").Err(); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN ") {
		t.Errorf("a document without its store: %v", err)
	}
	pg.Start(t)
	s.until("ready again", s.ready)
	s.stop()
}

// A server does not wait for what only somebody can change.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, pool, record, want string }{
		{"a later firn", "main: {}", `replace(value, '"v":1', '"v":9')`, "written by a later firn"},
		{"no fresh worker", "main: { workers: 1, worker: fresh }", "value", "none is fresh"},
	} {
		dir := t.TempDir()
		write(t, dir, "firn.yaml", "store: sqlite:"+dir+"/ids.db\npools: { "+tt.pool+" }\nseries: { photo: { kind: flake } }\n")
		if out, err := command(t, dir+"/ids.db", "next", "photo", "--config", dir+"/firn.yaml").Output(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		db, err := sql.Open("sqlite", dir+"/ids.db")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("UPDATE record SET value = " + tt.record); err != nil {
			t.Fatal(err)
		}
		db.Close()
		s := serving(t, dir)
		ctx, cancel := context.WithTimeout(t.Context(), long)
		stop := context.AfterFunc(ctx, func() { s.Process.Kill() })
		err = s.Run()
		stop()
		cancel()
		if s.ProcessState.ExitCode() != ui.ExitFailed || !strings.Contains(s.log.String(), tt.want) {
			t.Errorf("%s: %v, want %q in\n%s", tt.name, err, tt.want, s.log)
		}
	}
}

// Two servers on one store: one is killed under load, the other goes on, and nothing
// is given twice. Clients that know of both see no error.
func TestServeTwo(t *testing.T) {
	t.Parallel()
	pg := testserver.Shared(t, testserver.Postgres)
	dir := t.TempDir()
	onPostgres(t, pg.URL(), dir, photoLine, ordersLine)
	servers := []*served{serve(t, dir), serve(t, dir)}
	var flakes, numbers ids
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	defer load.Wait()
	for i := range 4 { // two begin at each server
		url := "redis://" + servers[i%2].listen["resp"] + "," + servers[1-i%2].listen["resp"]
		for series, all := range map[string]*ids{"photo": &flakes, "orders": &numbers} {
			c, err := client.Open(t.Context(), url, series, &client.Options{Wait: long})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			load.Go(func() {
				for ctx.Err() == nil {
					id, err := c.Next(t.Context())
					if err != nil {
						t.Errorf("%s: %v", series, err)
						return
					}
					all.add(t, int64(id))
					time.Sleep(time.Millisecond)
				}
			})
		}
	}
	more := func(what string) {
		a, b := flakes.count(), numbers.count()
		servers[1].until(what, func() bool { return flakes.count() > a+5000 && numbers.count() > b+5000 })
	}
	more("load")
	servers[0].signal(os.Kill)
	more("the other goes on")
	again := serve(t, dir)
	c := again.redis("")
	for range 1000 {
		id, err := c.Do(t.Context(), "INCR", "photo").Int64()
		if err != nil {
			t.Fatal(err)
		}
		flakes.add(t, id)
	}
	stop()
	load.Wait()
	again.stop()
	servers[1].stop()
}

// FIRN_POOL means the same to a server and to a command: the pool of all ids, where firn.yaml
// names no pools.
func TestServePoolVariable(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"any name": "", "series": "series: { photo: { kind: flake } }\n"} {
		dir := t.TempDir()
		db := filepath.Join(dir, "ids.db")
		write(t, dir, "firn.yaml", "store: sqlite:"+db+"\n"+file)
		for _, args := range [][]string{{"pool", "create", "--new"}, {"pool", "create", "web", "--new", "--layout", "js53", "--may-repeat", "default"}} {
			if p := command(t, db, args...); p.Run() != nil {
				t.Fatal(p.errs.String())
			}
		}
		p := serving(t, dir)
		p.Env = append(p.Env, "FIRN_POOL=web")
		s := p.begin()
		s.until("ready", s.ready)
		_, text := s.do("POST", "/v1/series/photo/next", "")
		id := regexp.MustCompile(`"(\d+)"`).FindStringSubmatch(text)
		if id == nil || len(id[1]) > 16 {
			t.Errorf("%s: %s is no id of the pool web, which has layout js53", name, text)
		}
		if code, _ := s.do("POST", "/v1/series/photo/next", ""); code != http.StatusOK {
			t.Error(code)
		}
		c := command(t, db, "worker", "ls", "--json")
		out, err := c.Output()
		if err != nil || !strings.Contains(string(out), `"pool":"web","worker":0,"state":"held"`) || strings.Contains(string(out), `"pool":"default"`) {
			t.Errorf("%s: %v, %s%s", name, err, out, c.errs.String())
		}
	}
}
