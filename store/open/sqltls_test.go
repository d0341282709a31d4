package open_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// TLS of the SQL databases, as the options of their URLs ask for it: with the right
// authority and name, and with none else.
func TestSQLTLS(t *testing.T) {
	cert, key := certificate(t, "localhost")
	other, _ := certificate(t, "localhost")
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for name, path := range map[string]string{"server.crt": cert, "server.key": key} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil { // the server runs as another user
			t.Fatal(err)
		}
		text[name] = string(b)
	}
	maria := testserver.MariaDB(t, "--ssl-cert="+filepath.Join(dir, "server.crt"), "--ssl-key="+filepath.Join(dir, "server.key"))
	pg := testserver.Postgres(t)
	admin, err := sql.Open("pgx", pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for name, b := range text { // the server's own account must be able to read it, and nobody else
		execute(t, admin, fmt.Sprintf(`COPY (SELECT line FROM regexp_split_to_table('%s', E'\n') AS line) TO PROGRAM 'umask 077; cat > "%s"'`,
			b, filepath.Join(pg.Home(), "data", name)))
	}
	execute(t, admin, `ALTER SYSTEM SET ssl = on`, `SELECT pg_reload_conf()`)
	pgPort, mariaPort := pg.Addr()[len("127.0.0.1:"):], maria.Addr()[len("127.0.0.1:"):]
	postgres, mysql := "postgres://t@%s:"+pgPort+"/postgres?", "mysql://root@%s:"+mariaPort+"/test?"
	for _, tt := range []struct {
		form, host, options string
		ok                  bool
	}{
		{postgres, "localhost", "sslmode=verify-full&sslrootcert=" + cert, true},
		{postgres, "127.0.0.1", "sslmode=verify-full&sslrootcert=" + cert, false},
		{postgres, "127.0.0.1", "sslmode=verify-ca&sslrootcert=" + cert, true},
		{postgres, "localhost", "sslmode=verify-full&sslrootcert=" + other, false},
		{postgres, "127.0.0.1", "sslmode=require", true},
		{mysql, "localhost", "ssl-ca=" + cert, true},
		{mysql, "127.0.0.1", "ssl-ca=" + cert, false},
		{mysql, "127.0.0.1", "ssl-ca=" + cert + "&tls=skip-verify", true},
		{mysql, "localhost", "ssl-ca=" + other, false},
		{mysql, "localhost", "tls=true", false}, // the system does not know the authority
		{mysql, "localhost", "tls=skip-verify", true},
	} {
		u := fmt.Sprintf(tt.form, tt.host) + tt.options
		s, err := open.URL(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Put(t.Context(), "tls/"+string(store.NewVersion()), []byte(`1`), store.Condition{})
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", u, err)
		}
		s.Close()
	}
}
