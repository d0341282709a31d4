//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/client"
)

// TestServeTemplate: each name that a client asks for has a counter of its own, by each protocol and
// after a restart.
func TestServeTemplate(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "firn.yaml", `store: sqlite:ids.db
series:
  "user:*": { kind: document, pattern: "{1+}", names: 2 }
  "inv:*": { kind: document, pattern: "INV-{4}" }
`)
	s := serve(t, dir)
	c := s.redis("")
	for _, name := range []string{"user:1", "user:2"} {
		for want := int64(1); want < 4; want++ {
			if got, err := c.Incr(t.Context(), name).Result(); err != nil || got != want {
				t.Errorf("INCR %s: %d, %v; want %d", name, got, err, want)
			}
		}
	}
	if text, err := c.Do(t.Context(), "FIRN.NEXT", "inv:a").Text(); err != nil || text != "INV-0001" {
		t.Errorf("FIRN.NEXT: %s, %v", text, err)
	}
	if err := c.Incr(t.Context(), "user:3").Err(); err == nil || !strings.HasPrefix(err.Error(), "FULL ") || !strings.Contains(err.Error(), "firn series set 'user:*' --names 4") {
		t.Errorf("INCR user:3: %v", err)
	}
	if code, text := s.do("POST", "/v1/series/user:3/next", ""); code != 409 || !strings.Contains(text, "names-full") {
		t.Errorf("over HTTP: %d %s", code, text)
	}
	if code, text := s.do("POST", "/v1/series/user:2/next", ""); code != 200 || !strings.Contains(text, `{"series":"user:2","values":["4"]}`) {
		t.Errorf("over HTTP: %d %s", code, text)
	}
	if code, text := s.get("/v1/series/user:2"); code != 200 || !strings.Contains(text, `"name":"user:*","kind":"document","numeric":true`) {
		t.Errorf("the series of a name: %d %s", code, text)
	}
	if code, text := s.get("/v1/decode/INV-0001"); code != 200 || !strings.Contains(text, `"series":"inv:*"`) {
		t.Errorf("decode: %d %s", code, text)
	}
	p := command(t, "none", "series", "set", "user:*", "--names", "3", "--store", "sqlite:"+dir+"/ids.db")
	p.Dir = dir
	if err := p.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &p.errs)
	}
	ids, err := client.Open(t.Context(), "redis://"+s.listen["resp"], "user:3", nil)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := ids.Next(t.Context()); err != nil || id != 1 {
		t.Errorf("package client: %d, %v", id, err)
	}
	ids.Close()
	s.stop()

	s = serve(t, dir)
	defer s.stop()
	if got, err := s.redis("").Incr(t.Context(), "user:1").Result(); err != nil || got != 4 {
		t.Errorf("after a restart: %d, %v", got, err)
	}
}

// TestServeTemplateOfTheStore: a server of any name serves the templates of its store, and a new one soon.
func TestServeTemplateOfTheStore(t *testing.T) {
	dir := t.TempDir()
	url := "sqlite:" + dir + "/ids.db"
	succeed(t, "series", "create", "user:*", "--pattern", "{1+}", "--store", url)
	s := serve(t, dir, "--store", url)
	defer s.stop()
	c := s.redis("")
	if got, err := c.Incr(t.Context(), "user:1").Result(); err != nil || got != 1 {
		t.Errorf("%d, %v", got, err)
	}
	if got, err := c.Incr(t.Context(), "order:1").Result(); err != nil || got < 1000 {
		t.Errorf("a name that no template has: %d, %v", got, err)
	}
	succeed(t, "series", "create", "order:*", "--pattern", "{1+}", "--store", url)
	if got, err := c.Incr(t.Context(), "order:2").Result(); err != nil || got != 1 {
		t.Errorf("a name of a new template: %d, %v", got, err)
	}
	if got, err := c.Incr(t.Context(), "order:1").Result(); err != nil || got != 1 {
		t.Errorf("a name that gave ids: %d, %v", got, err)
	}
}
