package sim

import (
	"fmt"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// told is an event as a trace has it.
func told(e any) string {
	found := func(r store.Record) string {
		if r.Version == "" {
			return "found nothing"
		}
		return fmt.Sprintf("found %s (version %s)", r.Value, r.Version)
	}
	switch e := e.(type) {
	case term.Found:
		return found(e.Record)
	case block.Found:
		return found(e.Record)
	case term.Listed:
		return fmt.Sprintf("found %d records", len(e.Records))
	case term.Wrote:
		return fmt.Sprintf("wrote version %s", e.Record.Version)
	case block.Wrote:
		return fmt.Sprintf("wrote version %s", e.Record.Version)
	case term.Unknown:
		return fmt.Sprintf("no answer (%v)", e.Err)
	case block.Unknown:
		return fmt.Sprintf("no answer (%v)", e.Err)
	case term.Promised:
		return fmt.Sprintf("the store is %s", e.Durability)
	case block.Promised:
		return fmt.Sprintf("the store is %s, %s", e.Durability, e.Durability.Instance)
	case block.Take:
		return fmt.Sprintf("takes %d and %d ahead", e.Need, e.Ahead)
	case term.Stop:
		return fmt.Sprintf("stops, last tick %d", e.Last)
	case block.Stop:
		return fmt.Sprintf("stops, highest number %d", e.Used)
	}
	return fmt.Sprintf("%T", e)
}
