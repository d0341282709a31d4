package open_test

import (
	"database/sql"
	"net"
	"net/url"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// The SQL databases are reached through their sockets.
func TestSockets(t *testing.T) {
	pg, maria := testserver.Postgres(t, "unix_socket_directories=."), testserver.Shared(t, testserver.MariaDB)
	ask := func(driver, dsn, query string) (answer string) {
		t.Helper()
		db, err := sql.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.QueryRow(query).Scan(&answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	_, port, err := net.SplitHostPort(pg.Addr())
	if err != nil {
		t.Fatal(err)
	}
	dir := ask("pgx", pg.URL(), `SHOW data_directory`)
	socket := ask("mysql", "root@tcp("+maria.Addr()+")/test", `SELECT @@socket`)
	for _, u := range []string{
		"postgres://t@/postgres?host=" + url.QueryEscape(dir) + "&port=" + port,
		"mysql://root@/test?socket=" + url.QueryEscape(socket),
	} {
		s, err := open.URL(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), "socket/"+string(store.NewVersion()), []byte(`1`), store.Condition{}); err != nil {
			t.Errorf("%s: %v", u, err)
		}
		s.Close()
	}
}
