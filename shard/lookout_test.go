package shard

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn"
)

// TestHopsOutlived: a says that the shard went to b, and neither is heard of again. Who
// opens the shard after them is found, and who forgot that it lost it is not.
func TestHopsOutlived(t *testing.T) {
	view := func(server string, term int64, state State) *View {
		return &View{
			Cluster: "x", Server: server, Layout: firn.Default(), Servers: []string{"a", "b", "c"},
			Shards: []Row{{Shard: 1, Schema: "insta1", State: state, Term: term, Here: true}},
		}
	}
	for _, c := range []struct {
		name string
		c    *View
		want string
	}{
		{"opened on c after both", view("c", 9, StateOpen), "c"},
		{"c was put back to what it was", view("c", 2, StateOpen), "b"},
		{"c is about to open it", view("c", 9, StateClosed), "b"},
	} {
		l := newLookout(map[string]*pgxpool.Pool{"a": {}, "b": {}, "c": {}})
		l.note("a", time.Now(), view("a", 4, StateOpen), nil)
		l.follow(1, "a", "b")
		for _, gone := range []string{"a", "b"} {
			l.note(gone, time.Now(), nil, errors.New("connection refused"))
		}
		l.note("c", time.Now().Add(time.Millisecond), c.c, nil)
		if got, err := l.route(1); got != c.want || err != nil {
			t.Errorf("%s: the shard is looked for on %q (%v), want %s", c.name, got, err, c.want)
		}
	}
}
