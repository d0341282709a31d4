package setup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/shard/setup"
)

// TestRemoveWaits: a server that is taken out looks at what it has once it has the locks,
// also where transactions are repeatable read by default: a move that has just begun is seen.
func TestRemoveWaits(t *testing.T) {
	a, b := newDatabase(t), newDatabase(t)
	servers := serversOf(a, b)
	mustInit(t, servers[:1], setup.Wish{Count: 1})
	opened, err := setup.Open(t.Context(), servers, true)
	if err != nil {
		t.Fatal(err)
	}
	added, err := opened.Add([]string{"b"}, nil)
	if err == nil {
		err = added.Run(t.Context())
	}
	opened.Close()
	if err != nil {
		t.Fatal(err)
	}
	b.must(t, "ALTER DATABASE "+b.Config().Database+" SET default_transaction_isolation = 'repeatable read'")
	if opened, err = setup.Open(t.Context(), servers, true); err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	r, err := opened.Remove("b")
	if err != nil {
		t.Fatal(err)
	}
	mover := connect(t, b.url)
	mover.must(t, `BEGIN; INSERT INTO firn.shard (shard, schema, state, term, moved_to) VALUES (0, 'insta0', 'moved', 0, 'a');
		INSERT INTO firn.move (shard, batch, source, target, loaded) VALUES (0, 'abcdefghijkl', 'a', 'b', false)`)
	removed := make(chan error, 1)
	go func() { removed <- r.Run(t.Context()) }()
	for b.one(t, "SELECT count(*)::text FROM pg_locks WHERE relation = 'firn.shard'::regclass AND NOT granted") == "0" {
		if len(removed) > 0 {
			t.Fatalf("it does not wait for the move: %v", <-removed)
		}
		time.Sleep(10 * time.Millisecond)
	}
	mover.must(t, "COMMIT")
	if err := <-removed; err == nil || !strings.Contains(err.Error(), "the move of shard 0 is not finished") {
		t.Errorf("it is taken out: %v", err)
	}
	if got := a.one(t, "SELECT servers::text FROM firn.server"); got != "{a,b}" {
		t.Errorf("a knows of %s", got)
	}
}
