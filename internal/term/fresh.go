package term

import (
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// hinted: the record of fresh workers was read. The worker is granted by the
// Put that creates its own record; the hint only says where to begin.
func (s State) hinted(r *Rules, now Now, rec store.Record) (State, Action) {
	next := s.first
	if rec.Version != "" {
		h, err := record.Read[Hint](rec)
		if err != nil {
			return s.end(Refused, err)
		}
		next = max(next, h.Next)
	}
	s.hint = rec.Version
	if s.tries > 0 {
		next = max(next, s.Worker+1)
	}
	left := s.first + s.count - next
	if left <= 0 {
		return s.end(Refused, &FreshError{Pool: r.Pool, Workers: s.count})
	}
	if s.tries > 0 { // others are after the same: spread, further with each defeat
		next += int64(s.random.Uint64() % uint64(min(int64(4*s.tries), left)))
	}
	c := s.judge(r, now, next, store.Record{})
	if c.rank == unusable { // it would be used up in vain
		return s.none(r, now, []candidate{c})
	}
	return s.take(r, now, c)
}
