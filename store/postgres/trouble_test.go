package postgres

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

// TestStandby reads and writes on a standby, which takes part when it is promoted.
func TestStandby(t *testing.T) {
	t.Parallel()
	primary := testserver.Postgres(t)
	p := New(connect(t, primary.URL()))
	mustPut(t, p, "k", `1`, store.Condition{})
	standby := testserver.PostgresStandby(t, primary)
	s := New(connect(t, standby.URL()))
	if r := fails(t, s, store.Condition{}, "connect to the primary"); r.Version != "" {
		t.Error("a standby wrote, or may have")
	}
	before, err := p.Durability(t.Context())
	if err != nil || before.Durable || !strings.Contains(before.Why, "may be promoted") {
		t.Errorf("a primary with an asynchronous standby: %+v, %v", before, err)
	}
	primary.Stop(t)
	standby.Promote(t)
	works(t, s)
	after, err := s.Durability(t.Context())
	if err != nil || after.Instance == before.Instance || after.Instance == "" {
		t.Errorf("promoted: %+v, %v", after, err)
	}
}

// TestRefused has the server refuse for reasons of its own, for certain.
func TestRefused(t *testing.T) {
	s, db := fresh(t)
	r := mustPut(t, s, "k", `1`, store.Condition{})
	var path, name string
	if err := db.QueryRow(`SELECT current_setting('search_path'), current_database()`).Scan(&path, &name); err != nil {
		t.Fatal(err)
	}
	with := func(option string) *Store {
		return New(connect(t, at(t, inDatabase(t, shared(t).URL(), name), "search_path="+path, option)))
	}
	refused := func(what string, s *Store, want string) {
		t.Helper()
		put, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
		says(t, what, err, want)
		if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		if put.Version != "" {
			t.Errorf("%s: for certain not carried out, and there is a Version", what)
		}
	}
	refused("read-only", with("default_transaction_read_only=on"), "default_transaction_read_only")
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`SELECT FROM firn_records FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	refused("lock_timeout", with("lock_timeout=50"), "another transaction holds a lock")
	put, err := with("statement_timeout=50").Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
	says(t, "statement_timeout", err, "statement_timeout")
	if put.Version == "" {
		t.Error("cancelled: taken for certain")
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a column": `ALTER TABLE firn_records RENAME COLUMN value TO text`, "the key": `ALTER TABLE firn_records DROP CONSTRAINT firn_records_pkey`,
	} {
		s, db := fresh(t)
		mustPut(t, s, "k", `1`, store.Condition{})
		do(t, db, text)
		_, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{})
		says(t, name, err, "not as firn makes it")
	}
}

// TestEncoding writes to a database that cannot hold every text.
func TestEncoding(t *testing.T) {
	pg := testserver.Postgres(t)
	do(t, connect(t, pg.URL()), `CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
	s := New(connect(t, at(t, inDatabase(t, pg.URL(), "latin"), "client_encoding=UTF8")))
	r := mustPut(t, s, "k", `"é"`, store.Condition{})
	if got, err := s.Get(t.Context(), "k"); err != nil || string(got.Value) != `"é"` {
		t.Errorf("%s, %v", got.Value, err)
	}
	r, err := s.Put(t.Context(), "k", []byte(`"😀"`), store.Condition{Version: r.Version})
	says(t, "Put", err, "must have the encoding UTF8")
	if r.Version != "" {
		t.Error("for certain not carried out, and there is a Version")
	}
}

// TestLocale lists in a database that sorts as people do.
func TestLocale(t *testing.T) {
	testserver.FromPostgres(t, 15) // before that no database has a locale of ICU
	pg := testserver.Postgres(t)
	do(t, connect(t, pg.URL()), `CREATE DATABASE people LOCALE_PROVIDER icu ICU_LOCALE 'en' TEMPLATE template0`)
	s := New(connect(t, inDatabase(t, pg.URL(), "people")))
	for _, key := range []string{"b", "a~", "A", "a", "B", "a-b", "ab", "a/b", "a/"} {
		mustPut(t, s, key, `1`, store.Condition{})
	}
	for prefix, want := range map[string]string{"": "A B a a-b a/ a/b ab a~ b", "a": "a a-b a/ a/b ab a~", "a/": "a/ a/b"} {
		l, err := s.List(t.Context(), prefix)
		var got []string
		for _, r := range l {
			got = append(got, r.Key)
		}
		if strings.Join(got, " ") != want || err != nil {
			t.Errorf("List %q: %v, %v, not %s", prefix, got, err, want)
		}
	}
}

func TestNotLetIn(t *testing.T) {
	pg := testserver.Postgres(t, "max_connections=6", "superuser_reserved_connections=1")
	admin := connect(t, pg.URL())
	do(t, admin, `CREATE ROLE app LOGIN PASSWORD 'right'`, `CREATE ROLE barred LOGIN`, `CREATE ROLE crowd LOGIN`, `GRANT ALL ON SCHEMA public TO app, crowd`)
	hba := filepath.Join(pg.Home(), "data", "pg_hba.conf")
	rules, err := os.ReadFile(hba)
	if err != nil {
		t.Fatal(err)
	}
	rules = append([]byte("host all app 127.0.0.1/32 scram-sha-256\nhost all barred 127.0.0.1/32 reject\n"), rules...)
	if err := os.WriteFile(hba, rules, 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, admin, `SELECT pg_reload_conf()`)
	as := func(options ...string) *Store { return New(connect(t, at(t, pg.URL(), options...))) }

	app := as("user=app", "password=right")
	works(t, app)
	fails(t, as("user=app", "password=wrong"), store.Condition{}, "refuses the password")
	fails(t, as("user=barred"), store.Condition{}, "refuses this user")
	fails(t, as("user=nobody"), store.Condition{}, "refuses this user")
	fails(t, New(connect(t, inDatabase(t, pg.URL(), "none"))), store.Condition{}, "the database does not exist")
	fails(t, New(connect(t, through(t, pg.URL(), "no.such.host.invalid:5432"))), store.Condition{}, "cannot be resolved", "in time")

	do(t, admin, `ALTER ROLE app PASSWORD 'other'`)
	app.db.SetMaxIdleConns(0) // those there are stay let in
	fails(t, app, store.Condition{}, "refuses the password")
	do(t, admin, `ALTER ROLE app PASSWORD 'right'`)
	works(t, app)

	crowd := connect(t, at(t, pg.URL(), "user=crowd"))
	var all []*sql.Conn
	for refused := 0; refused < 10; { // in a row: connections that were closed end a moment later
		c, err := crowd.Conn(t.Context())
		if err != nil {
			refused++
			time.Sleep(20 * time.Millisecond)
			continue
		}
		refused = 0
		all = append(all, c)
	}
	fails(t, app, store.Condition{}, "too many connections")
	for _, c := range all {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := crowd.Close(); err != nil {
		t.Fatal(err)
	}
	works(t, app)
}

// TestCertificate connects to a server whose certificate another authority made,
// or that is of another host's.
func TestCertificate(t *testing.T) {
	pg := testserver.Postgres(t)
	admin := connect(t, pg.URL())
	cert, key := tabletest.Certificate(t)
	another, _ := tabletest.Certificate(t)
	for name, text := range map[string][]byte{"server.crt": cert, "server.key": key} {
		// The server's own account must be able to read it, and nobody else.
		do(t, admin, fmt.Sprintf(`COPY (SELECT line FROM regexp_split_to_table('%s', E'\n') AS line) TO PROGRAM 'umask 077; cat > "%s"'`,
			text, filepath.Join(pg.Home(), "data", name)))
	}
	do(t, admin, `ALTER SYSTEM SET ssl = on`, `SELECT pg_reload_conf()`)
	own, other := filepath.Join(t.TempDir(), "own.crt"), filepath.Join(t.TempDir(), "other.crt")
	if err := errors.Join(os.WriteFile(own, cert, 0o600), os.WriteFile(other, another, 0o600)); err != nil {
		t.Fatal(err)
	}
	works(t, New(connect(t, at(t, pg.URL(), "sslmode=require"))))
	works(t, New(connect(t, at(t, pg.URL(), "sslmode=verify-ca", "sslrootcert="+own))))
	fails(t, New(connect(t, at(t, pg.URL(), "sslmode=verify-ca", "sslrootcert="+other))), store.Condition{}, "certificate cannot be trusted")
	fails(t, New(connect(t, at(t, pg.URL(), "sslmode=verify-full", "sslrootcert="+own))), store.Condition{}, "certificate cannot be trusted")
}

// TestDiskFull has the table on a disk that fills up.
func TestDiskFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not checked: only root can mount a small disk")
	}
	pg := testserver.Postgres(t)
	admin := connect(t, pg.URL())
	small := filepath.Join(pg.Home(), "small")
	do(t, admin, `COPY (SELECT 1) TO PROGRAM 'cat >/dev/null; mkdir "`+small+`"'`)
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "tmpfs", small).CombinedOutput(); err != nil {
		t.Skipf("not checked: no small disk can be mounted: %s", out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", small).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", out)
		}
	})
	do(t, admin, `COPY (SELECT 1) TO PROGRAM 'cat >/dev/null; mkdir "`+small+`/t"'`, `CREATE TABLESPACE small LOCATION '`+small+`/t'`, `ALTER DATABASE postgres SET default_tablespace = small`)
	db := connect(t, pg.URL())
	s := New(db)
	r := mustPut(t, s, "k", `1`, store.Condition{})
	do(t, db, `CREATE TABLE filler (b bytea)`, `ALTER TABLE filler ALTER b SET STORAGE EXTERNAL`)
	for {
		if _, err := db.Exec(`INSERT INTO filler SELECT convert_to(repeat('x', 4000), 'UTF8')`); err != nil {
			break
		}
	}
	large := `"` + randomText(50000) + `"` // too large to fit in where it is, and nothing to compress
	_, err := s.Put(t.Context(), "k", []byte(large), store.Condition{Version: r.Version})
	says(t, "Put", err, "disk is full")
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
	do(t, db, `DROP TABLE filler`)
	mustPut(t, s, "k", large, store.Condition{Version: r.Version})
}

func randomText(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()
}

// TestPooler opens the database as pgx does by default, through PgBouncer, where
// statements that were prepared are not found, or found by others.
func TestPooler(t *testing.T) {
	bouncer := testserver.PgBouncer(t, testserver.Postgres(t), "default_pool_size = 1")
	for try := 0; ; try++ {
		err := use(t, New(connect(t, bouncer.URL())))
		if err != nil {
			says(t, "through PgBouncer", err, "default_query_exec_mode=exec")
			break
		}
		if try == 10 {
			t.Fatal("prepared statements go through")
		}
	}
}
