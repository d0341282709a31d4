package sim

import (
	"fmt"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// toldOf is what a counter's driver is told, as a trace has it: of the action that was under
// way, or a wish.
func toldOf(do block.Action, e block.Event) string {
	a, ok := e.(block.Answer)
	switch {
	case !ok:
		return told(e)
	case a.Err != nil:
		return fmt.Sprintf("no answer (%v)", a.Err)
	case do.Op == record.Put:
		return fmt.Sprintf("wrote version %s", a.Record.Version)
	case do.Op == record.Get:
		return found(a.Record)
	case do.Op == record.Ask:
		return fmt.Sprintf("the store is %s, %s", a.Durability, a.Durability.Instance)
	}
	return "woke"
}

func found(r store.Record) string {
	if r.Version == "" {
		return "found nothing"
	}
	return fmt.Sprintf("found %s (version %s)", r.Value, r.Version)
}

// told is an event as a trace has it.
func told(e any) string {
	switch e := e.(type) {
	case term.Found:
		return found(e.Record)
	case term.Listed:
		return fmt.Sprintf("found %d records", len(e.Records))
	case term.Wrote:
		return fmt.Sprintf("wrote version %s", e.Record.Version)
	case term.Unknown:
		return fmt.Sprintf("no answer (%v)", e.Err)
	case term.Promised:
		return fmt.Sprintf("the store is %s", e.Durability)
	case block.Take:
		return fmt.Sprintf("takes %d and %d ahead", e.Need, e.Ahead)
	case term.Stop:
		return fmt.Sprintf("stops, last tick %d", e.Last)
	case block.Stop:
		return fmt.Sprintf("stops, highest number %d", e.Used)
	}
	return fmt.Sprintf("%T", e)
}
