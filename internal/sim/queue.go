package sim

import "time"

// An event is something to do at a time; those of one time in the order in
// which they were asked for.
type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

// A queue is a heap of events.
type queue struct {
	heap []event
	seq  uint64
}

func (q *queue) len() int     { return len(q.heap) }
func (q *queue) first() event { return q.heap[0] }

func (q *queue) less(i, j int) bool {
	a, b := &q.heap[i], &q.heap[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (q *queue) push(at time.Duration, do func()) {
	q.seq++
	q.heap = append(q.heap, event{at, q.seq, do})
	for i := len(q.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.less(i, up) {
			break
		}
		q.heap[i], q.heap[up] = q.heap[up], q.heap[i]
		i = up
	}
}

func (q *queue) pop() event {
	top, last := q.heap[0], len(q.heap)-1
	q.heap[0] = q.heap[last]
	q.heap[last] = event{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return top
		}
		if down+1 < last && q.less(down+1, down) {
			down++
		}
		if !q.less(down, i) {
			return top
		}
		q.heap[i], q.heap[down] = q.heap[down], q.heap[i]
		i = down
	}
}
