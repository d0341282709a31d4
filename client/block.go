package client

import (
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
)

// A block is ids that one request brought. They are handed out in the order in
// which the server gave them, each once.
type block struct {
	_     [64]byte
	taken atomic.Int64 // how many were asked for: more than there are once it is spent
	_     [56]byte

	// Read by every call, never written.
	count int64
	half  int64         // with this id the next blocks are due; none: with one of another block
	first firn.ID       // of a range
	step  int64         // of a range
	ids   []firn.ID     // of a list; nil: a range
	born  time.Duration // when it was asked for: no id in it is older
	_     [8]byte
}

// dropped is added to taken when a block is given up, so that whoever still holds
// it gets nothing from it. It leaves room for as many refused calls.
const dropped = 1 << 62

func newRange(born time.Duration, r firn.Range) *block {
	return &block{born: born, first: r.First, step: r.Step, count: int64(r.Count)}
}

func newList(born time.Duration, ids []firn.ID) *block {
	return &block{born: born, ids: ids, count: int64(len(ids))}
}

// id is the ith id, from 0 on.
func (b *block) id(i int64) firn.ID {
	if b.ids != nil {
		return b.ids[i]
	}
	return b.first + firn.ID(i*b.step)
}

// take appends up to n ids to dst. Half says that the next blocks have become due.
func (b *block) take(dst []firn.ID, n int) (_ []firn.ID, half bool) {
	if b.left() == 0 {
		return dst, false // what is spent is not counted up without need
	}
	end := b.taken.Add(int64(n))
	begin := end - int64(n)
	half = begin <= b.half && b.half < end
	if end = min(end, b.count); begin >= end {
		return dst, false
	}
	if b.ids != nil {
		return append(dst, b.ids[begin:end]...), half
	}
	for id := b.id(begin); begin < end; begin++ {
		dst = append(dst, id)
		id += firn.ID(b.step)
	}
	return dst, half
}

// used is how many ids were handed out.
func (b *block) used() int64 { return min(b.taken.Load(), b.count) }

// left is how many there are still.
func (b *block) left() int64 { return b.count - b.used() }

// drop gives up what is left, and returns how many ids were used before.
func (b *block) drop() (used int64) {
	return min(b.taken.Add(dropped)-dropped, b.count)
}
