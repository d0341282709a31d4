//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// An operator who was told until when a program can run without the store is told that the store is
// back.
func TestHoldSaysThatTheStoreIsBack(t *testing.T) {
	t.Parallel()
	server := testserver.Etcd(t)
	url := "etcd://" + server.Addr()
	create := command(t, "", "pool", "create", "--new", "--store", url)
	if err := create.Run(); err != nil {
		t.Fatalf("%v: %s", err, create.errs.String())
	}
	run := func(flags ...string) *hold {
		h := startHold(t, "", append([]string{"--store", url, "--renew", "1s"}, flags...), "sh", "-c", "echo $$; while :; do sleep 0.1; done")
		h.pids(t, 1)
		return h
	}
	text := run()
	asJSON := run("--json")
	says := func(h *hold, what string) func() bool {
		return func() bool { return strings.Contains(read(t, h.errs), what) || h.over() }
	}
	server.Stop(t)
	await(t, "the warning", says(text, "firn: warning: store does not answer; ids continue until 20"))
	await(t, "the warning as JSON", says(asJSON, `{"warning":"store does not answer; ids continue until 20`))
	server.Start(t)
	await(t, "its end", says(text, "\nfirn: the store answers again: pool default, worker 0, term 1\n"))
	await(t, "its end as JSON", says(asJSON, `{"note":"the store answers again: pool default, worker 1, term 1"}`))
	for _, h := range []*hold{text, asJSON} {
		if h.over() {
			t.Errorf("%s has ended: %s", h.Args, read(t, h.errs))
		}
		kill(t, h.pids(t, 1)[0], 15)
	}
}
