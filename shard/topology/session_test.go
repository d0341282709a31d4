package topology_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/topology"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// server is a server of which the sessions are used again, and a session to look at it with.
func server(t *testing.T, mode pgx.QueryExecMode) (topology.Server, *pgx.Conn) {
	t.Helper()
	url := testserver.Shared(t, testserver.Postgres).URL()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = t.Name()
	config.DefaultQueryExecMode = mode
	admin, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close(context.Background()) })
	return topology.Server{Name: "a", Config: config}.Reusing(), admin
}

// asked returns the process of the server that f was called with.
func asked(t *testing.T, s topology.Server, f func(*pgx.Conn) error) (pid uint32, err error) {
	t.Helper()
	err = s.Ask(t.Context(), func(c *pgx.Conn) error {
		pid = c.PgConn().PID()
		if f != nil {
			return f(c)
		}
		_, err := c.Exec(t.Context(), "SELECT 1")
		return err
	})
	return pid, err
}

func TestAskAgain(t *testing.T) {
	t.Parallel()
	s, admin := server(t, pgx.QueryExecModeExec)
	first, err := asked(t, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := asked(t, s, nil); err != nil || again != first {
		t.Errorf("process %d after %d, %v", again, first, err)
	}
	var inner uint32
	outer, err := asked(t, s, func(*pgx.Conn) (err error) { inner, err = asked(t, s, nil); return err })
	if err != nil || outer != first || inner == outer {
		t.Errorf("two at once: processes %d and %d, %v", outer, inner, err)
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var left int
		if err := admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", t.Name()).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			break
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%d sessions are left", left)
		}
	}
}

// What is not as a new session would be is not used again.
func TestAskAnew(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	for name, tt := range map[string]struct {
		mode pgx.QueryExecMode
		f    func(*pgx.Conn) error
		want error
	}{
		"an error":      {mode: pgx.QueryExecModeExec, f: func(*pgx.Conn) error { return odd }, want: odd},
		"a transaction": {mode: pgx.QueryExecModeExec, f: func(c *pgx.Conn) error { _, err := c.Exec(context.Background(), "BEGIN"); return err }},
		"closed":        {mode: pgx.QueryExecModeExec, f: func(c *pgx.Conn) error { return c.Close(context.Background()) }},
		"prepared":      {mode: pgx.QueryExecModeCacheStatement},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := server(t, tt.mode)
			first, err := asked(t, s, tt.f)
			if !errors.Is(err, tt.want) || err != nil && !errors.As(err, new(*topology.ServerError)) {
				t.Fatalf("%v", err)
			}
			if again, err := asked(t, s, nil); err != nil || again == first {
				t.Errorf("process %d after %d, %v", again, first, err)
			}
		})
	}
}

// A session that the server has ended meanwhile is replaced.
func TestAskAfterEnd(t *testing.T) {
	t.Parallel()
	s, admin := server(t, pgx.QueryExecModeExec)
	first, err := asked(t, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend($1, 10000)", first); err != nil {
		t.Fatal(err)
	}
	if again, err := asked(t, s, nil); err != nil || again == first {
		t.Errorf("process %d after %d, %v", again, first, err)
	}
}

// A server keeps no session unless it is told to.
func TestAskPlain(t *testing.T) {
	t.Parallel()
	kept, _ := server(t, pgx.QueryExecModeExec)
	s := topology.Server{Name: "a", Config: kept.Config}
	first, err := asked(t, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := asked(t, s, nil); err != nil || again == first {
		t.Errorf("process %d after %d, %v", again, first, err)
	}
}
