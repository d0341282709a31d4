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
	if !s.due(second, 1) || s.ask(second, 1) != (order{100, 100}) {
		t.Fatal("not due while a call waits")
	}
	s.add([]*block{hundred(second, 1)}, second, 0)
	s.take(second, 50)
	if s.due(second, 0) || s.due(second, 9) {
		t.Error("due before half is used")
	}
	if s.take(second, 1); !s.due(second, 0) {
		t.Error("not due when half is used")
	}
	s.add([]*block{hundred(second, 101)}, second, 0)
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
	s.add([]*block{newRange(second, firn.Range{First: 5, Count: 1, Step: 1})}, second, 0)
	if s.take(second, 1); s.due(second, 0) {
		t.Error("due while nobody waits")
	}
	if !s.due(second, 3) || s.ask(second, 3) != (order{3, 3}) {
		t.Error("what calls wait for is not fetched")
	}
}

func TestStockDropsTheOld(t *testing.T) {
	s := newStock(limits{most: 100, fixed: 100, age: second})
	first := hundred(second, 1)
	s.add([]*block{first}, second, 0)
	s.take(second, 60)
	s.add([]*block{hundred(second*3/2, 101)}, second*3/2, 0)
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
	s.add([]*block{hundred(second, 1)}, second, 0)
	if ids := s.take(1000*time.Hour, 1); len(ids) != 1 || s.expires() != 0 {
		t.Errorf("%d, expires %s", ids, s.expires())
	}
}

// What came together is one supply: the next is due when half of it is used, wherever
// in it that is.
func TestStockFetchesAtHalfOfAll(t *testing.T) {
	for blocks := 1; blocks <= 4; blocks++ {
		s := newStock(limits{most: 1000, fixed: 100})
		var all []*block
		for i := range blocks {
			all = append(all, hundred(second, firn.ID(1+100*i)))
		}
		s.add(all, second, 0)
		for i := range blocks * 100 {
			ids, half := s.draw(second).take(nil, 1)
			if len(ids) != 1 || ids[0] != firn.ID(1+i) {
				t.Fatalf("%d blocks: id %d is %d", blocks, i, ids)
			}
			if used := i + 1; half != (used == blocks*50+1) || s.due(second, 0) != (used > blocks*50) {
				t.Fatalf("%d blocks, %d used: said %v, due %v", blocks, used, half, s.due(second, 0))
			}
		}
	}
}

// Whatever happens: an id is handed out once, in the order in which it came, not
// when it is too old, and no more is in hand than twice what is asked for at a time.
func TestStock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limits{
			most:  rapid.IntRange(3, 50).Draw(t, "most"),
			fixed: rapid.IntRange(0, 3).Draw(t, "fixed"),
			age:   rapid.SampledFrom([]time.Duration{0, 10, 1000}).Draw(t, "age"),
		}
		s := newStock(l)
		now := time.Duration(1)
		next, last := firn.ID(1), firn.ID(0)
		born := map[firn.ID]time.Duration{}
		var issued, fetched int64
		var pending []*block
		var held *block
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
				o := s.ask(now, wanted)
				if o.size < 1 || o.ids < o.size || o.ids > l.most {
					t.Fatalf("asks for %d", o)
				}
				for range o.ids / o.size {
					pending = append(pending, newRange(now, firn.Range{First: next, Count: o.size, Step: 3}))
					for range o.size {
						born[next] = now
						next += 3
					}
				}
			},
			"answer": func(t *rapid.T) {
				if pending != nil {
					s.add(pending, now, now-pending[0].born)
					fetched += s.came
					pending = nil
				}
			},
			"": func(t *rapid.T) {
				left := s.left()
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
