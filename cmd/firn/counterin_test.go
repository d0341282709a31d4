//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ui"
)

// TestNamesAreLookedUp: a name is what the store has by that name. An id in the place
// of a number is wrong, however unique.
func TestNamesAreLookedUp(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+dir+"/ids.db")
	next := func(want string, args ...string) {
		t.Helper()
		out, errs, code := called(t, append([]string{"next"}, args...)...)
		if code != 0 || out != want {
			t.Errorf("firn next %q: exit code %d, printed %q, want %q\n%s", args, code, out, want, errs)
		}
	}
	refused := func(want string, args ...string) {
		t.Helper()
		out, errs, code := called(t, append([]string{"next"}, args...)...)
		if code != ui.ExitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("firn next %q: exit code %d, %q, %s; want %q", args, code, out, errs, want)
		}
	}
	for _, args := range [][]string{
		{"series", "create", "orders", "--kind", "sequence"},
		{"series", "create", "invoice", "--pattern", "INV-{6}"},
	} {
		if _, errs, code := called(t, args...); code != 0 {
			t.Fatalf("%q: %s", args, errs)
		}
	}
	next("1\n2\n3\n", "orders", "-n", "3")
	next("INV-000001\n", "invoice")
	next("4\n", "orders", "--kind", "sequence")
	refused(`--kind: series orders cannot be of kind flake: the store has a sequence of that name`, "orders", "--kind", "flake")
	refused(`--kind: series invoice cannot be of kind sequence: the store has a document of that name`, "invoice", "--kind", "sequence")
	refused(`--pattern: series orders cannot be of kind document: the store has a sequence of that name`, "orders", "--pattern", "A{6}")
	if out, errs, code := called(t, "next", "photo"); code != 0 || len(out) < 17 {
		t.Errorf("photo: exit code %d, %q, %s; want an id", code, out, errs)
	}

	refused(`has no counter "ordrs", and one of nearly that name: orders`, "ordrs")
	refused("firn: hint: to draw from the counter: firn next orders", "ordres")
	refused("has no counter \"invoise\", and one of nearly that name: invoice", "invoise")
	if out, errs, code := called(t, "next", "ordrs", "--kind", "flake"); code != 0 || len(out) < 17 {
		t.Errorf("ordrs, said to be a flake: exit code %d, %q, %s; want an id", code, out, errs)
	}

	// A firn.yaml without series says nothing of names; one with series says all.
	write(t, dir, "firn.yaml", "pools: { default: { outage: 5m } }\n")
	next("5\n", "orders")
	if out, errs, code := called(t, "next", "photo"); code != 0 || len(out) < 17 {
		t.Errorf("photo beside a firn.yaml without series: exit code %d, %q, %s; want an id", code, out, errs)
	}
	write(t, dir, "firn.yaml", "series: { orders: { kind: flake } }\n")
	refused(`firn.yaml:1: series orders cannot be of kind flake: the store has a sequence of that name`, "orders")
	refused(`firn.yaml has no series "photo"`, "photo")
}

// TestNamesOfAStoreThatIsAway: no answer is not the answer that there is no counter.
func TestNamesOfAStoreThatIsAway(t *testing.T) {
	emptyHome(t)
	out, errs, code := called(t, "next", "orders", "--store", "postgres://app@127.0.0.1:1/app?connect_timeout=1")
	if code != ui.ExitFailed || out != "" || !strings.Contains(errs, "127.0.0.1") {
		t.Errorf("exit code %d, %q, %s", code, out, errs)
	}
}

// TestNamesAreOfOneRule: what a server takes for a name, next and firn.yaml do too.
func TestNamesAreOfOneRule(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+dir+"/ids.db")
	if _, errs, code := called(t, "series", "create", "user:1", "--kind", "sequence"); code != 0 {
		t.Error(errs)
	}
	if out, errs, code := called(t, "next", "user:1"); code != 0 || out != "1\n" {
		t.Errorf("next user:1: exit code %d, %q, %s", code, out, errs)
	}
	write(t, dir, "firn.yaml", "series: { \"user:1\": { kind: sequence } }\n")
	if out, errs, code := called(t, "next", "user:1"); code != 0 || out != "2\n" {
		t.Errorf("next user:1 of firn.yaml: exit code %d, %q, %s", code, out, errs)
	}
	for _, name := range []string{":a", "a/b", "a b", "", strings.Repeat("a", 65)} {
		if _, errs, code := called(t, "next", name); code != ui.ExitUsage {
			t.Errorf("next %q: exit code %d, %s", name, code, errs)
		}
	}
}
