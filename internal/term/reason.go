package term

import (
	"fmt"
	"strings"
	"time"
)

// Some errors say what a Go program does next. Reason leaves that out, for those who say it in
// words of their own, as the command and the server do.

// Reason is Error without what to do next.
func (e *NotYetError) Reason() string {
	return fmt.Sprintf("lease: the ids of pool %q start at %s, because an earlier process may have issued ids up to then",
		e.Pool, e.StartsAt.UTC().Format(time.RFC3339))
}

// Reason is Error without what to do next.
func (e *LayoutError) Reason() string {
	return fmt.Sprintf("lease: pool %q has layout %s, not %s", e.Pool, e.Have, e.Want)
}

// Reason is Error without what to do next.
func (e *MissingPoolError) Reason() string {
	switch {
	case e.Creating:
		return fmt.Sprintf("lease: pool %q is not created yet: that has begun, and has not ended", e.Pool)
	case len(e.Pools) > 0:
		return fmt.Sprintf("lease: the store has no pool %q; it has: %s", e.Pool, strings.Join(e.Pools, ", "))
	}
	return fmt.Sprintf("lease: the store has no pool %q", e.Pool)
}
