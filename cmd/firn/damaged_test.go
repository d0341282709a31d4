//go:build !windows

package main

import (
	"context"
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
	for _, line := range []string{"series show orders", "series show invoice", "series raise orders 100 --yes", "series raise invoice INV-000100 --yes", "next orders", "store recover --numbers 1000 --yes"} {
		has(line, firn(1, line), hint, "firn store recover")
	}
	before := firn(0, "series show bills")
	if after := firn(0, "series show bills"); before != after || !strings.Contains(after, "last number") {
		t.Errorf("the recovery that was refused changed %s:\n%s", bills, after)
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
