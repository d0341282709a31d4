package testserver

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Postgres starts a PostgreSQL server. The settings are those of -c, such as
// "wal_level=logical". The user t may do everything, without a password. Its version is the first
// one that FIRN_TEST_POSTGRES names, or that of this machine.
func Postgres(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	from, _ := asked()
	return startPostgres(tb, from, nil, settings)
}

// PostgresTarget is Postgres, for the server that a shard moves to: its version is the second one
// of FIRN_TEST_POSTGRES.
func PostgresTarget(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	_, to := asked()
	return startPostgres(tb, to, nil, settings)
}

// startPostgres starts a server of a major version, with variables in its environment.
func startPostgres(tb testing.TB, major string, env, settings []string) *Server {
	tb.Helper()
	require(tb, postgresKind)
	p := postgresOf(tb, major)
	return launch(tb, postgresKind, plan{
		ports:   1,
		prepare: func(s *Server) error { return p.prepare(s) },
		command: func(s *Server) []string {
			argv := p.command(s, settings)
			if env != nil {
				argv = append(append([]string{program("env")}, env...), argv...)
			}
			return argv
		},
		url:      postgresURL,
		ready:    postgresReady,
		starting: postgresStarting,
		programs: p,
	})
}

func postgresURL(addr string) string { return "postgres://t@" + addr + "/postgres?sslmode=disable" }

func (p *postgres) command(s *Server, settings []string) []string {
	argv := p.argv(
		"postgres", "-D", filepath.Join(s.home, "data"),
		"-h", "127.0.0.1", "-p", strconv.Itoa(s.ports[0]),
		"-c", "unix_socket_directories=", "-c", "shared_buffers=16MB",
		// In files of the data directory, which go with it.
		"-c", "dynamic_shared_memory_type=mmap",
	)
	for _, set := range settings {
		argv = append(argv, "-c", set)
	}
	return argv
}

// prepare makes the data directory of a server.
func (p *postgres) prepare(s *Server) error {
	data := filepath.Join(s.home, "data")
	made := template{
		name: "postgres" + p.major,
		argv: p.argv("initdb", "-D", "%s", "-U", "t", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"),
	}
	if p.alike {
		return made.make(s, data)
	}
	if err := made.copyTo(s, data); err != nil {
		return err
	}
	return p.newSystem(s, data)
}

// newSystem gives a copied data directory a system identifier of its own, as
// every PostgreSQL server has: it is the first number of global/pg_control, which
// ends in its checksum. The log, where it stands too, is begun anew.
func (p *postgres) newSystem(s *Server, data string) error {
	path := filepath.Join(data, "global", "pg_control")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	for end := 8; end+4 <= len(b); end += 4 {
		if binary.NativeEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) {
			continue
		}
		rand.Read(b[:4])
		binary.NativeEndian.PutUint32(b[end:], crc32.Checksum(b[:end], castagnoli))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return err
		}
		return s.run(p.argv("pg_resetwal", "-f", "-D", data)...)
	}
	return errors.New("testserver: pg_control has no checksum where PostgreSQL writes one")
}

// postgresStarting reads how far the server is, which it notes in a file of its data directory: the first
// line is its process, and the eighth is "ready", or "standby", once it takes connections.
func postgresStarting(s *Server) bool {
	b, err := os.ReadFile(filepath.Join(s.home, "data", "postmaster.pid"))
	if err != nil {
		return true
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 8 || lines[0] != strconv.Itoa(s.process.PID) { // that of an earlier one
		return true
	}
	state := strings.TrimSpace(lines[7])
	return state != "ready" && state != "standby"
}

// postgresReady logs in as the user t and waits to be asked for a query. It is
// the protocol's third version, in which all messages but the first have a type
// and a length.
func postgresReady(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	hello := []byte("\x00\x03\x00\x00user\x00t\x00database\x00postgres\x00\x00")
	if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(hello)+4)), hello...)); err != nil {
		return err
	}
	for {
		var head [5]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return err
		}
		body := make([]byte, min(binary.BigEndian.Uint32(head[1:])-4, 1<<16))
		if _, err := io.ReadFull(c, body); err != nil {
			return err
		}
		switch {
		case head[0] == 'Z': // ready for query
			_, err := c.Write([]byte("X\x00\x00\x00\x04"))
			return err
		case head[0] == 'E' && bytes.Contains(body, []byte("\x00C28")):
			return nil // it serves, but its settings ask for a password
		case head[0] == 'R' && binary.BigEndian.Uint32(body) != 0:
			return nil
		case head[0] == 'E':
			return fmt.Errorf("testserver: %q", body)
		}
	}
}

// A Standby is a PostgreSQL server that follows another one.
type Standby struct {
	*Server
	Link *Proxy // between the two: cut, hung or slow, it makes the standby lag
}

// PostgresStandby starts a standby of primary, which replicates asynchronously.
func PostgresStandby(tb testing.TB, primary *Server, settings ...string) *Standby {
	tb.Helper()
	link := NewProxy(tb, primary.Addr())
	return &Standby{Server: startBackup(tb, primary, link.Addr(), []string{"-R"}, settings), Link: link}
}

// PostgresCopy starts the files of a base backup of a server as they are: the copy has the system identifier and the
// timeline of the original.
func PostgresCopy(tb testing.TB, of *Server, settings ...string) *Server {
	tb.Helper()
	return startBackup(tb, of, of.Addr(), nil, settings)
}

// startBackup starts what pg_basebackup makes of a server, which it reaches at an address.
func startBackup(tb testing.TB, of *Server, addr string, options, settings []string) *Server {
	tb.Helper()
	p := of.plan.programs
	prepare := func(s *Server) error {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return err
		}
		data, from := filepath.Join(s.home, "data"), fmt.Sprintf("host=%s port=%s user=t sslmode=disable", host, port)
		err = s.run(p.argv("pg_basebackup", append([]string{
			"-D", data, "-X", "stream", "-c", "fast", "--no-sync", "-d", from,
		}, options...)...)...)
		if err != nil || !slices.Contains(options, "-R") {
			return err
		}
		// A newer pg_basebackup -R writes options that an older server does not know. The last line counts.
		conf, err := os.OpenFile(filepath.Join(data, "postgresql.auto.conf"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(conf, "primary_conninfo = '%s'\n", from)
		return errors.Join(err, conf.Close())
	}
	return launch(tb, postgresKind, plan{
		ports:    1,
		prepare:  prepare,
		command:  func(s *Server) []string { return p.command(s, settings) },
		url:      postgresURL,
		ready:    postgresReady,
		starting: postgresStarting,
		programs: p,
	})
}

// Promote makes the standby a primary, with what it has received, and waits until
// it takes writes.
func (s *Standby) Promote(tb testing.TB) {
	tb.Helper()
	if err := s.run(s.plan.programs.argv("pg_ctl", "promote", "-w", "-t", "60", "-D", filepath.Join(s.home, "data"))...); err != nil {
		tb.Fatal(err)
	}
}
