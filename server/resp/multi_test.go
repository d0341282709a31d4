package resp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/server"
)

func TestMulti(t *testing.T) {
	src := &counting{Source: &upward{}}
	p := dial(t, serve(t, nil, nil, server.Numbers("a", src, nil)))
	for _, tt := range []struct{ line, want string }{
		{"EXEC", "-ERR EXEC without MULTI"},
		{"DISCARD", "-ERR DISCARD without MULTI"},
		{"MULTI", "+OK"},
		{"EXEC", "[]"},
		{"MULTI", "+OK"},
		{"INCR a", "+QUEUED"},
		{"INCR a", "+QUEUED"},
		{"INCR nosuch", "+QUEUED"},
		{"FIRN.NEXT a 2", "+QUEUED"},
		{"INCRBY a 0", "+QUEUED"},
		{"EXEC", `[:1 :2 -ERR there is no series nosuch ["3" "4"] -LIMIT 1000000 is the most and 1 the least at a time: n is 0]`},
		{"MULTI", "+OK"},
		{"INCR a", "+QUEUED"},
		{"DISCARD", "+OK"},
		{"INCR a", ":5"},
		{"MULTI", "+OK"},
		{"INCR a", "+QUEUED"},
		{"INCR", "-ERR wrong number of arguments for 'incr' command"},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"INCR a", ":6"},
		{"MULTI", "+OK"},
		{"MULTI", "-ERR MULTI is not allowed between MULTI and EXEC"},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"MULTI", "+OK"},
		{"RESET", "+RESET"},
		{"INCR a", ":7"},
	} {
		if got := p.do(strings.Fields(tt.line)...); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.line, got, tt.want)
		}
	}
	if fmt.Sprint(src.draws) != "[2 2 1 1 1]" {
		t.Errorf("draws: %v", src.draws)
	}
}

// What waits for EXEC is bounded, and given back.
func TestMultiBound(t *testing.T) {
	w := serve(t, nil, nil)
	p := dial(t, w)
	p.do("MULTI")
	word := strings.Repeat("x", 10_000)
	n := 0
	for ; n < 1000; n++ {
		if got := p.do("FIRN.DECODE", word); got != "+QUEUED" {
			if !strings.HasPrefix(got, "-ERR too much between MULTI and EXEC") {
				t.Fatal(got)
			}
			break
		}
	}
	if n < 50 || n > 104 {
		t.Errorf("%d commands of 10 KB were kept", n)
	}
	if got := p.do("EXEC"); !strings.HasPrefix(got, "-EXECABORT") {
		t.Error(got)
	}
	p.do("MULTI")
	for range 10_000 {
		p.send("INCR photo\r\n")
	}
	for range 10_000 {
		if got := p.answer(); got != "+QUEUED" {
			t.Fatal(got)
		}
	}
	if got := p.do("EXEC"); strings.Count(got, ":") != 10_000 {
		t.Errorf("%d answers", strings.Count(got, ":"))
	}
}
