package move

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// TestAbandon loses the target for good at two moments of a move. Without it the source
// serves as if nothing had been; and should the target come back, it opens nothing.
func TestAbandon(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	for _, moment := range []string{`firn\.subscribe`, `firn\.let_go`} {
		source, target := testserver.Shared(t, sourceServer), targetServer(t)
		a, b := pairOn(t, source, target, 3)
		for n := range 3 {
			a.must(t, fmt.Sprintf(shop, n))
		}
		lose(t, a, b, target, moment)
		a.must(t, "SELECT pg_create_logical_replication_slot('pg_16400_sync_16390_4711', 'pgoutput'); CREATE PUBLICATION mine")

		servers := []topology.Server{a.Server, b.Server}
		one := func(n int64) bool { return n == 1 }
		ended, kept, err := Abandon(t.Context(), servers, "b", one)
		if err != nil || !slices.Equal(ended, []int64{1, 2}) { // which were moved together
			t.Fatalf("%s: %d, %v", moment, ended, err)
		}
		if !slices.ContainsFunc(kept, func(l Leftover) bool { return l.Name == "pg_16400_sync_16390_4711" && l.Server == "a" }) {
			t.Errorf("somebody else may have made the slot, and what is kept is %+v", kept)
		}
		a.must(t, "DROP PUBLICATION mine")
		if ended, kept, err = Abandon(t.Context(), servers, "b", one); err != nil || len(ended)+len(kept) > 0 {
			t.Errorf("a second time: %d, %v, %v", ended, kept, err)
		}
		nothingLeft(t, a)
		a.one(t, "INSERT INTO insta1.users (name) VALUES ('x') RETURNING id::text")

		comesBack(t, a, b, target)
	}
}

// lose has the target of a move killed at a message, and the mover give up.
func lose(t *testing.T, a, b *site, target *testserver.Server, moment string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var once sync.Once
	kill := func() { once.Do(func() { target.Kill(t); cancel() }) }
	message := regexp.MustCompile(moment)
	m := New(hooked(a.Server, hook{loses: func(sent string) bool {
		lost := message.MatchString(sent)
		if lost {
			kill()
		}
		return lost
	}}), at(b, "after", moment, kill), hasty())
	defer m.Close()
	if _, err := m.Move(ctx, []int64{1, 2}); err == nil {
		t.Fatal("it moves to a server that is gone")
	}
	if got := ownersOf(a)("1"); got != "a" {
		t.Fatalf("it is served by %q", got)
	}
}

// comesBack starts a server that was thought to be gone: it opens nothing, and what it
// has can be dropped.
func comesBack(t *testing.T, a, b *site, target *testserver.Server) {
	t.Helper()
	target.Start(t)
	b.Conn = dial(t, b.Server.Config.ConnString())
	var there *check.AnswersError
	if _, _, err := Abandon(t.Context(), []topology.Server{a.Server, b.Server}, "b", func(int64) bool { return true }); !errors.As(err, &there) {
		t.Errorf("b is there: %v", err)
	}
	term := func(s *site) string {
		return s.one(t, "SELECT lpad(term::text, 9, '0') FROM firn.shard WHERE shard = 1")
	}
	if before, now := term(b), term(a); before >= now {
		t.Errorf("what b was told is of term %s, and a is at %s", before, now)
	}
	m := mover(t, a, b)
	var stuck *StuckError
	if _, err := m.Move(t.Context(), []int64{1}); !errors.As(err, &stuck) || !strings.HasSuffix(stuck.Do, "firn shard abort 1") {
		t.Errorf("what was given up goes on: %v", err)
	}
	if got := ownersOf(a, b)("1"); got != "a" {
		t.Errorf("it is served by %q", got)
	}
	mustEnd(t, m.Abort, 1, 2)
	nothingLeft(t, a, b)
	mustMove(t, m.Move, 1)
	mustEnd(t, m.Finish, 1)
	if got := ownersOf(a, b)("1"); got != "b" {
		t.Errorf("it is served by %q", got)
	}
}

// TestAbandonServed: once the shard is on the target, what goes with a target that is lost
// is not given up so; a source that is lost is done without.
func TestAbandonServed(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	first, second := targetServer(t), targetServer(t)
	a, b := pairOn(t, first, second, 2)
	a.must(t, fmt.Sprintf(shop, 1))
	m := mover(t, a, b)
	mustMove(t, m.Move, 1)
	servers := []topology.Server{a.Server, b.Server}
	one := func(n int64) bool { return n == 1 }
	second.Kill(t)
	var elsewhere *ElsewhereError
	if _, _, err := Abandon(t.Context(), servers, "b", one); !errors.As(err, &elsewhere) || elsewhere.Gone != "b" || !elsewhere.LetGo {
		t.Errorf("b had the shard: %v", err)
	}
	second.Start(t)
	b.Conn = dial(t, b.Server.Config.ConnString())
	first.Kill(t)
	ended, _, err := Abandon(t.Context(), servers, "a", one)
	if err != nil || !slices.Equal(ended, []int64{1}) {
		t.Errorf("%d, %v", ended, err)
	}
	nothingLeft(t, b)
	b.one(t, "INSERT INTO insta1.users (name) VALUES ('x') RETURNING id::text")
	first.Start(t)
	a.Conn = dial(t, a.Server.Config.ConnString())
	if got := ownersOf(a, b)("1"); got != "b" {
		t.Errorf("it is served by %q", got)
	}
	mustEnd(t, m.Finish, 1)
	nothingLeft(t, a, b)
}

// TestAbandonLate has a mover that still reaches both servers go on after others gave the
// target up: it does not let the shard go.
func TestAbandonLate(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	away := topology.Server{Name: "b", Config: b.Server.Config.Copy()}
	away.Config.Port = 1
	away.Config.Fallbacks = nil
	abandon := func() {
		if _, _, err := Abandon(context.WithoutCancel(t.Context()), []topology.Server{a.Server, away}, "b", func(n int64) bool { return n == 1 }); err != nil {
			t.Error(err)
		}
	}
	m := New(at(a, "before", seizes, abandon), b.Server, &Options{Lag: 5 * time.Second, Patience: time.Second})
	defer m.Close()
	if _, err := m.Move(t.Context(), []int64{1}); err == nil {
		t.Error("it has moved")
	}
	if got := ownersOf(a, b)("1"); got != "a" {
		t.Errorf("it is served by %q", got)
	}
	mustEnd(t, mover(t, a, b).Abort, 1)
	nothingLeft(t, a, b)
}
