package holder

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A process continues a grant only on a durable store, with a boot clock that has not gone back, with the
// worker that it is to have, and where it need not wait long for its first id.
func TestAdopt(t *testing.T) {
	layout, wall := firn.Default(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const boot = time.Hour
	good := Handover{Mark: layout.Tick(wall.Add(time.Second)), Grant: term.Saved{Worker: 3, PoolID: "p", Since: boot}}
	for want, change := range map[string]func(*Process, *Handover){
		"":                             func(*Process, *Handover) {},
		"the store is lossy":           func(_ *Process, left *Handover) { left.Grant.Lossy = true },
		"store is lossy":               func(p *Process, _ *Handover) { p.View.Durability.Durable = false },
		"the boot clock has gone back": func(_ *Process, left *Handover) { left.Grant.Since++ },
		"it has worker 3":              func(p *Process, _ *Handover) { p.Rules.Choice, p.Rules.Worker = term.Insist, 4 },
		"its mark lies":                func(_ *Process, left *Handover) { left.Mark = layout.Tick(wall.Add(6 * time.Second)) },
	} {
		durable := store.Durability{Durable: true}
		rules := term.Default("pool", layout, durable)
		p := New(&rules, "test", [32]byte{}, term.Now{Wall: wall, Boot: boot}, term.View{Durability: durable})
		left := good
		change(&p, &left)
		err := p.Adopt(left, boot)
		switch {
		case want == "" && (err != nil || p.resume == nil || p.base != left.Mark):
			t.Errorf("it is not continued: %v", err)
		case want != "" && (err == nil || p.resume != nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %q", err, want)
		}
	}
}
