//go:build !windows

package main

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// A server whose store refuses its user waits, and says, in the log and by readyz, that it reads a
// corrected address at SIGHUP only. What it says is done, and it serves.
func TestServeSaysWhatALoginNeeds(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	right := databases(t, pg, "logins")[0]
	firnOn(t, right, 0, "pool", "create", "--new")
	conn, err := pgx.Connect(t.Context(), right)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "CREATE ROLE nologin NOLOGIN"); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(right)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User("nologin")
	for _, series := range []string{"", "series: { photo: { kind: flake } }\n"} {
		dir := t.TempDir()
		write(t, dir, "firn.yaml", "store: "+at.String()+"\n"+series)
		s := serve(t, dir)
		const want = "then send SIGHUP to this server where that is firn.yaml, and restart it elsewhere"
		s.until("the log says it", func() bool { return strings.Contains(s.log.String(), want) })
		if _, text := s.get("/readyz"); !strings.Contains(text, want) {
			t.Errorf("/readyz: %s", text)
		}
		if n := strings.Count(s.log.String(), want); n != 1 {
			t.Errorf("the log says it %d times:\n%s", n, s.log)
		}
		write(t, dir, "firn.yaml", "store: "+right+"\n"+series)
		s.reload(reloaded)
		s.until("ready", s.ready)
		s.stop()
	}
}
