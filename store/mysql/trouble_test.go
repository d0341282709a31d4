package mysql

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

// TestRefused has the server refuse for reasons of its own, for certain.
func TestRefused(t *testing.T) {
	server := testserver.MariaDB(t)
	c := config(t, server)
	db := connect(t, c)
	s := New(db)
	r := mustPut(t, s, "k", `1`, store.Condition{})
	do(t, db, `CREATE USER app@'127.0.0.1'`, `GRANT SELECT, INSERT, UPDATE ON test.* TO app@'127.0.0.1'`)
	app := New(connect(t, with(c, func(c *mysql.Config) { c.User = "app" })))
	refused := func(what string, s *Store, want string) {
		t.Helper()
		put, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
		says(t, what, err, want)
		if put.Version != "" {
			t.Errorf("%s: for certain not carried out, and there is a Version", what)
		}
	}
	do(t, db, `SET GLOBAL read_only = 1`)
	refused("read_only", app, "the server is read-only")
	fails(t, app, store.Condition{Version: r.Version}, "connect to the primary")
	do(t, db, `SET GLOBAL read_only = 0`)
	works(t, app)
	r, _ = s.Get(t.Context(), "k")

	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`SELECT * FROM firn_records FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	option := func(name, value string) *Store {
		return New(connect(t, with(c, func(c *mysql.Config) { c.Params = map[string]string{name: value} })))
	}
	refused("lock wait", option("innodb_lock_wait_timeout", "1"), "innodb_lock_wait_timeout")
	put, err := option("max_statement_time", "0.1").Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
	says(t, "max_statement_time", err, "max_statement_time")
	if put.Version == "" {
		t.Error("cancelled: taken for certain")
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
	do(t, db, "ALTER TABLE firn_records CHANGE value text LONGTEXT")
	refused("a column", s, "not as firn makes it")
}

func TestNotLetIn(t *testing.T) {
	server := testserver.MariaDB(t, "--max-connections=10")
	c := config(t, server)
	admin := connect(t, c)
	do(t, admin, `CREATE USER app@'127.0.0.1' IDENTIFIED BY 'right'`, `GRANT ALL ON test.* TO app@'127.0.0.1'`)
	as := func(change func(*mysql.Config)) *Store { return New(connect(t, with(c, change))) }
	app := as(func(c *mysql.Config) { c.User, c.Passwd = "app", "right" })
	works(t, app)
	none := store.Condition{}
	fails(t, as(func(c *mysql.Config) { c.User, c.Passwd = "app", "wrong" }), none, "refuses this user or the password")
	fails(t, as(func(c *mysql.Config) { c.User = "nobody" }), none, "refuses this user or the password")
	fails(t, as(func(c *mysql.Config) { c.User, c.Passwd, c.DBName = "app", "right", "none" }), none, "the database does not exist, or this user has no right in it: check its name. An administrator grants this user")
	fails(t, as(func(c *mysql.Config) { c.DBName = "none" }), none, "the database does not exist: check its name. Only if no program has used it under another name: CREATE DATABASE")
	fails(t, as(func(c *mysql.Config) { c.Addr = "no.such.host.invalid:3306" }), none, "cannot be resolved", "in time")
	_, err := as(func(c *mysql.Config) { c.DBName = "" }).Get(t.Context(), "k")
	says(t, "no database", err, "no database is selected")

	do(t, admin, `ALTER USER app@'127.0.0.1' IDENTIFIED BY 'other'`)
	app.db.SetMaxIdleConns(0) // those there are stay let in
	fails(t, app, none, "refuses this user or the password")
	do(t, admin, `ALTER USER app@'127.0.0.1' IDENTIFIED BY 'right'`)
	works(t, app)

	crowd, err := sql.Open("mysql", with(c, func(c *mysql.Config) { c.User, c.Passwd = "app", "right" }).FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
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
	fails(t, app, none, "too many connections")
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
// that is of another host's, or that has none.
func TestCertificate(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	cert, key := tabletest.Certificate(t)
	for name, text := range map[string][]byte{"cert": cert, "key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil { // the server runs as another user
			t.Fatal(err)
		}
	}
	server := testserver.MariaDB(t, "--ssl-cert="+filepath.Join(dir, "cert"), "--ssl-key="+filepath.Join(dir, "key"))
	own, other := x509.NewCertPool(), x509.NewCertPool()
	own.AppendCertsFromPEM(cert)
	another, _ := tabletest.Certificate(t)
	other.AppendCertsFromPEM(another)
	c := config(t, server)
	over := func(conf *tls.Config) *Store {
		connector, err := mysql.NewConnector(with(c, func(c *mysql.Config) { c.TLS = conf }))
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		t.Cleanup(func() { db.Close() })
		return New(db)
	}
	works(t, over(&tls.Config{RootCAs: own, ServerName: "db.example"}))
	fails(t, over(&tls.Config{RootCAs: other, ServerName: "db.example"}), store.Condition{}, "certificate cannot be trusted")
	fails(t, over(&tls.Config{RootCAs: own, ServerName: "127.0.0.1"}), store.Condition{}, "certificate cannot be trusted")
	c = config(t, shared(t))
	fails(t, over(&tls.Config{RootCAs: own, ServerName: "db.example"}), store.Condition{}, "offers no TLS")
}

// TestDiskFull has the table in a file that may not grow. (On a disk that is full in
// earnest MariaDB may end itself: the connection is lost, and nothing listens.)
func TestDiskFull(t *testing.T) {
	args := []string{"--innodb-file-per-table=0", "--innodb-data-file-path=ibdata1:12M:autoextend:max:24M"}
	server := testserver.MariaDB(t, args...)
	db := connect(t, config(t, server))
	s := New(db)
	r := mustPut(t, s, "k", `1`, store.Condition{})
	do(t, db, `CREATE TABLE filler (b LONGBLOB) ENGINE=InnoDB`)
	for err := error(nil); err == nil; {
		_, err = db.Exec(`INSERT INTO filler VALUES (REPEAT('x', 60000))`)
	}
	large := `"` + strings.Repeat("x", 60000) + `"`
	for i := 0; ; i++ {
		put, err := s.Put(t.Context(), fmt.Sprint(i), []byte(large), store.Condition{})
		if err != nil {
			says(t, "Put", err, "disk is full")
			got, err := s.Get(t.Context(), fmt.Sprint(i))
			if err != nil || got.Version != "" || put.Version != "" {
				t.Errorf("tried %+v, is %+v, %v", put, got, err)
			}
			break
		}
		if i == 1000 {
			t.Fatal("the disk is never full")
		}
	}
	if _, err := s.Get(t.Context(), "k"); err != nil { // as it writes too
		says(t, "Get", err, "disk is full")
	}
	server.Stop(t)
	args[1] = "--innodb-data-file-path=ibdata1:12M:autoextend"
	server.Start(t)
	isAgain(t, s, r)
	works(t, s)
	mustPut(t, s, "large", large, store.Condition{})
}
