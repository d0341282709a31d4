package testserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// PgBouncer starts PgBouncer in front of a PostgreSQL server, in transaction mode:
// each transaction may get another of the server's connections. The settings are
// lines of its section [pgbouncer].
func PgBouncer(tb testing.TB, pg *Server, settings ...string) *Server {
	tb.Helper()
	return launch(tb, pgbouncerKind, plan{
		ports: 1,
		command: func(s *Server) []string {
			path := filepath.Join(s.home, "pgbouncer.ini")
			if err := writePgBouncer(s, pg, path, settings); err != nil {
				tb.Fatal(err)
			}
			return []string{program("pgbouncer"), path}
		},
		url:   postgresURL,
		ready: postgresReady,
	})
}

func writePgBouncer(s, pg *Server, path string, settings []string) error {
	host, port, err := net.SplitHostPort(pg.Addr())
	if err != nil {
		return err
	}
	users := filepath.Join(s.home, "users.txt")
	config := fmt.Sprintf(`[databases]
* = host=%s port=%s

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
%s
`, host, port, s.ports[0], users, strings.Join(settings, "\n"))
	for path, text := range map[string]string{path: config, users: "\"t\" \"\"\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
