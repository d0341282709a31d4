package client

import "time"

// A stock is the ids in hand: the block that is drawn from and those after it. It
// decides what is drawn from, what has become too old, and what to fetch. It reads no
// clock and does no I/O; times are since some instant in the past.
type stock struct {
	limits limits
	pace   pace
	now    *block   // to draw from; never nil
	ahead  []*block // to draw from after it
	came   int64    // ids that came together, the last time that any did
	spent  int64    // ids used, of the blocks before now
	waste  int64    // ids dropped
}

func newStock(l limits) stock { return stock{limits: l, now: &block{}} }

// draw returns the block to draw from at t. It is spent where nothing is in hand.
// A block that is replaced gives nothing any more, whoever still holds it: so ids
// come in the order of the blocks.
func (s *stock) draw(t time.Duration) *block {
	for {
		if s.now.count > 0 && s.old(s.now, t) {
			s.drop()
		}
		if len(s.ahead) == 0 || s.now.left() > 0 {
			return s.now
		}
		s.drop()
		s.now, s.ahead = s.ahead[0], s.ahead[1:]
	}
}

// left is how many ids are in hand.
func (s *stock) left() int64 {
	n := s.now.left()
	for _, b := range s.ahead {
		n += b.count
	}
	return n
}

// drop gives up what is left of the block that is drawn from.
func (s *stock) drop() {
	used := s.now.drop()
	s.spent += used
	s.waste += s.now.count - used
	s.now = &block{}
}

// old reports whether the ids of b may not be handed out any more at t.
func (s *stock) old(b *block, t time.Duration) bool {
	return s.limits.age > 0 && t-b.born >= s.limits.age
}

// due reports whether to fetch at t, where calls wait for wanted ids: when half is
// used of what came together. What became too old is not replaced before somebody
// wants an id.
func (s *stock) due(t time.Duration, wanted int) bool {
	s.draw(t)
	switch left := s.left(); {
	case left == 0 && wanted > 0:
		return true
	case left >= s.came-s.came/2 && left > 0:
		return false
	}
	return s.now.count > 0 && s.pace.ahead(s.limits)
}

// ask returns what to fetch at t, where it is due.
func (s *stock) ask(t time.Duration, wanted int) order {
	s.pace = s.pace.next(t, s.spent+s.now.used(), s.limits)
	return s.pace.order(wanted, s.limits)
}

// add takes in blocks that came together at t, after they were due for so long.
func (s *stock) add(blocks []*block, t, due time.Duration) {
	s.pace = s.pace.answered(due)
	s.came = 0
	for _, b := range blocks {
		s.came += b.count
	}
	half := s.came / 2
	for _, b := range blocks {
		b.half = half
		half -= b.count
	}
	s.ahead = append(s.ahead, blocks...)
	s.draw(t)
}

// expires is when the next block becomes too old; 0: there is none that can.
func (s *stock) expires() time.Duration {
	switch {
	case s.limits.age == 0:
		return 0
	case s.now.left() > 0:
		return s.now.born + s.limits.age
	case len(s.ahead) > 0:
		return s.ahead[0].born + s.limits.age
	}
	return 0
}

// clear drops everything.
func (s *stock) clear() {
	s.drop()
	s.waste += s.left()
	s.ahead = nil
}
