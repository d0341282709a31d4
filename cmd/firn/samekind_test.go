//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/ui"
)

// A series whose kind in firn.yaml is not that of the counter that the store has by its name
// draws nothing and creates nothing, neither by a command nor by a server that starts or
// reloads. What the hint says to write is served.
func TestSameKind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := databases(t, testserver.Shared(t, testserver.Postgres), "kinds")[0]
	firnOn(t, url, 0, "pool", "create", "--new")
	for _, store := range []string{url, "sqlite:" + dir + "/ids.db"} {
		firnOn(t, store, 0, "series", "create", "orders", "--kind", "sequence")
		firnOn(t, store, 0, "series", "create", "invoice", "--pattern", "INV-{yyyy}-{6}", "--zone", "Asia/Ho_Chi_Minh")
		right := "  orders: { kind: sequence }\n  " + `invoice: { kind: document, pattern: "INV-{yyyy}-{6}", zone: Asia/Ho_Chi_Minh }` + "\n"
		config := func(series string) { write(t, dir, "firn.yaml", "store: "+store+"\nseries:\n"+series) }
		config(right)
		s := serve(t, dir)
		s.until("ready", s.ready)
		for _, tt := range []struct{ name, said, have, write string }{
			{"orders", "document, pattern: \"O-{6}\"", "sequence", "orders: { kind: sequence }"},
			{"orders", "flake", "sequence", "orders: { kind: sequence }"},
			{"invoice", "sequence", "document", `invoice: { kind: document, pattern: "INV-{yyyy}-{6}", zone: Asia/Ho_Chi_Minh }`},
			{"invoice", "flake", "document", `invoice: { kind: document, pattern: "INV-{yyyy}-{6}", zone: Asia/Ho_Chi_Minh }`},
		} {
			kind, _, _ := strings.Cut(tt.said, ",")
			config("  " + tt.name + ": { kind: " + tt.said + " }\n")
			want := "series " + tt.name + " cannot be of kind " + kind + ": the store has a " + tt.have + " of that name"
			s.reload(notReloaded)
			if text := strings.ReplaceAll(s.log.String(), `\"`, `"`); !strings.Contains(text, want) || !strings.Contains(text, "write in firn.yaml: "+tt.write) {
				t.Errorf("%s as %s: %s", tt.name, tt.said, text)
			}
			p := serving(t, dir)
			err := p.Run()
			if text := strings.ReplaceAll(p.log.String(), `\"`, `"`); err == nil || !strings.Contains(text, want) || !strings.Contains(text, tt.write) {
				t.Errorf("%s as %s: the start: %v, %s", tt.name, tt.said, err, p.log)
			}
			if text := firnOn(t, store, ui.ExitUsage, "next", tt.name, "--config", dir+"/firn.yaml"); !strings.Contains(text, want) {
				t.Errorf("next: %s", text)
			}
		}
		config(right)
		s.reload(reloaded)
		if n, err := s.redis("").Incr(t.Context(), "orders").Result(); err != nil || n != 1 {
			t.Errorf("INCR orders: %d, %v", n, err)
		}
		s.stop()
		if text := firnOn(t, store, 0, "series", "ls"); strings.Count(text, "invoice") != 1 || strings.Count(text, "orders") != 1 {
			t.Errorf("a second counter was created:\n%s", text)
		}
	}
}

// A setting of a counter that cannot change: the error says what to write, or to type.
func TestMismatchSaysWhatToDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := func(more string) {
		write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries: { orders: { kind: sequence"+more+" } }\n")
	}
	config("")
	s := serve(t, dir)
	for more, want := range map[string]string{
		", first: 500":    "leave out first, or write 1; to have the next numbers from 500 on, where the counter is below: firn series raise orders 499;",
		", max: 500":      "leave out max, or write 9223372036854775807",
		", increment: 5":  "leave out increment, or write 1",
		", order: strict": "leave out order, or write free",
	} {
		config(more)
		s.reload(notReloaded)
		if text := s.log.String(); !strings.Contains(text, want) {
			t.Errorf("%s: %s", more, text)
		}
	}
	if out, err := command(t, dir+"/ids.db", "series", "raise", "orders", "499", "--yes").everything(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	config("")
	s.reload(reloaded)
	s.stop()
	if out := firnOn(t, "sqlite:"+dir+"/ids.db", 0, "next", "orders"); !strings.Contains(out, "500") {
		t.Error(out)
	}
}
