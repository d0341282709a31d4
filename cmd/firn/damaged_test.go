//go:build !windows

package main

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// A record that cannot be read hides no other one from a listing, and each command that meets it says
// which it is and what makes the store safe. A recovery changes nothing then.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	firn := func(want int, line string) string { return firnOn(t, pg.URL(), want, strings.Fields(line)...) }
	for _, line := range []string{
		"series create orders --kind sequence", "series create bills --kind sequence", "next bills -n 3",
		"series create invoice --pattern INV-{6}", "next invoice", "series create note --pattern N-{6}", "next note",
		"pool create --new", "next",
	} {
		firn(0, line)
	}
	rows, err := conn.Query(t.Context(), "SELECT key FROM firn_records")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	worker := ""
	for _, key := range keys {
		if strings.HasPrefix(key, "pool/default/") {
			worker = key
		}
	}
	orders, bills := "segment/orders", "segment/bills"
	for _, key := range []string{orders, "serial/invoice", worker} {
		tag, err := conn.Exec(t.Context(), "UPDATE firn_records SET value = '{' WHERE key = $1", key)
		if err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s of %v: %v", key, keys, err)
		}
	}
	has := func(line, out string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("firn %s lacks %q:\n%s", line, want, out)
			}
		}
	}
	const hint = "if there is a backup: stop all processes that use the store, put the record "
	has("series ls", firn(0, "series ls"), "bills", "N-000001", "record "+orders+": ", "record serial/invoice: ", hint+"serial/invoice back from it, then, before any process starts: firn store recover")
	has("series ls --json", firn(0, "series ls --json"), `{"series":"invoice","kind":"document","error":"record serial/invoice: `)
	has("worker ls", firn(0, "worker ls"), "damaged", "record "+worker+": ", hint+worker)
	value := func(key string) (text string) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT value FROM firn_records WHERE key = $1", key).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := value(bills)
	for _, line := range []string{"series show orders", "series show invoice", "series raise orders 100 --yes", "series raise invoice INV-000100 --yes", "next orders", "store recover --numbers 1000 --yes"} {
		has(line, firn(1, line), hint, "firn store recover")
	}
	if after := value(bills); after != before {
		t.Errorf("a command that was refused changed %s from %s to %s", bills, before, after)
	}
	for _, key := range []string{orders, "serial/invoice", worker} { // as the hint says where there is no backup
		if _, err := conn.Exec(t.Context(), "DELETE FROM firn_records WHERE key = $1", key); err != nil {
			t.Fatal(err)
		}
	}
	firn(0, "store recover --numbers 1000 --outage 1s --yes")
	has("next orders", firn(2, "next orders"), "--first N")
	firn(0, "series create orders --kind sequence --first 5000")
	has("next orders", firn(0, "next orders"), "5000")
}

// A pool whose record cannot be read hides no other pool, nor the workers of another.
func TestDamagedPool(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	firn := func(want int, line string) string { return firnOn(t, pg.URL(), want, strings.Fields(line)...) }
	for _, line := range []string{
		"pool create p-10 --workers 0-1 --new", "pool create p-2 --workers 2-3 --new", "pool create web --workers 4-5 --new",
		"next --pool p-10", "next --pool p-2", "next --pool web",
	} {
		firn(0, line)
	}
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	damage := func(key string) {
		t.Helper()
		if tag, err := conn.Exec(t.Context(), "UPDATE firn_records SET value = '{' WHERE key LIKE $1", key); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s: %v", key, err)
		}
	}
	matches := func(line string, want ...string) {
		t.Helper()
		out := firn(0, line)
		if !regexp.MustCompile(`(?s)` + strings.Join(want, ".*")).MatchString(out) {
			t.Errorf("firn %s lacks %q:\n%s", line, want, out)
		}
	}
	damage("pool/p-2")
	const hint = "firn: hint: if there is a backup: stop all processes that use the store, put the record pool/p-2 back from it"
	matches("pool ls", `\np-2 +- .* record pool/p-2: `, `\np-10 +firn +0-1 `, `\nweb +firn +4-5 `, `firn: warning: record pool/p-2: `, hint)
	matches("pool ls --json", `\{"pool":"p-2","error":"record pool/p-2: `, `\{"pool":"web",`)
	matches("worker ls", `\np-2 +- +damaged `, `\np-10 +0 +free `, `\nweb +4 +free `, `firn: warning: record pool/p-2: `, hint)
	matches("worker ls --json", `\{"pool":"p-2","error":"record pool/p-2: `, `\{"pool":"p-10","worker":0,`)
	matches("version --store "+pg.URL(), `firn: warning: record pool/p-2: `, hint)
	damage("pool/web/%")
	matches("pool ls", `\np-10 +firn +0-1 `, `\nweb +- .* record pool/web/\S+: `, `put the record pool/web/`)
	firn(1, "pool show p-2")
	firn(1, "worker ls --pool p-2")
}
