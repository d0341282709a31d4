package beside

import (
	"context"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// LeftTo returns the workers that the other pools leave to a pool that was lost: the range
// without theirs that has all its worker records. It returns "" where there are no such
// records, where another pool has one of these workers, and where the other pools leave all.
func LeftTo(ctx context.Context, s store.Store, name string, l firn.Layout) string {
	if !l.IsValid() {
		l = firn.Default()
	}
	recs, failed := s.List(ctx, term.KeyWorkers(name))
	others, unlisted := pool.List(ctx, s)
	if failed != nil || unlisted != nil || len(recs) == 0 {
		return ""
	}
	all := term.Range{First: 0, Last: l.Workers() - 1}
	had := term.Range{First: all.Last, Last: 0}
	for _, rec := range recs {
		n, ok := term.WorkerOf(name, rec.Key)
		if !ok || n > all.Last {
			return ""
		}
		had = term.Range{First: min(had.First, n), Last: max(had.Last, n)}
	}
	left := all
	for _, other := range others {
		if other.Name == name || !term.SameWorkerBits(l, other.Layout) {
			continue
		}
		theirs := term.Range{First: other.First, Last: other.Last}
		if r, err := term.ParseRange(other.GivingUp, other.Layout); err == nil {
			theirs = term.Range{First: min(theirs.First, r.First), Last: max(theirs.Last, r.Last)}
		}
		switch {
		case theirs.Last < had.First:
			left.First = max(left.First, theirs.Last+1)
		case theirs.First > had.Last:
			left.Last = min(left.Last, theirs.First-1)
		default:
			return ""
		}
	}
	if left == all {
		return ""
	}
	return left.String()
}
