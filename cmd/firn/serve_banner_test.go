//go:build !windows

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/daemon"
)

// A server that starts with a grant file while its store is away says that the store has not
// answered, and nothing in its place.
func TestServeSaysThatTheStoreIsAway(t *testing.T) {
	durable := true
	r := daemon.Running{First: server.State{Kind: config.Flake, Store: "redis://cache", Durable: &durable}}
	text := strings.Join((&serveCommand{}).facts(r), "\n")
	if strings.Contains(text, ": )") || !strings.Contains(text, "store redis://cache (durable when it was last heard): it has not answered since this server started") {
		t.Error(text)
	}
}

// A server whose first lines nobody can read serves all the same, says in its log where it listens,
// and why it stops.
func TestServeWithoutAReader(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	s := serving(t, t.TempDir(), "--store", "sqlite:ids.db")
	s.Stdout = write
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	t.Cleanup(func() { s.Process.Kill(); s.Wait() })
	s.until("the log has the addresses", func() bool { return strings.Contains(s.log.String(), "could not be printed") })
	line := regexp.MustCompile(`"http":"([^"]*)"`).FindStringSubmatch(s.log.String())
	if line == nil {
		t.Fatal(s.log)
	}
	s.listen = map[string]string{"http": line[1]}
	if code, text := s.do("POST", "/v1/series/photo/next", ""); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	s.stop()
	if !strings.Contains(s.log.String(), `"msg":"stopping","why":"terminated"`) {
		t.Error(s.log)
	}
}
