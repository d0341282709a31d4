package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// Series that count are refused on a lossy store, unless that is
// accepted; another run of the server stops them until their operator has raised
// the counters.
func TestLossySeries(t *testing.T) {
	t.Chdir(t.TempDir())
	server := testserver.Redis(t)
	firn := func(wantCode int, want string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		code := run(append(args, "--store", server.URL()), strings.NewReader(""), &out, &errs)
		if code != wantCode || !strings.Contains(out.String()+errs.String(), want) {
			t.Errorf("firn %s: code %d, want %d\n%s%swant %q", strings.Join(args, " "), code, wantCode, out.String(), errs.String(), want)
		}
	}
	document := []string{"invoice", "--pattern", "R{3}"}
	next := append([]string{"next"}, document...)
	create := append([]string{"series", "create"}, document...)
	firn(1, `hint: the same for a series that firn.yaml does not list: --on-lossy-store may-repeat`, next...)
	firn(1, `series "invoice" is refused: the store is lossy: it can lose a write that it acknowledged (redis `, create...)
	next, create = append(next, "--on-lossy-store", "may-repeat"), append(create, "--on-lossy-store", "may-repeat")
	firn(1, "hint: only if it never existed: firn series create invoice", next...)
	firn(0, "created the document invoice: R{3}", create...)
	firn(0, "R001\nR002\nR003\n", append(next, "-n", "3")...)
	firn(0, "firn: warning: best effort: the store is lossy: it can lose a write that it acknowledged, and then texts repeat: series invoice, ", next...)

	// What was said when a series was created speaks for no process that draws from it.
	firn(1, "hint: the same for a series that firn.yaml does not list: --on-lossy-store may-repeat", "next", "invoice")
	firn(0, "created the sequence orders", "series", "create", "orders", "--kind", "sequence", "--on-lossy-store", "may-repeat")
	firn(1, "hint: the same for a series that firn.yaml does not list: --on-lossy-store may-repeat", "next", "orders")
	firn(0, "1\n", "next", "orders", "--on-lossy-store", "may-repeat")
	firn(2, "--on-lossy-store is for series of kind sequence, document, and the store has no counter gone", "next", "gone", "--on-lossy-store", "may-repeat")
	firn(2, "firn series create gone --kind sequence --first N --on-lossy-store may-repeat --store "+server.URL()+", with N above every number in use", "next", "gone", "--on-lossy-store", "may-repeat")
	for _, name := range []string{"orders", "invoice"} {
		firn(0, `"on_lossy_store":"may-repeat"`, "series", "show", name, "--json")
	}

	server.Kill(t)
	server.Start(t)
	firn(1, `series "invoice" has stopped: the store can lose writes and was restarted or replaced, so it may have forgotten the last numbers`, next...)
	firn(1, "for sequences and documents it wants --numbers, and says how to find it", next...)
	firn(2, "--numbers is missing", "store", "recover", "--yes", "--outage", "1s")
	firn(0, "document invoice: 100 numbers are left out", "store", "recover", "--yes", "--outage", "1s", "--numbers", "100")
	firn(0, "R105\n", next...)
	firn(0, `"text":"R105"`, "series", "ls", "--json")
}
