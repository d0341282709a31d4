//go:build !windows

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// TestTicketBeginsWithAStoreAway: a sequence over two stores begins with the one that answers, in a command
// and in a server, and takes the other one in when that is back. With neither it does not begin.
func TestTicketBeginsWithAStoreAway(t *testing.T) {
	there, away := testserver.Shared(t, testserver.Postgres), testserver.Postgres(t)
	first, second := database(t, there, "a"), database(t, away, "b")
	for _, order := range [][]string{{first, second}, {second, first}} {
		dir := emptyHome(t)
		name := "photo"
		if order[0] == second {
			name = "video"
		}
		write(t, dir, "firn.yaml", fmt.Sprintf("series:\n  %s: { kind: sequence, cache: 2, stores: [%q, %q] }\nlisten: { http: 127.0.0.1:0, resp: 127.0.0.1:0 }\n", name, order[0], order[1]))
		config := filepath.Join(dir, "firn.yaml")
		mustAll(t, "series create "+name+" --new --config "+config, "next "+name+" -n 3 --config "+config)
		away.Kill(t)
		out, errs, code := called(t, "next", name, "-n", "3", "--config", config)
		if numbers := strings.Fields(out); code != 0 || len(numbers) != 3 {
			t.Errorf("exit code %d, %q\n%s", code, out, errs)
		}
		s := serve(t, dir)
		s.until("ready", s.ready)
		odd := map[bool]int{}
		draw := func() {
			text, err := s.next(name)
			if err != nil {
				t.Fatalf("%v\n%s", err, s.log)
			}
			odd[strings.ContainsAny(text[len(text)-1:], "13579")]++
		}
		for range 5 {
			draw()
		}
		if len(odd) != 1 {
			t.Errorf("numbers of both stores: %v", odd)
		}
		away.Start(t)
		s.until("the other store gives numbers too", func() bool { draw(); return len(odd) == 2 })
		if name == "photo" {
			s.stop()
			continue
		}
		// A stop while one store is away ends well, and says once what was lost.
		away.Kill(t)
		began, before := time.Now(), len(s.log.String())
		s.stop()
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the stop took %s", took)
		}
		if said := s.log.String()[before:]; strings.Count(said, `"level":"WARN"`) != 1 || !strings.Contains(said, "numbers that were reserved and not printed are lost") {
			t.Errorf("the stop says\n%s", said)
		}
	}
}
