package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// On a store that others share, a first start names the pool and all counters that are
// missing, and the commands that create them, in an order in which they can be typed.
func TestMissingAllOnPostgres(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	db := testserver.Postgres(t).URL()
	t.Setenv("FIRN_STORE", db)
	write(t, dir, "firn.yaml", `
series:
  photo:   { kind: flake, pool: web }
  orders:  { kind: sequence }
  invoice: { kind: document, pattern: "INV-{6}" }
pools: { web: { outage: 1m } }
`)
	firn := func(args ...string) (string, int) {
		var out bytes.Buffer
		code := run(args, strings.NewReader(""), &out, &out)
		return out.String(), code
	}
	out, code := firn("serve", "--resp", "127.0.0.1:0", "--http", "off")
	if code != 1 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	for _, want := range []string{`has no pool "web"`, `no series "orders"`, `no series "invoice"`} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	const only = "hint: only if none of them ever existed: "
	_, commands, ok := strings.Cut(out, only)
	commands, _, _ = strings.Cut(commands, " (begins")
	if want := "firn pool create web --new; firn series create orders --kind sequence; firn series create invoice --pattern 'INV-{6}'"; !ok || commands != want {
		t.Fatalf("the commands are %q, want %q\n%s", commands, want, out)
	}
	for command := range strings.SplitSeq(commands, "; ") {
		words := strings.Fields(strings.ReplaceAll(strings.TrimPrefix(command, "firn "), "'", ""))
		if out, code := firn(words...); code != 0 {
			t.Errorf("%s: exit code %d\n%s", command, code, out)
		}
	}
	for name, want := range map[string]string{"orders": "1\n", "invoice": "INV-000001\n"} {
		if out, code := firn("next", name); code != 0 || out != want {
			t.Errorf("firn next %s: %q, exit code %d", name, out, code)
		}
	}
}

// What is missing is named all at once, the safest thing to do first: the counter that was
// meant, then what to do after a restoration, then a new counter. Following the hints
// begins no counter again.
func TestMissingCounters(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	db := "sqlite:" + dir + "/ids.db"
	firn := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if code := run(args, strings.NewReader(""), &out, &out); code != want {
			t.Fatalf("firn %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, want, out.String())
		}
		return out.String()
	}
	firn(0, "series", "create", "orders", "--kind", "sequence", "--store", db)
	firn(0, "series", "create", "invoice", "--pattern", "INV-{6}", "--store", db)
	firn(0, "store", "recover", "--yes", "--numbers", "10", "--store", db) // no counter begins by itself any more
	config := func(series string) {
		write(t, dir, "firn.yaml", "store: "+db+"\nseries:\n"+series)
	}
	const restored = "if it existed, or this store was restored or lost: "
	for _, tt := range []struct {
		what, series string
		args         []string
		want         []string // hints, in this order
	}{
		{
			"a mistyped sequence", "  ordres: { kind: sequence }\n",
			[]string{"next", "ordres"},
			[]string{
				"to use the counter that is there, write its name: orders",
				restored + "firn series create ordres --kind sequence --first N, with N above every number in use, before anything is started",
				"only if it never existed: firn series create ordres --kind sequence --new (begins a new counter ordres at 1)",
			},
		},
		{
			"a mistyped document", "  invioce: { kind: document, pattern: \"INV-{6}\" }\n",
			[]string{"serve", "--resp", "127.0.0.1:0", "--http", "off"},
			[]string{
				"to use the counter that is there, write its name: invoice",
				restored + "firn series create invioce --pattern 'INV-{6}' --after TEXT, with TEXT the last one given out, before anything is started",
				"only if it never existed: firn series create invioce --pattern 'INV-{6}' --new (begins a new counter invioce at 1)",
			},
		},
		{
			"nothing like it", "  photos: { kind: sequence, first: 500 }\n",
			[]string{"serve", "--resp", "127.0.0.1:0", "--http", "off"},
			[]string{
				restored + "firn series create photos --kind sequence --first N, with N above every number in use, before anything is started",
				"only if it never existed: firn series create photos --kind sequence --new (begins a new counter photos at 500)",
			},
		},
		{
			"several", "  ordres: { kind: sequence }\n  bill: { kind: document, pattern: \"B{4}\" }\n",
			[]string{"serve", "--resp", "127.0.0.1:0", "--http", "off"},
			[]string{
				"to use the counter that is there in place of ordres, write its name: orders",
				"if one of them existed, or this store was restored or lost: firn series create ordres --kind sequence --first N; " +
					"firn series create bill --pattern 'B{4}' --after TEXT, with N above every number in use, and TEXT the last one given out, before anything is started",
				"only if none of them ever existed: firn series create ordres --kind sequence --new; firn series create bill --pattern 'B{4}' --new " +
					"(begins a new counter ordres at 1, a new counter bill at 1)",
			},
		},
		{
			"doctor", "  ordres: { kind: sequence }\n",
			[]string{"doctor"},
			nil,
		},
	} {
		config(tt.series)
		want := 1
		if tt.args[0] == "doctor" {
			want = 3
		}
		out := firn(want, tt.args...)
		if tt.args[0] == "doctor" {
			if line := "bad   series ordres: the store has no series \"ordres\"; did you mean \"orders\"?"; !strings.Contains(out, line) {
				t.Errorf("%s: %q is missing in\n%s", tt.what, line, out)
			}
			continue
		}
		var hints []string
		for line := range strings.Lines(out) {
			if hint, ok := strings.CutPrefix(line, "firn: hint: "); ok {
				hints = append(hints, strings.TrimSpace(hint))
			}
		}
		if got, want := strings.Join(hints, "\n"), strings.Join(tt.want, "\n"); got != want {
			t.Errorf("%s: the hints are\n%s\nwant\n%s\n%s", tt.what, got, want, out)
		}
	}
}
