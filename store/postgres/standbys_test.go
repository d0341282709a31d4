package postgres

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// TestStandbyBesideASynchronous: a standby that commits do not wait for makes the store
// lossy for every role, also for one that does not see which standby is synchronous.
func TestStandbyBesideASynchronous(t *testing.T) {
	primary := testserver.Postgres(t)
	db := connect(t, primary.URL())
	do(t, db, `CREATE ROLE app LOGIN`, `GRANT ALL ON SCHEMA public TO app`, `CREATE ROLE monitor LOGIN IN ROLE pg_monitor`)
	app := New(connect(t, at(t, primary.URL(), "user=app")))
	mustPut(t, app, "k", `1`, store.Condition{})
	do(t, db, `GRANT SELECT, INSERT, UPDATE ON firn_records TO monitor`)
	both := []*Store{app, New(connect(t, at(t, primary.URL(), "user=monitor")))}
	testserver.PostgresStandby(t, primary, "cluster_name=s2")
	third := testserver.PostgresStandby(t, primary, "cluster_name=s3")
	for _, c := range []struct {
		names   string
		durable bool
	}{
		{"s2", lossy},
		{"FIRST 1 (s2, s3)", lossy},
		{"ANY 1 (s2, s3)", lossy}, // the one that a commit did not wait for may be promoted
		{"ANY 2 (s2, s3)", durable},
		{"2 (S2, *)", durable},
		{"s3, s2", lossy},
	} {
		do(t, db, fmt.Sprintf(`ALTER SYSTEM SET synchronous_standby_names = '%s'`, c.names), `SELECT pg_reload_conf()`)
		for _, s := range both {
			becomes(t, s, c.durable, "2 connected standbys")
		}
	}
	do(t, db, `ALTER SYSTEM SET synchronous_standby_names = 's2'`, `SELECT pg_reload_conf()`)
	third.Stop(t)
	becomes(t, both[0], durable, "GRANT pg_monitor TO app")
	becomes(t, both[1], durable, "1 connected standby, 1 of them synchronous")
}

// TestBackupIsNoStandby: pg_basebackup connects as a standby does. No store may become
// lossy by that, even for a moment, because a pool never forgets it. make full makes twice as
// many backups.
func TestBackupIsNoStandby(t *testing.T) {
	pg := testserver.Postgres(t)
	db := connect(t, pg.URL())
	do(t, db, `CREATE ROLE app LOGIN`, `GRANT ALL ON SCHEMA public TO app`)
	app := New(connect(t, at(t, pg.URL(), "user=app")))
	mustPut(t, app, "k", `1`, store.Condition{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var looks sync.WaitGroup
	for who, s := range map[string]*Store{"with pg_monitor": New(db), "without": app} {
		looks.Go(func() {
			for ctx.Err() == nil {
				p, err := s.Durability(ctx)
				if ctx.Err() != nil {
					return
				}
				if err != nil || !p.Durable {
					t.Errorf("%s, beside a backup: %+v, %v", who, p, err)
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	u, err := url.Parse(pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("pg_basebackup") // of the server's version, where the tests ask for one
	if err != nil {
		found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pg_basebackup")
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no pg_basebackup: %v", err)
		}
		program = found[0]
	}
	backups := 3
	if testserver.Long() {
		backups = 6
	}
	for i := range backups {
		method := []string{"stream", "stream", "fetch"}[i%3]
		out, err := exec.CommandContext(ctx, program, "-D", filepath.Join(t.TempDir(), "backup"), "-X", method, "-c", "fast", "--no-sync",
			"-d", fmt.Sprintf("host=%s port=%s user=t sslmode=disable", u.Hostname(), u.Port())).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	cancel()
	looks.Wait()
}
