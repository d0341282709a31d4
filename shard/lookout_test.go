package shard

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard/topology"
)

// TestHopsOutlived: a says that the shard went to b, and neither is heard of again. Who
// opens the shard after them is found, and who forgot that it lost it is not.
func TestHopsOutlived(t *testing.T) {
	view := func(server string, term int64, state topology.State) *topology.View {
		return &topology.View{
			Cluster: "x", Server: server, Layout: firn.Default(), Servers: []string{"a", "b", "c"},
			Shards: []topology.Row{{Shard: 1, Schema: "insta1", State: state, Term: term, Here: true}},
		}
	}
	for _, c := range []struct {
		name string
		c    *topology.View
		want string
	}{
		{"opened on c after both", view("c", 9, topology.StateOpen), "c"},
		{"c was put back to what it was", view("c", 2, topology.StateOpen), "b"},
		{"c is about to open it", view("c", 9, topology.StateClosed), "b"},
	} {
		l := newLookout(map[string]*pgxpool.Pool{"a": {}, "b": {}, "c": {}})
		l.note("a", time.Now(), view("a", 4, topology.StateOpen), nil)
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

// TestAwayWhereItWent: b says that the shard came back to a, which is down, and was last heard before that. The
// shard is looked for on a, so that the error says that a does not answer.
func TestAwayWhereItWent(t *testing.T) {
	view := func(server, movedTo string, term int64, state topology.State) *topology.View {
		return &topology.View{
			Cluster: "x", Server: server, Layout: firn.Default(), Servers: []string{"a", "b"},
			Shards: []topology.Row{{Shard: 1, Schema: "insta1", State: state, Term: term, MovedTo: movedTo, Here: true}},
		}
	}
	l := newLookout(map[string]*pgxpool.Pool{"a": {}, "b": {}})
	l.note("a", time.Now(), view("a", "", 6, topology.StateOpen), nil)
	l.note("b", time.Now(), view("b", "a", 12, topology.StateMoved), nil)
	if got, err := l.route(1); err == nil {
		t.Errorf("a answers, and was put back to an earlier state: the shard is looked for on %q", got)
	}
	l.note("a", time.Now(), nil, errors.New("connection refused"))
	if got, err := l.route(1); got != "a" || err != nil {
		t.Errorf("a is away: the shard is looked for on %q (%v), want a", got, err)
	}
}
