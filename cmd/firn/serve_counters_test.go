//go:build !windows

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestServeAnyNameCounters: where any name is served, the name of a counter gives its
// numbers, and never an id: of one that is there, and of one that is created meanwhile.
func TestServeAnyNameCounters(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	create := func(args ...string) {
		t.Helper()
		if _, errs, code := called(t, append(args, "--store", url)...); code != 0 {
			t.Fatalf("%q: %s", args, errs)
		}
	}
	create("series", "create", "orders", "--kind", "sequence")
	create("series", "create", "invoice", "--pattern", "INV-{6}")
	s := serve(t, dir, "--store", url)
	c := s.redis("")
	for want := range int64(3) {
		if n, err := c.Incr(t.Context(), "orders").Result(); err != nil || n != want+1 {
			t.Errorf("INCR orders: %d, %v; want %d", n, err, want+1)
		}
	}
	if text, err := c.Do(t.Context(), "FIRN.NEXT", "invoice").Text(); err != nil || text != "INV-000001" {
		t.Errorf("FIRN.NEXT invoice: %q, %v", text, err)
	}
	if n, err := c.Incr(t.Context(), "photo").Result(); err != nil || n < 1e16 {
		t.Errorf("INCR photo: %d, %v; want an id", n, err)
	}
	for name, near := range map[string]string{"ordrs": "orders", "invoise": "invoice"} {
		if n, err := c.Incr(t.Context(), name).Result(); err == nil || !strings.Contains(err.Error(), "is it "+near+"?") {
			t.Errorf("INCR %s: %d, %v; want an error that names %s", name, n, err, near)
		}
		if code, text := s.do("POST", "/v1/series/"+name+"/next", ""); code != 404 || !strings.Contains(text, near) {
			t.Errorf("POST %s: %d %s; want an error that names %s", name, code, text, near)
		}
	}

	// The first call waits until the server has read which counters there are.
	create("series", "create", "late", "--kind", "sequence")
	if n, err := c.Incr(t.Context(), "late").Result(); err != nil || n != 1 {
		t.Errorf("INCR late: %d, %v; want 1\n%s", n, err, s.log)
	}
	s.until("the log names the new counter", func() bool {
		return strings.Contains(s.log.String(), `"msg":"new counters were found in the store","counters":["late"]`)
	})
	if strings.Contains(s.log.String(), reloaded) {
		t.Errorf("nobody asked for a reload: %s", s.log)
	}
	create("series", "create", "later", "--kind", "sequence")
	if code, text := s.do("POST", "/v1/series/later/next", ""); code != 200 || !strings.Contains(text, `"values":["1"]`) {
		t.Errorf("POST later: %d %s", code, text)
	}
	create("series", "create", "range", "--kind", "sequence")
	if code, text := s.do("POST", "/v1/series/range/range?n=10", ""); code != 200 || !strings.Contains(text, `"first":"1"`) {
		t.Errorf("POST range: %d %s", code, text)
	}
	create("series", "create", "bill", "--pattern", "B-{6}")
	if text, err := c.Do(t.Context(), "FIRN.NEXT", "bill").Text(); err != nil || text != "B-000001" {
		t.Errorf("FIRN.NEXT bill: %q, %v", text, err)
	}
	if strings.Contains(s.log.String(), "cannot issue") {
		t.Errorf("the log tells of a trouble that nobody had:\n%s", s.log)
	}
	if n, err := c.Incr(t.Context(), "orders").Result(); err != nil || n != 4 {
		t.Errorf("INCR orders after that: %d, %v", n, err)
	}
	s.stop()
	if out, errs, code := called(t, "next", "orders", "--store", url); code != 0 || out != "5\n" {
		t.Errorf("next orders after that: %d, %q, %s", code, out, errs)
	}
}

// TestServeAnyNameFollowsTheStore: a name that has given ids gives the numbers of a counter of that name which was
// created since. One that is nearly the name of a new counter gives ids as before, because programs use it; a
// server that starts later refuses it.
func TestServeAnyNameFollowsTheStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	s := serve(t, dir, "--store", url, "--config", write(t, dir, "firn.yaml", "limits: { names: 3 }\n"))
	c := s.redis("")
	for _, name := range []string{"ordrs", "video", "user:2", "late"} { // the last one has no series of its own
		if n, err := c.Incr(t.Context(), name).Result(); err != nil || n < 1e16 {
			t.Errorf("INCR %s: %d, %v; want an id", name, n, err)
		}
	}
	for _, name := range []string{"orders", "video", "user:1", "late"} {
		firnOn(t, url, 0, "series", "create", name, "--kind", "sequence")
	}
	s.until("the server has listed the counters", func() bool {
		n, err := c.Incr(t.Context(), "late").Result()
		return err == nil && n < 1000
	})
	if n, err := c.Incr(t.Context(), "ordrs").Result(); err != nil || n < 1e16 {
		t.Errorf("INCR ordrs: %d, %v; want an id as before", n, err)
	}
	later := serve(t, dir, "--store", url)
	if n, err := later.redis("").Incr(t.Context(), "ordrs").Result(); err == nil || !strings.Contains(err.Error(), "is it orders?") {
		t.Errorf("INCR ordrs of a server that started later: %d, %v; want an error that names orders", n, err)
	}
	later.stop()
	if n, err := c.Incr(t.Context(), "video").Result(); err != nil || n != 1 {
		t.Errorf("INCR video: %d, %v; want 1", n, err)
	}
	if n, err := c.Incr(t.Context(), "user:2").Result(); err != nil || n < 1e16 {
		t.Errorf("INCR user:2: %d, %v; want an id", n, err)
	}
	text := s.log.String()
	for _, want := range []string{`"series":"ordrs","counter":"orders"`, `numbers of a new counter from now on","series":"video"`} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is to be in the log once:\n%s", want, text)
		}
	}
	// What cannot be opened is tried once, and takes nothing from the others.
	write(t, dir, "tickets.yaml", "store: "+url+"\nseries: { ticket: { kind: sequence, stores: ["+url+", \"sqlite:"+dir+"/b.db\"] } }\n")
	firnOn(t, "sqlite:"+dir+"/b.db", 0, "series", "create", "any", "--kind", "sequence")
	firnOn(t, url, 0, "series", "create", "ticket", "--kind", "sequence", "--config", dir+"/tickets.yaml")
	s.until("the ticket is refused", func() bool {
		return strings.Contains(s.log.String(), "a sequence of that name, which is spread over 2 stores")
	})
	firnOn(t, url, 0, "series", "ls")
	if n, err := c.Incr(t.Context(), "video").Result(); err != nil || n != 2 {
		t.Errorf("INCR video: %d, %v; want 2", n, err)
	}
	if n, err := c.Incr(t.Context(), "ticket").Result(); err == nil {
		t.Errorf("INCR ticket: %d; want an error", n)
	}
	s.stop()
}

// TestServeAnyNameAway: while the store does not answer nobody knows what a name is.
func TestServeAnyNameAway(t *testing.T) {
	s := serve(t, t.TempDir(), "--store", "postgres://app@127.0.0.1:1/app?connect_timeout=1")
	c := s.redis("")
	for range 2 {
		if n, err := c.Incr(t.Context(), "orders").Result(); err == nil || n != 0 {
			t.Errorf("INCR orders: %d, %v; want an error", n, err)
		}
	}
	s.stop()
}

// TestServeNewNameWhileTheStoreIsAway: while the store is away, names that gave ids before give ids. The error of
// another name says that the name is new, and not that there are no ids.
func TestServeNewNameWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	firnOn(t, pg.URL(), 0, "pool", "create", "--new")
	s := serve(t, t.TempDir(), "--store", pg.URL())
	s.until("ready", s.ready)
	c := s.redis("")
	if err := c.Incr(t.Context(), "photo").Err(); err != nil {
		t.Fatal(err)
	}
	pg.Kill(t)
	const want = "series video: the name is new to this server, which has to ask the store once whether a counter has it, and the store does not answer"
	if err := c.Incr(t.Context(), "video").Err(); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN "+want) {
		t.Errorf("INCR video: %v; want TRYAGAIN %s", err, want)
	}
	if code, text := s.do("POST", "/v1/series/video/next", ""); code != 503 || !strings.Contains(text, want) {
		t.Errorf("POST video: %d %s; want 503 %s", code, text, want)
	}
	if err := c.Incr(t.Context(), "photo").Err(); err != nil {
		t.Errorf("INCR photo: %v", err)
	}
	pg.Start(t)
	s.until("the new name gives ids", func() bool { return c.Incr(t.Context(), "video").Err() == nil })
	s.stop()
}

// Where the store's file was removed, whoever may know is told what to type: over RESP, over
// HTTP and by readyz.
func TestServeSaysWhatToTypeOfALostFile(t *testing.T) {
	dir := emptyHome(t)
	path := filepath.Join(dir, "ids.db")
	s := serve(t, dir, "--store", "sqlite:"+path)
	c := s.redis("")
	if err := c.Incr(t.Context(), "photo").Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		os.Remove(name)
	}
	var err error
	s.until("the server gives no ids", func() bool {
		err = c.Incr(t.Context(), "photo").Err()
		return err != nil && strings.Contains(err.Error(), "forgotten")
	})
	_, posted := s.do("POST", "/v1/series/photo/next", "")
	_, ready := s.get("/readyz")
	for what, text := range map[string]string{"RESP": err.Error(), "HTTP": posted, "/readyz": ready} {
		if !strings.Contains(text, "firn store recover --store sqlite:"+path) {
			t.Errorf("%s does not say what to type: %s", what, text)
		}
	}
}

// A server that cannot start for want of a key makes no store, so that what docs/guides/server.md
// says to type before the first start succeeds.
func TestServeMakesNoStoreWithoutItsKeys(t *testing.T) {
	dir := emptyHome(t)
	path := filepath.Join(dir, "ids.db")
	write(t, dir, "firn.yaml", "store: sqlite:"+path+`
series:
  photo:   { kind: flake, public: { form: opaque, prefix: photo, keys: firn.keys }, answers: public }
  orders:  { kind: sequence }
  invoice: { kind: document, pattern: "INV-{6}" }
`)
	s := serving(t, dir)
	if err := s.Run(); err == nil || !strings.Contains(s.log.String(), "there is no key file") {
		t.Fatalf("%v\n%s", err, s.log)
	}
	if files, err := filepath.Glob(dir + "/*ids.db*"); err != nil || len(files) > 0 {
		t.Errorf("%v are there, %v", files, err)
	}
	if files, err := filepath.Glob(dir + "/.ids.db*"); err != nil || len(files) > 0 {
		t.Errorf("%v are there, %v", files, err)
	}
	mustAll(t, "public keygen --out firn.keys", "pool create --new", "series create orders --kind sequence", "series create invoice")
	again := serve(t, dir)
	if n, err := again.redis("").Incr(t.Context(), "orders").Result(); err != nil || n != 1 {
		t.Errorf("INCR orders: %d, %v", n, err)
	}
}

// TestServeSaysWhatItCreates: the first server on a file creates its pool and its counters,
// and says so once, as a counter that is created again repeats its numbers.
func TestServeSaysWhatItCreates(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "firn.yaml", `store: sqlite:ids.db
series:
  photo: { kind: flake }
  orders: { kind: sequence, first: 700 }
  invoice: { kind: document, pattern: "INV-{6}" }
`)
	said := []string{
		`"level":"INFO","msg":"created the first pool","kind":"flake","pool":"default","layout":"firn","store":"sqlite:`,
		`"level":"INFO","msg":"created a new counter","kind":"sequence","series":"orders","first":"700","store":"sqlite:`,
		`"level":"INFO","msg":"created a new counter","kind":"document","series":"invoice","first":"1","store":"sqlite:`,
	}
	for _, times := range []int{1, 0} {
		s := serve(t, dir)
		s.stop()
		for _, line := range said {
			if strings.Count(s.log.String(), line) != times {
				t.Errorf("%q is to be there %d times\n%s", line, times, s.log)
			}
		}
	}
}

// A client of a server whose ids start later is told of no option of a Go program.
func TestServeSaysWhenIdsStart(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "pool create other --new --workers 8-15 --store "+url, "pool ensure --workers 0-7 --store "+url)
	s := serve(t, dir, "--store", url, "--kind", "flake")
	err := s.redis("").Incr(t.Context(), "photo").Err()
	_, posted := s.do("POST", "/v1/series/photo/next", "")
	_, ready := s.get("/readyz")
	for what, text := range map[string]string{"RESP": fmt.Sprint(err), "HTTP": posted, "/readyz": ready, "the log": s.log.String()} {
		if !strings.Contains(text, "start at 20") || !strings.Contains(text, "the server waits for that") || strings.Contains(text, "Options.Wait") {
			t.Errorf("%s: %s", what, text)
		}
	}
}
