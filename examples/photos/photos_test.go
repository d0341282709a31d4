//go:build !windows

package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestStory(t *testing.T) {
	var out bytes.Buffer
	servers := make([]*testserver.Server, 3)
	urls := make([]string, 3)
	for i := range servers {
		// Else no shard moves, and a subscription may begin only seconds after another one.
		servers[i] = testserver.Postgres(t, "wal_level=logical", "wal_retrieve_retry_interval=100ms")
		urls[i] = servers[i].URL()
	}
	restart := func() {
		servers[1].Stop(t)
		servers[1].Start(t)
	}
	if err := run(t.Context(), &out, urls, restart); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	var captions []string
	for _, m := range regexp.MustCompile(`(?m)^  \d+  [\d:.]+  \w+: (\w+) `).FindAllStringSubmatch(out.String(), -1) {
		captions = append(captions, m[1])
	}
	if got, want := strings.Join(captions, " "), "lake moraine glacier crevasse ice firn snow"; got != want {
		t.Errorf("the feed is %s, want %s", got, want)
	}
	if m := regexp.MustCompile(`(?m)^  (\d+) photos were shared`).FindStringSubmatch(out.String()); m == nil || m[1] == "0" {
		t.Errorf("none were shared while a server was restarted:\n%s", &out)
	}
	grown := regexp.MustCompile(`(?m)^  ([1-9]\d*) shards moved\n  ([1-9]\d*) photos were shared, the slowest within \S+; 0 were broken off, of 0 nobody knows$`)
	if !grown.MatchString(out.String()) {
		t.Errorf("while shards moved:\n%s", &out)
	}
}
