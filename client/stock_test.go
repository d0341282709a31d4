package client

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/firn-id/firn"
)

const second = time.Second

func hundred(born time.Duration, first firn.ID) *block {
	return newRange(born, firn.Range{First: first, Count: 100, Step: 1})
}

// take is a call, as Client makes it.
func (s *stock) take(t time.Duration, n int) []firn.ID {
	ids, _ := s.draw(t).take(nil, n)
	return ids
}

func TestStockFetchesAtHalf(t *testing.T) {
	s := newStock(limits{most: 100, fixed: 100, age: 10 * second})
	if s.due(second, 0) {
		t.Error("due while nobody wants an id")
	}
	if !s.due(second, 1) || s.ask(second, 1) != 100 {
		t.Fatal("not due while a call waits")
	}
	s.add(hundred(second, 1), second, 0)
	s.take(second, 50)
	if s.due(second, 0) || s.due(second, 9) {
		t.Error("due before half is used")
	}
	if s.take(second, 1); !s.due(second, 0) {
		t.Error("not due when half is used")
	}
	s.add(hundred(second, 101), second, 0)
	if s.due(second, 0) {
		t.Error("due while the next block is there")
	}
	ids := s.take(second, 100)
	ids = append(ids, s.take(second, 100)...)
	for i, id := range ids {
		if id != firn.ID(52+i) {
			t.Fatalf("id %d is %d", i, id)
		}
	}
	if len(ids) != 149 || !s.due(second, 0) {
		t.Errorf("%d ids; due %v", len(ids), s.due(second, 0))
	}
}

func TestStockFetchesNoneAhead(t *testing.T) {
	s := newStock(limits{most: 100, fixed: 1, age: second})
	s.ask(second, 1)
	s.add(newRange(second, firn.Range{First: 5, Count: 1, Step: 1}), second, 0)
	if s.take(second, 1); s.due(second, 0) {
		t.Error("due while nobody waits")
	}
	if !s.due(second, 3) || s.ask(second, 3) != 3 {
		t.Error("what calls wait for is not fetched")
	}
}

func TestStockDropsTheOld(t *testing.T) {
	s := newStock(limits{most: 100, fixed: 100, age: second})
	first := hundred(second, 1)
	s.add(first, second, 0)
	s.take(second, 60)
	s.add(hundred(second*3/2, 101), second*3/2, 0)
	if at := s.expires(); at != 2*second {
		t.Errorf("expires at %s", at)
	}
	if ids := s.take(2*second-1, 1); ids[0] != 61 {
		t.Errorf("%d before its time is over", ids[0])
	}
	if ids := s.take(2*second, 1); len(ids) != 1 || ids[0] != 101 {
		t.Errorf("%d, want 101", ids)
	}
	if ids, _ := first.take(nil, 1); len(ids) > 0 || first.left() > 0 {
		t.Errorf("a dropped block gives %d", ids)
	}
	if ids := s.take(second*5/2, 1); len(ids) > 0 {
		t.Errorf("%d is too old", ids)
	}
	if s.due(second*5/2, 0) {
		t.Error("what nobody used is fetched again")
	}
	if s.waste != 39+99 || s.spent != 62 || s.expires() != 0 {
		t.Errorf("%d dropped, %d used, expires %s", s.waste, s.spent, s.expires())
	}
}

func TestStockKeepsWithoutAge(t *testing.T) {
	s := newStock(limits{most: 100, fixed: 100})
	s.add(hundred(second, 1), second, 0)
	if ids := s.take(1000*time.Hour, 1); len(ids) != 1 || s.expires() != 0 {
		t.Errorf("%d, expires %s", ids, s.expires())
	}
}

// Whatever happens: an id is handed out once, in the order in which it came, not
// when it is too old, and no more is in hand than two blocks.
func TestStock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limits{
			most:  rapid.IntRange(1, 50).Draw(t, "most"),
			fixed: rapid.IntRange(0, 3).Draw(t, "fixed"),
			age:   rapid.SampledFrom([]time.Duration{0, 10, 1000}).Draw(t, "age"),
		}
		s := newStock(l)
		now := time.Duration(1)
		next, last := firn.ID(1), firn.ID(0)
		born := map[firn.ID]time.Duration{}
		var issued, fetched int64
		var pending, held *block
		hand := func(ids []firn.ID) {
			for _, id := range ids {
				if id <= last {
					t.Fatalf("%d after %d", id, last)
				}
				if l.age > 0 && now-born[id] >= l.age {
					t.Fatalf("%d is %d old", id, now-born[id])
				}
				last = id
				issued++
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) { now += time.Duration(rapid.IntRange(1, 20).Draw(t, "for")) },
			"call": func(t *rapid.T) { hand(s.take(now, rapid.IntRange(1, 10).Draw(t, "n"))) },
			"hold": func(t *rapid.T) { held = s.draw(now) },
			"late": func(t *rapid.T) { // a call that loaded the block before others came
				if held != nil && !(l.age > 0 && now-held.born >= l.age) {
					ids, _ := held.take(nil, 2)
					hand(ids)
				}
			},
			"ask": func(t *rapid.T) {
				wanted := rapid.IntRange(0, 20).Draw(t, "wanted")
				if pending != nil || !s.due(now, wanted) {
					return
				}
				n := s.ask(now, wanted)
				if n < 1 || n > l.most {
					t.Fatalf("asks for %d", n)
				}
				pending = newRange(now, firn.Range{First: next, Count: n, Step: 3})
				for range n {
					born[next] = now
					next += 3
				}
			},
			"answer": func(t *rapid.T) {
				if pending != nil {
					s.add(pending, now, now-pending.born)
					fetched += pending.count
					pending = nil
				}
			},
			"": func(t *rapid.T) {
				left := s.now.left()
				if s.ahead != nil {
					left += s.ahead.count
				}
				if left > int64(2*l.most) {
					t.Fatalf("%d in hand", left)
				}
				if used := s.spent + s.now.used(); used != issued || used+left+s.waste != fetched {
					t.Fatalf("%d used, %d counted, %d left, %d dropped, of %d", issued, used, left, s.waste, fetched)
				}
			},
		})
	})
}
