//go:build !windows

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/server"
)

// A connection that is open goes by the tokens that are in force at its next command: without
// any it may do what a new one may, and with the first ones it has to show one.
func TestServeTokensComeAndGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := func(tokens string) {
		write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries: { orders: { kind: sequence }, photo: { kind: flake } }\n"+tokens)
	}
	tokens := fmt.Sprintf("tokens: { shop: { hash: \"sha256:%x\", rights: { \"*\": [issue, decode, admin] } } }\n", server.HashToken("secret"))
	commands := [][]any{
		{"INCR", "photo"}, {"INCRBY", "orders", 5}, {"FIRN.NEXT", "photo", 3}, {"FIRN.RANGE", "orders", 5}, {"FIRN.DECODE", "250045206433366833"}, {"MULTI"}, {"EXEC"}, {"INFO"}, {"CONFIG", "GET", "save"},
	}
	config("")
	s := serve(t, dir)
	unnamed := s.redis("").Conn()
	defer unnamed.Close()
	all := func(when string, c *redis.Conn, want string) {
		t.Helper()
		for _, args := range commands {
			err := c.Do(t.Context(), args...).Err()
			if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v: %v, want %q", when, args, err, want)
			}
		}
	}
	all("no tokens yet", unnamed, "")
	if err := unnamed.Do(t.Context(), "MULTI").Err(); err != nil {
		t.Fatal(err)
	}
	if err := unnamed.Do(t.Context(), "INCR", "photo").Err(); err != nil {
		t.Fatal(err)
	}

	config(tokens)
	s.reload(reloaded)
	if err := unnamed.Do(t.Context(), "EXEC").Err(); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Errorf("EXEC of what was said before there were tokens: %v", err)
	}
	unnamed.Do(t.Context(), "RESET")
	all("the first tokens", unnamed, "NOAUTH")
	if code, text := s.do("POST", "/v1/series/photo/next", ""); code != http.StatusUnauthorized {
		t.Errorf("%d %s", code, text)
	}
	if err := unnamed.Auth(t.Context(), "secret").Err(); err != nil {
		t.Error(err)
	}
	all("a token was shown", unnamed, "")
	other := s.redis("secret").Conn()
	defer other.Close()
	all("a new connection", other, "")

	config("")
	s.reload(reloaded)
	all("no tokens any more", other, "")
	all("nor for the first", unnamed, "")
	if code, text := s.do("POST", "/v1/series/photo/next", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	if code, text := s.do("POST", "/v1/series/photo/next", "secret"); code != http.StatusUnauthorized || !strings.Contains(text, "leave out the token") {
		t.Errorf("a token where there are none: %d %s", code, text)
	}

	config(tokens)
	s.reload(reloaded)
	all("the old token again", other, "")
	config(strings.Replace(tokens, fmt.Sprintf("%x", server.HashToken("secret")), fmt.Sprintf("%x", server.HashToken("another")), 1))
	s.reload(reloaded)
	all("another token", other, "NOAUTH")
	s.stop()
}
