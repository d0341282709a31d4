//go:build !windows

package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/public/hashids"
	"github.com/firn-id/firn/server"
)

// serveYAML starts a server of these series on a file of its own. Any two documents of digits only
// could give the same text, so they are not together.
func serveYAML(t *testing.T, series string) *served {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries:\n"+series)
	return serve(t, dir)
}

// TestServeDigits: a document of digits only is a number to each client.
func TestServeDigits(t *testing.T) {
	s := serveYAML(t, `
  bill:    { kind: document, pattern: "{yyyyMMdd}{6}", zone: Asia/Shanghai }
  invoice: { kind: document, pattern: "INV-{6}" }
`)
	defer s.stop()
	c := s.redis("")
	first, err := c.Incr(t.Context(), "bill").Result()
	if err != nil || first%1_000_000 != 1 || first < 20_261_101_000_000 {
		t.Errorf("INCR bill: %d, %v", first, err)
	}
	if text, err := c.Do(t.Context(), "FIRN.NEXT", "bill").Text(); err != nil || text != strconv.FormatInt(first+1, 10) {
		t.Errorf("FIRN.NEXT bill: %s, %v; INCR gave %d", text, err, first)
	}
	if _, err := c.Incr(t.Context(), "invoice").Result(); err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
		t.Errorf("INCR invoice: %v", err)
	}
	if code, text := s.do("POST", "/v1/series/bill/next", ""); code != 200 || !strings.Contains(text, `"values":["`+strconv.FormatInt(first+2, 10)+`"]`) {
		t.Errorf("over HTTP: %d %s; INCR gave %d", code, text, first)
	}
	if code, text := s.get("/v1/series"); !strings.Contains(text, `"name":"bill","kind":"document","numeric":true,`) ||
		!strings.Contains(text, `"name":"invoice","kind":"document","numeric":false,`) || !strings.Contains(text, `"next":"`+strconv.FormatInt(first+3, 10)+`"`) {
		t.Errorf("the series: %d %s", code, text)
	}
	ids, err := client.Open(t.Context(), "redis://"+s.listen["resp"], "bill", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close()
	if id, err := ids.Next(t.Context()); err != nil || int64(id) != first+3 {
		t.Errorf("package client: %d, %v; INCR gave %d", id, err, first)
	}
}

// TestServeDigitsWithZeros: the text of a document keeps its zeros, and its number has none.
func TestServeDigitsWithZeros(t *testing.T) {
	s := serveYAML(t, `  short: { kind: document, pattern: "{6}" }`)
	defer s.stop()
	c := s.redis("")
	if n, err := c.Incr(t.Context(), "short").Result(); err != nil || n != 1 {
		t.Errorf("INCR: %d, %v", n, err)
	}
	if text, err := c.Do(t.Context(), "FIRN.NEXT", "short").Text(); err != nil || text != "000002" {
		t.Errorf("FIRN.NEXT: %s, %v", text, err)
	}
	if code, text := s.do("POST", "/v1/series/short/next", ""); code != 200 || text != `{"series":"short","values":["000003"]}`+"\n" {
		t.Errorf("over HTTP: %d %s", code, text)
	}
}

// TestServeDigitsInForm: a server gives a document of digits in its public form. Who may decode it is told
// the number too.
func TestServeDigitsInForm(t *testing.T) {
	series := fmt.Sprintf(`  bill: { kind: document, pattern: "{yyyyMMdd}{6}", zone: Asia/Shanghai, public: { form: hashids, salt: this is my salt }, answers: public }
tokens:
  shop:  { hash: "sha256:%x", rights: { bill: [issue, decode] } }
  guest: { hash: "sha256:%x", rights: { bill: issue } }
`, server.HashToken("shop"), server.HashToken("guest"))
	s := serveYAML(t, series)
	defer s.stop()
	var given struct {
		Values, IDs []string
		Form        string
	}
	code, text := s.do("POST", "/v1/series/bill/next?n=2", "shop")
	if err := json.Unmarshal([]byte(text), &given); code != 200 || err != nil || given.Form != "hashids" || len(given.Values) != 2 || len(given.IDs) != 2 {
		t.Fatalf("%d %s, %v", code, text, err)
	}
	form, err := hashids.New(&hashids.Options{Salt: "this is my salt"})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range given.Values {
		if id, err := form.Parse(v); err != nil || id.String() != given.IDs[i] || id%1_000_000 != firn.ID(i+1) {
			t.Errorf("%s is %s, %v; the answer says %s", v, id, err, given.IDs[i])
		}
	}
	if code, text := s.do("POST", "/v1/series/bill/next", "guest"); code != 200 || strings.Contains(text, `"ids"`) || !strings.Contains(text, `"form":"hashids"`) {
		t.Errorf("who may not decode is told %d %s", code, text)
	}
	serveDecodes(t, s, given.Values[0], given.IDs[0])
	if n, err := s.redis("shop").Incr(t.Context(), "bill").Result(); err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
		t.Errorf("INCR: %d, %v", n, err)
	}
}

// serveDecodes reads a text back that the server gave, over HTTP and over RESP.
func serveDecodes(t *testing.T, s *served, text, id string) {
	t.Helper()
	want := fmt.Sprintf(`{"readings":[{"text":%q,"kind":"document","period":%q,"count":"1","id":%q,"form":"hashids","series":"bill"}]}`, text, id[:8], id)
	if code, got := s.do("GET", "/v1/decode/"+text, "shop"); code != 200 || strings.TrimSpace(got) != want {
		t.Errorf("%d %s, want %s", code, got, want)
	}
	if code, got := s.do("GET", "/v1/decode/"+text, "guest"); code != 403 {
		t.Errorf("who may not decode is told %d %s", code, got)
	}
	got, err := s.redis("shop").Do(t.Context(), "FIRN.DECODE", text).Result()
	want = fmt.Sprintf("[map[count:1 form:hashids id:%s kind:document period:%s series:bill text:%s]]", id, id[:8], text)
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("FIRN.DECODE: %v, %v; want %s", got, err, want)
	}
}
