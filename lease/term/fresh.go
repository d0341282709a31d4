package term

import "github.com/firn-id/firn/store"

// hinted: the record of fresh workers was read. The worker is granted by the
// Put that creates its own record; the hint only says where to begin.
func (s State) hinted(r *Rules, now Now, rec store.Record) (State, Action) {
	next := s.first
	if rec.Version != "" {
		h, err := decode[Hint](rec)
		if err != nil {
			return s.end(Refused, err)
		}
		next = max(next, h.Next)
	}
	s.hint = rec.Version
	if s.tries > 0 { // others are after the same: go on from there, further with each defeat
		next = max(next, s.Worker+1) + int64(s.random.Uint64()%uint64(4*s.tries))
	}
	if next >= s.first+s.count {
		return s.end(Refused, &FreshError{Pool: r.Pool, Workers: s.count})
	}
	return s.take(r, now, candidate{worker: next, base: s.Pool.Floor})
}
