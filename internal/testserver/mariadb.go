package testserver

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// MariaDB starts a MariaDB server with an empty database, test. The user root may
// do everything, without a password.
func MariaDB(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return launch(tb, mariadbKind, plan{
		ports:   1,
		prepare: prepareMariaDB,
		command: func(s *Server) []string {
			return append([]string{
				program("mariadbd"),
				"--no-defaults", // must be the first; the system's files are another server's
				"--datadir=" + filepath.Join(s.home, "data"), "--tmpdir=" + s.home,
				"--socket=" + filepath.Join(s.home, "s"), "--pid-file=" + filepath.Join(s.home, "pid"),
				"--bind-address=127.0.0.1", "--port=" + strconv.Itoa(s.ports[0]), "--skip-name-resolve",
				"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M",
			}, args...)
		},
		url:   func(addr string) string { return "mysql://root@" + addr + "/test" },
		ready: mariadbReady,
	})
}

func prepareMariaDB(s *Server) error {
	data := filepath.Join(s.home, "data")
	err := template{
		name: "mariadb",
		argv: []string{
			program("mariadb-install-db"), "--no-defaults", "--datadir=%s",
			"--auth-root-authentication-method=normal", // not by the socket's peer: clients come by TCP
			"--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=8M",
		},
	}.copyTo(s, data)
	if err != nil {
		return err
	}
	// A directory is a database. The installer's own would let everybody in.
	test := filepath.Join(data, "test")
	return errors.Join(os.Mkdir(test, 0o700), give(test, s.account))
}

// mariadbReady waits for the server's greeting, which names its protocol.
func mariadbReady(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	var head [5]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	if head[4] != 10 {
		return errors.New("testserver: mariadb sends no greeting")
	}
	return nil
}
