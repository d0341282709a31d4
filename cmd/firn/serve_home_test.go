//go:build !windows

package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// putBack puts a dump back in the place of a store, as psql does: the table is dropped, and
// made again.
func putBack(t *testing.T, dump, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "DROP TABLE firn_records"); err != nil {
		t.Fatal(err)
	}
	copyRecords(t, dump, url)
}

// drawnBy draws ids of a series from a server until it refuses for good, and returns them.
func (s *served) drawnBy(series string) []string {
	s.t.Helper()
	c := s.redis("")
	var all []string
	for until := time.Now().Add(long); time.Now().Before(until); {
		id, err := c.Do(s.t.Context(), "FIRN.NEXT", series).Text()
		switch {
		case err == nil:
			all = append(all, id)
			time.Sleep(2 * time.Millisecond)
		case strings.HasPrefix(err.Error(), "TRYAGAIN "):
			time.Sleep(10 * time.Millisecond)
		default:
			return all
		}
	}
	s.t.Errorf("%s is still given\n%s", series, s.log)
	return all
}

// A dump is put back under a server: within seconds nothing is given any more, whatever kind
// of series notices it first, and be there a pool or not. Each series answers with the same,
// until the store was made safe and somebody says so by SIGHUP.
func TestServeDumpPutBack(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	for name, series := range map[string][]string{
		"every_kind":   {photoLine, ordersLine, invoiceLine},
		"counted":      {ordersLine, invoiceLine},
		"numbers_only": {ordersLine},
	} {
		urls := databases(t, pg, name, name+"_dump")
		dir := t.TempDir()
		onPostgres(t, urls[0], dir, series...)
		s := serve(t, dir)
		s.until("ready", s.ready)
		c := s.redis("")
		kinds := map[string]string{photoLine: "photo", ordersLine: "orders", invoiceLine: "invoice"}
		for _, one := range series {
			if err := c.Do(t.Context(), "FIRN.NEXT", kinds[one]).Err(); err != nil {
				t.Fatal(err)
			}
		}
		copyRecords(t, urls[0], urls[1])
		putBack(t, urls[1], urls[0])
		began := time.Now()
		if name == "numbers_only" { // what is in hand needs no store, and nobody asks for more
			s.until("not ready", func() bool { return !s.ready() })
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		drawn := map[string]bool{}
		for _, one := range series {
			all.Go(func() {
				got := s.drawnBy(kinds[one])
				mu.Lock()
				defer mu.Unlock()
				for _, id := range got {
					drawn[kinds[one]+" "+id] = true
				}
			})
		}
		all.Wait()
		if name == "numbers_only" && len(drawn) > 0 {
			t.Errorf("%d numbers in hand were given", len(drawn))
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: nothing was given any more after %s", name, took)
		}
		if code, text := s.get("/readyz"); code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", name, code, text)
		}
		said := ""
		for _, one := range series {
			_, text := s.do("POST", "/v1/series/"+kinds[one]+"/next", "")
			text = strings.Replace(text, "series "+kinds[one]+": ", "series SERIES: ", 1)
			text = noIDsSince.ReplaceAllString(text, "no ids since TIME: ") // each series has noticed by itself, maybe a second later
			if said == "" {
				said = text
			}
			if text != said || strings.Contains(text, "values") {
				t.Errorf("%s: %s says %s, and the first %s", name, kinds[one], text, said)
			}
		}
		s.reload(notReloaded)
		p := command(t, "", "store", "recover", "--yes", "--numbers", "100000", "--store", urls[0])
		if out, err := p.everything(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if series[0] == photoLine { // a pool's ids start later, and a server that is started then waits
			s.signal(syscall.SIGHUP) // or by itself
			s.until("the pool is opened", func() bool { return strings.Contains(s.log.String(), `the ids of pool \"main\" start at`) })
			s.stop()
			continue
		}
		s.reload(reloaded)
		for _, one := range series {
			id, err := c.Do(t.Context(), "FIRN.NEXT", kinds[one]).Text()
			if err != nil || drawn[kinds[one]+" "+id] {
				t.Errorf("%s: %s after recovery, %v", name, id, err)
			}
		}
		s.stop()
	}
}

// everything is what a command printed, on both.
func (p *process) everything() (string, error) {
	out, err := p.Output()
	return string(out) + p.errs.String(), err
}

// A reload that leads to a store without what the server draws from is refused. It makes no
// file, and says where the server has it before it says anything else.
func TestServeReloadToAnotherStore(t *testing.T) {
	t.Parallel()
	urls := databases(t, testserver.Postgres(t), "theright", "mistyped")
	dir := t.TempDir()
	onPostgres(t, urls[0], dir, photoLine, ordersLine, invoiceLine)
	s := serve(t, dir)
	s.until("ready", s.ready)
	was, err := os.ReadFile(dir + "/firn.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"store: " + urls[1] + "\n", "store: sqlite:" + dir + "/new.db\n", ""} {
		before := len(s.log.String())
		write(t, dir, "firn.yaml", strings.Replace(string(was), "store: "+urls[0]+"\n", line, 1))
		s.reload(notReloaded)
		text := s.log.String()[before:]
		if !strings.Contains(text, "this server has pool main in "+urls[0]+": write that store back into the config, then send SIGHUP again") ||
			strings.Contains(text, "pool create") || strings.Contains(text, "--new") || strings.Contains(text, "firn next") {
			t.Errorf("%q: %s", line, text)
		}
		for _, series := range []string{"photo", "orders", "invoice"} {
			if err := s.redis("").Do(t.Context(), "FIRN.NEXT", series).Err(); err != nil {
				t.Errorf("%q: %s: %v", line, series, err)
			}
		}
	}
	for _, pattern := range []string{dir + "/*.db", dir + "/.local/state/firn/*"} {
		if made, err := filepath.Glob(pattern); err != nil || len(made) > 0 {
			t.Errorf("made %s, %v", made, err)
		}
	}
	write(t, dir, "firn.yaml", string(was))
	s.reload(reloaded)
	s.stop()
}

// A name that a server knows for a counter gives no id of the pool once the store has lost
// the counter, whatever is read again.
func TestServeLostCounter(t *testing.T) {
	t.Parallel()
	urls := databases(t, testserver.Postgres(t), "lost", "other")
	dir := t.TempDir()
	for _, url := range urls {
		firnOn(t, url, 0, "pool", "create", "--new")
	}
	firnOn(t, urls[0], 0, "series", "create", "orders", "--kind", "sequence")
	write(t, dir, "firn.yaml", "store: "+urls[0]+"\n")
	s := serve(t, dir)
	s.until("ready", s.ready)
	c := s.redis("")
	if id, err := c.Do(t.Context(), "FIRN.NEXT", "orders").Text(); err != nil || id != "1" {
		t.Fatal(id, err)
	}
	write(t, dir, "firn.yaml", "store: "+urls[1]+"\n") // which has a pool, and no counter
	s.reload(notReloaded)
	if text := s.log.String(); !strings.Contains(text, "this server has orders in "+urls[0]+": write that store back into the config, then send SIGHUP again") {
		t.Error(text)
	}
	write(t, dir, "firn.yaml", "store: "+urls[0]+"\n")
	conn, err := pgx.Connect(t.Context(), urls[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "DELETE FROM firn_records WHERE key = 'segment/orders'"); err != nil {
		t.Fatal(err)
	}
	s.reload("reloaded")
	for _, id := range s.drawnBy("orders") {
		if len(id) > 6 {
			t.Fatalf("orders gives %s", id)
		}
	}
	s.reload(notReloaded)
	if _, text := s.do("POST", "/v1/series/orders/next", ""); strings.Contains(text, "values") {
		t.Error(text)
	}
	s.stop()
}

// noIDsSince is how an answer says when a series has ended.
var noIDsSince = regexp.MustCompile(`no ids since \S+Z: `)
