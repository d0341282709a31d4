//go:build !windows

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// What a store that does not answer is called. None of it may reach those who only draw.
const (
	secretUser = "marker-user"
	secretName = "marker-database"
	secretHost = "marker-host.invalid"
)

// markers are what nobody is told who has not the right admin: names in the URL of the
// store, and what drivers say of addresses.
var markers = regexp.MustCompile(`(?i)marker|127\.0\.0\.1:[0-9]+:|postgres|mysql|dial|lookup|connect:|refused|user=`)

const drawToken = "a token that only draws"

// unanswered are the configurations of servers whose store does not answer.
func unanswered(t *testing.T) map[string]string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	series := `series:
  photo:   { kind: flake }
  secret:  { kind: flake, public: { form: sqids }, answers: public }
  orders:  { kind: sequence }
  invoice: { kind: document, pattern: "INV-{6}" }
`
	sharded := fmt.Sprintf("shards: { servers: { one: \"postgres://%s@%s/%s\" } }\n", secretUser, closed, secretName)
	return map[string]string{
		"postgres by name":    fmt.Sprintf("store: postgres://%s:pw@%s/%s\n", secretUser, secretHost, secretName) + series,
		"postgres by address": fmt.Sprintf("store: postgres://%s:pw@%s/%s\n", secretUser, closed, secretName) + series + sharded,
		"mysql by name":       fmt.Sprintf("store: mysql://%s:pw@%s/%s\n", secretUser, secretHost, secretName) + series,
		"redis by name":       fmt.Sprintf("store: redis://%s:pw@%s/0\n", secretUser, secretHost) + series,
		"any name":            fmt.Sprintf("store: postgres://%s:pw@%s/%s\n", secretUser, closed, secretName),
	}
}

// A token that may draw and decode, and no more, is told by no route and no command which
// store there is, where it is, or what its driver says; and is told what kind of trouble
// it is, since when, and whether to come again. Administrators and the log have the cause.
func TestServeTellsDrawersNoSecrets(t *testing.T) {
	for name, config := range unanswered(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tokens := fmt.Sprintf("tokens:\n  drawer: { hash: %q, rights: { \"*\": [issue, decode] } }\n  boss: { hash: %q, rights: { \"*\": [issue, decode, admin] } }\n",
				hashText(drawToken), hashText(adminToken))
			write(t, dir, "firn.yaml", config+tokens+"listen: { foreign: true }\n")
			s := serve(t, dir)
			s.drawOverHTTP()
			s.drawOverRESP()
			if _, text := s.do("POST", "/v1/series/photo/next", adminToken); !markers.MatchString(text) {
				t.Errorf("administrators are not told why: %s", text)
			}
			if _, text := s.do("GET", "/readyz", adminToken); !markers.MatchString(text) {
				t.Errorf("administrators are not told why: %s", text)
			}
			if err := s.redis(adminToken).Do(t.Context(), "INCR", "photo").Err(); err == nil || !markers.MatchString(err.Error()) {
				t.Errorf("administrators are not told why: %v", err)
			}
			if !markers.MatchString(s.log.String()) {
				t.Errorf("the log does not say why: %s", s.log)
			}
		})
	}
}

// drawOverHTTP asks every route of the OpenAPI document and of the console with the token
// that draws.
func (s *served) drawOverHTTP() {
	s.t.Helper()
	_, text := s.do("GET", "/v1/openapi.json", drawToken)
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil || len(document.Paths) < 10 {
		s.t.Fatalf("%d paths, %v", len(document.Paths), err)
	}
	delete(document.Paths, "/v1/openapi.json") // whose examples have what they like
	for _, path := range []string{"/", "/console/state", "/console/shards", "/console/decode/{id}", "/nothing/{name}"} {
		document.Paths[path] = map[string]json.RawMessage{"get": nil, "post": nil}
	}
	place := regexp.MustCompile(`\{[a-z]+\}`)
	failed := 0
	for path, methods := range document.Paths {
		for method := range methods {
			for _, value := range []string{"photo", "secret", "orders", "invoice", "250040881120281849"} {
				at := place.ReplaceAllString(path, value)
				for _, query := range []string{"", "?n=3", "?bizType=" + url.QueryEscape(value)} {
					for _, token := range []string{drawToken, ""} {
						code, text := s.do(strings.ToUpper(method), at+query, token)
						if found := markers.FindString(text); found != "" && path != "/" {
							s.t.Errorf("%s %s says %q: %d %.300s", method, at+query, found, code, text)
						}
						if code == http.StatusServiceUnavailable && at != "/readyz" {
							failed++
							s.saysEnough(method+" "+at, text)
						}
					}
				}
			}
		}
	}
	if failed < 3 {
		s.t.Errorf("%d requests failed for want of a store", failed)
	}
}

// drawOverRESP sends every command with the token that draws.
func (s *served) drawOverRESP() {
	s.t.Helper()
	ctx, c := s.t.Context(), s.redis(drawToken)
	all, err := c.Do(ctx, "COMMAND", "LIST").StringSlice()
	if err != nil || len(all) < 15 {
		s.t.Fatalf("%v, %v", all, err)
	}
	failed := 0
	send := func(do func([]any) (any, error), args []any) {
		got, err := do(args)
		if text := fmt.Sprintf("%v %v", got, err); markers.MatchString(text) && !strings.Contains(text, "laddr=") {
			s.t.Errorf("%v says %q: %.300s", args, markers.FindString(text), text)
		}
		if err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN") {
			failed++
			s.saysEnough(fmt.Sprint(args), err.Error())
		}
	}
	once := func(args []any) (any, error) { return c.Do(ctx, args...).Result() }
	within := func(args []any) (any, error) {
		answers, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Do(ctx, args...); return nil })
		return fmt.Sprint(answers), err
	}
	for _, command := range all {
		switch command {
		case "auth", "quit", "reset", "client", "multi", "exec", "discard": // of the connection, which is the client's
			continue
		}
		send(once, []any{command})
		for _, name := range []string{"photo", "secret", "orders", "invoice", "GET", "250040881120281849"} {
			send(once, []any{command, name})
			send(once, []any{command, name, "*"})
			send(once, []any{command, name, 2})
			send(within, []any{command, name})
		}
	}
	if failed < 3 {
		s.t.Errorf("%d commands failed for want of a store", failed)
	}
}

// saysEnough wants the kind of trouble, since when it is, and what to do.
func (s *served) saysEnough(what, text string) {
	s.t.Helper()
	for _, want := range []string{"store", "since", "retry"} {
		if !strings.Contains(text, want) {
			s.t.Errorf("%s: %q is missing in %s", what, want, text)
		}
	}
}
