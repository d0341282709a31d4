//go:build !windows

package main

import (
	"bufio"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
)

// database makes a database of a test's own, which is a server of a cluster.
func database(t *testing.T, server *testserver.Server, name string) (address string) {
	t.Helper()
	return testdb.New(t, server, strings.ToLower(t.Name())+name)
}

// succeed runs the command, and returns what it prints.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	p := command(t, "none", args...)
	var out strings.Builder
	p.Stdout = &out
	if err := p.Run(); err != nil {
		t.Fatalf("firn %s: %v\n%s", strings.Join(args, " "), err, &p.errs)
	}
	return out.String()
}

// TestShardsStatusWatch: it looks again and again, says what is written, and ends well
// when it is told to.
func TestShardsStatusWatch(t *testing.T) {
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	for _, way := range []struct {
		flags []string
		first string
		rate  *regexp.Regexp
	}{
		{nil, `^20\d\d-.*Z$`, regexp.MustCompile(`^a .* [0-9.]+ rows/s$`)},
		{[]string{"--json"}, `^{"server":"a".*"time":"20[^"]*Z"}$`, regexp.MustCompile(`^{"server":"a".*"rows_written_per_second":[0-9.]+,"time":"20[^"]*Z"}$`)},
	} {
		p := command(t, "none", append(append([]string{"shard", "status", "--watch"}, way.flags...), flags...)...)
		out, err := p.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Process.Kill() }) // if it has not ended
		lines := bufio.NewScanner(out)
		if !lines.Scan() || !regexp.MustCompile(way.first).MatchString(lines.Text()) {
			t.Errorf("the first line is %q", lines.Text())
		}
		onDatabase(t, addresses[0], "CREATE TABLE IF NOT EXISTS insta0.t (n integer); INSERT INTO insta0.t SELECT generate_series(1, 1000)")
		found := false
		for !found && lines.Scan() {
			found = way.rate.MatchString(lines.Text())
		}
		if err := p.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // it may be printing
		}
		if code := p.code(t); !found || code != 0 {
			t.Errorf("rates were printed: %t; exit code %d\n%s", found, code, &p.errs)
		}
	}
}
