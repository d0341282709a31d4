//go:build !windows

package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
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
	create("segments", "create", "orders")
	create("serials", "create", "invoice", "--pattern", "INV-{6}")
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

	create("segments", "create", "photos")
	if n, err := c.Incr(t.Context(), "photo").Result(); err != nil || n < 1e16 {
		t.Errorf("INCR photo, which gave ids before there was a counter photos: %d, %v; want an id", n, err)
	}
	create("segments", "create", "late")
	deadline := time.Now().Add(long)
	for {
		n, err := c.Incr(t.Context(), "late").Result()
		if err == nil && n != 1 {
			t.Fatalf("INCR late: %s; want 1", strconv.FormatInt(n, 10))
		}
		if err == nil {
			break
		}
		if !strings.Contains(err.Error(), "has a counter of that name") || time.Now().After(deadline) {
			t.Fatalf("INCR late: %v\n%s", err, s.log)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if n, err := c.Incr(t.Context(), "orders").Result(); err != nil || n != 4 {
		t.Errorf("INCR orders after that: %d, %v", n, err)
	}
	s.stop()
	if out, errs, code := called(t, "next", "orders", "--store", url); code != 0 || out != "5\n" {
		t.Errorf("next orders after that: %d, %q, %s", code, out, errs)
	}
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

// TestServeSaysWhatItCreates: the first server on a file creates its pool and its counters,
// and says so once, as a counter that is created again repeats its numbers.
func TestServeSaysWhatItCreates(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "firn.yaml", `store: sqlite:ids.db
series:
  photo: { kind: flake }
  orders: { kind: segment, first: 700 }
  invoice: { kind: serial, pattern: "INV-{6}" }
`)
	said := []string{
		`"level":"INFO","msg":"created the first pool","kind":"flake","pool":"default","layout":"firn","store":"sqlite:`,
		`"level":"INFO","msg":"created a new counter","kind":"segment","series":"orders","first":"700","store":"sqlite:`,
		`"level":"INFO","msg":"created a new counter","kind":"serial","series":"invoice","first":"1","store":"sqlite:`,
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
