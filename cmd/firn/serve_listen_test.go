//go:build !windows

package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A socket that a killed server has left is taken over; one that is answered is not.
func TestServeUnixSockets(t *testing.T) {
	dir := t.TempDir()
	sock := filepath.Join(dir, "sock")
	args := []string{"--store", "sqlite:" + filepath.Join(dir, "ids.db"), "--resp", "unix:" + sock, "--http", "off"}
	incr := func() {
		t.Helper()
		c, err := net.Dial("unix", sock)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(long))
		io.WriteString(c, "INCR photo\r\n")
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line[0] != ':' {
			t.Fatalf("%q, %v", line, err)
		}
	}
	s := serve(t, dir, args...)
	incr()
	if info, err := os.Stat(sock); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	second := serving(t, dir, args...)
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	if code := second.code(t); code != 1 || !strings.Contains(second.log.String(), "another process listens on") {
		t.Errorf("exit code %d\n%s", code, second.log)
	}
	incr()
	s.signal(os.Kill)
	s.Wait()
	s = serve(t, dir, args...)
	incr()
	s.stop()
	if _, err := os.Stat(sock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a stop has left the socket: %v", err)
	}
}

// A port that is taken is said before anything is leased.
func TestServePortTaken(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	store := filepath.Join(dir, "ids.db")
	s := serving(t, dir, "--store", "sqlite:"+store, "--http", l.Addr().String())
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if code := s.code(t); code != 1 || !strings.Contains(s.log.String(), "address already in use") ||
		!strings.Contains(s.log.String(), `"hints":["--http with another place, or off`) {
		t.Errorf("exit code %d\n%s", code, s.log)
	}
	if _, err := os.Stat(store); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store was made: %v", err)
	}
}

// A socket in a directory that is not there is said before anything is leased, and so is one whose directory
// went away since the last start. A server that runs keeps serving those that are connected.
func TestServeSocketWithoutDirectory(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, "run")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{"--store", "sqlite:" + filepath.Join(dir, "ids.db"), "--resp", "unix:" + filepath.Join(place, "sock")}
	s := serve(t, dir, args...)
	c, err := net.Dial("unix", filepath.Join(place, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(long))
	if err := os.RemoveAll(place); err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "INCR photo\r\n")
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line[0] != ':' {
		t.Errorf("%q, %v", line, err)
	}
	s.stop()
	again := serving(t, dir, args...)
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	if code := again.code(t); code != 1 || !strings.Contains(again.log.String(), "no such file or directory") || !strings.Contains(again.log.String(), `"hints":["--resp with another place, or off`) {
		t.Errorf("exit code %d\n%s", code, again.log)
	}
}

// More connections than there may be are refused, in both protocols, and those that
// are there go on.
func TestServeConnections(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries: { photo: { kind: flake } }\nlimits: { connections: 3 }\nlisten: { admin: \"127.0.0.1:0\" }\n")
	s := serve(t, dir)
	for _, tt := range []struct{ listener, ask, answer string }{
		{"resp", "INCR photo\r\n", ":"},
		{"http", "POST /v1/series/photo/next HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200"},
	} {
		dial := func() net.Conn {
			c, err := net.Dial("tcp", s.listen[tt.listener])
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			c.SetDeadline(time.Now().Add(long))
			return c
		}
		answered := func(c net.Conn) bool {
			if _, err := io.WriteString(c, tt.ask); err != nil {
				return false
			}
			b := make([]byte, 4096)
			n, _ := c.Read(b)
			return strings.HasPrefix(string(b[:n]), tt.answer)
		}
		var all []net.Conn
		for range 3 {
			c := dial()
			if !answered(c) {
				t.Fatalf("%s: not answered", tt.listener)
			}
			all = append(all, c)
		}
		if answered(dial()) {
			t.Errorf("%s: a fourth connection was answered", tt.listener)
		}
		if !answered(all[0]) {
			t.Errorf("%s: the first connection was dropped", tt.listener)
		}
		all[0].Close()
		var last net.Conn
		s.until("room again", func() bool { last = dial(); return answered(last) })
		last.Close() // for /metrics
		if tt.listener == "resp" {
			garbage := all[1]
			io.WriteString(garbage, "*none\r\n")
			io.ReadAll(garbage)
		}
	}
	s.listen["http"] = s.listen["admin"]
	s.until("metrics count connections", func() bool {
		_, text := s.get("/metrics")
		for _, want := range []string{
			"\nfirn_connections{listener=\"resp\"} 1\n", "\nfirn_connections_dropped_total{listener=\"resp\"} 1\n",
			"\nfirn_connections_dropped_total{listener=\"http\"} 0\n", "\nfirn_connections{listener=\"http\"} 2\n",
			"\nfirn_connections_refused_total{listener=\"admin\"} 0\n",
		} {
			if !strings.Contains(text, want) {
				return false
			}
		}
		return strings.Contains(text, "firn_connections_refused_total{listener=\"resp\"} ") && !strings.Contains(text, "firn_connections_refused_total{listener=\"resp\"} 0") &&
			!strings.Contains(text, "firn_connections_refused_total{listener=\"http\"} 0")
	})
	s.stop()
}

// With a listener for operators, metrics are there and nowhere else.
func TestServeAdmin(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, "--store", "sqlite:"+filepath.Join(dir, "ids.db"), "--admin", "127.0.0.1:0")
	if code, _ := s.get("/metrics"); code != http.StatusNotFound {
		t.Errorf("/metrics with HTTP: %d", code)
	}
	s.listen["http"] = s.listen["admin"]
	for path, want := range map[string]int{"/metrics": 200, "/readyz": 200, "/healthz": 200, "/v1/layouts": 404} {
		if code, _ := s.get(path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	s.stop()
}
