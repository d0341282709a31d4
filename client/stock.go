package client

import "time"

// A stock is the ids in hand: the block that is drawn from and at most one more.
// It decides what is drawn from, what has become too old, and what to fetch. It
// reads no clock and does no I/O; times are since some instant in the past.
type stock struct {
	limits limits
	pace   pace
	now    *block // to draw from; never nil
	ahead  *block // to draw from after it; nil: none
	spent  int64  // ids used, of the blocks before now
	waste  int64  // ids dropped
}

func newStock(l limits) stock { return stock{limits: l, now: &block{}} }

// draw returns the block to draw from at t. It is spent where nothing is in hand.
// A block that is replaced gives nothing any more, whoever still holds it: so ids
// come in the order of the blocks.
func (s *stock) draw(t time.Duration) *block {
	if s.now.count > 0 && s.old(s.now, t) {
		s.drop()
	}
	if s.now.left() == 0 && s.ahead != nil {
		s.drop()
		s.now, s.ahead = s.ahead, nil
		return s.draw(t)
	}
	return s.now
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

// due reports whether to fetch at t, where calls wait for wanted ids. A block that
// became too old is not replaced before somebody wants an id.
func (s *stock) due(t time.Duration, wanted int) bool {
	b := s.draw(t)
	switch left := b.left() > 0; {
	case s.ahead != nil, left && b.used() <= b.half:
		return false
	case !left && wanted > 0:
		return true
	}
	return b.count > 0 && s.pace.ahead(s.limits)
}

// ask returns how many ids to fetch at t, where it is due.
func (s *stock) ask(t time.Duration, wanted int) int {
	s.pace = s.pace.next(t, s.spent+s.now.used(), s.limits)
	return s.pace.block(wanted, s.limits)
}

// add takes in a block that came at t, after it was due for so long.
func (s *stock) add(b *block, t, due time.Duration) {
	s.pace = s.pace.answered(due)
	s.ahead = b
	s.draw(t)
}

// expires is when the next block becomes too old; 0: there is none that can.
func (s *stock) expires() time.Duration {
	switch {
	case s.limits.age == 0:
		return 0
	case s.now.left() > 0:
		return s.now.born + s.limits.age
	case s.ahead != nil:
		return s.ahead.born + s.limits.age
	}
	return 0
}

// clear drops everything.
func (s *stock) clear() {
	s.drop()
	if s.ahead != nil {
		s.waste += s.ahead.count
		s.ahead = nil
	}
}
