package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/internal/testserver"
)

// What docs/reference/clients.md says of a sorted set is so: the score of a flake is rounded, and members that all
// have the score 0 come in the order of their ids.
func TestSortedSetOfRedis(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("`ZADD (feed) ([0-9]+) (a)` has the score ([0-9.e+]+),[^\n]*`ZADD feed 0 ([0-9]+)`, and `(ZRANGE feed [^`]+)`").FindStringSubmatch(string(page))
	if m == nil {
		t.Fatal("docs/reference/clients.md has no such commands")
	}
	c := redis.NewClient(&redis.Options{Addr: testserver.Redis(t).Addr(), Protocol: 2})
	defer c.Close()
	if err := c.Do(t.Context(), "ZADD", m[1], m[2], m[3]).Err(); err != nil {
		t.Fatal(err)
	}
	score, err := c.Do(t.Context(), "ZSCORE", m[1], m[3]).Text()
	if got, bad := strconv.ParseFloat(score, 64); err != nil || bad != nil || strconv.FormatFloat(got, 'g', 17, 64) != m[4] || score == m[2] {
		t.Errorf("the score of %s is %s, %v; the page has %s", m[2], score, err, m[4])
	}
	if err := c.Del(t.Context(), "feed").Err(); err != nil {
		t.Fatal(err)
	}
	id := m[5]
	next := id[:len(id)-1] + string(id[len(id)-1]+1)
	for _, one := range []string{next, id} {
		if err := c.Do(t.Context(), "ZADD", "feed", 0, one).Err(); err != nil {
			t.Fatal(err)
		}
	}
	var args []any
	for _, word := range strings.Fields(m[6]) {
		args = append(args, word)
	}
	if got, err := c.Do(t.Context(), args...).StringSlice(); err != nil || strings.Join(got, " ") != id+" "+next {
		t.Errorf("%s: %s, %v", m[6], got, err)
	}
}
