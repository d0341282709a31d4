package storetest

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	contenders = 64 // goroutines that contend
	shared     = 4  // handles they share
	increments = 2  // that each of them makes
)

// handles opens those that contenders share.
func (c *check) handles() []store.Store {
	s := make([]store.Store, shared)
	for i := range s {
		s[i] = c.open()
	}
	return s
}

// createdAtOnce lets everybody create the same record: one does.
func createdAtOnce(c *check) {
	handles := c.handles()
	for _, key := range []string{"a", "b", "c"} {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var won []store.Record
		start := make(chan struct{})
		for i := range contenders {
			s := handles[i%shared]
			wg.Go(func() {
				<-start
				r, err := s.Put(c.Context(), key, []byte(strconv.Itoa(i)), store.Condition{})
				switch {
				case err == nil:
					mu.Lock()
					won = append(won, r)
					mu.Unlock()
				case !errors.Is(err, store.ErrConflict):
					c.Errorf("Put: %v", err)
				}
			})
		}
		close(start)
		wg.Wait()
		if len(won) != 1 {
			c.Fatalf("%d of %d created the record", len(won), contenders)
		}
		for _, s := range handles {
			c.is(s, won[0])
		}
	}
}

// An event is one call of the history of a record whose value counts its
// writes, so that every call says at which point of the history it was made.
type event struct {
	start, end time.Time
	put        bool
	point      int // read or written; of a conflict, that of the condition
	conflict   bool
}

// contention lets everybody increment one record. No increment may be lost, and
// all calls together must be those of one record: each as if made at one
// instant between its start and its end.
func contention(c *check) {
	handles := c.handles()
	first := c.put(handles[0], "n", `0`, store.Condition{})
	histories := make([][]event, contenders)
	var wg sync.WaitGroup
	for i := range contenders {
		wg.Go(func() {
			histories[i] = c.increment(handles[i%shared], increments)
		})
	}
	wg.Wait()
	if c.Failed() {
		return
	}
	var all []event
	for _, h := range histories {
		all = append(all, h...)
	}
	c.judge(all)
	last := c.get(handles[0], "n")
	if n, _ := strconv.Atoi(string(last.Value)); n != contenders*increments || last.Version == first.Version {
		c.Errorf("%d increments were acknowledged, and the record is %s", contenders*increments, show(last))
	}
}

// increment adds times to the record, and returns what it saw.
func (c *check) increment(s store.Store, times int) (h []event) {
	const enough = 100 * contenders * increments // tries, against a store that never lets us
	for try := 0; times > 0; try++ {
		if try == enough {
			c.Errorf("%d tries, and %d increments are left", try, times)
			return h
		}
		e := event{start: time.Now()}
		r, err := s.Get(c.Context(), "n")
		e.end = time.Now()
		if err != nil {
			c.Errorf("Get: %v", err)
			return h
		}
		if e.point, err = strconv.Atoi(string(r.Value)); err != nil {
			c.Errorf("the record is %s", show(r))
			return h
		}
		h = append(h, e)
		runtime.Gosched() // to let somebody in, where a store never waits

		p := event{start: time.Now(), put: true, point: e.point + 1}
		_, err = s.Put(c.Context(), "n", []byte(strconv.Itoa(p.point)), store.Condition{Version: r.Version})
		p.end = time.Now()
		switch {
		case err == nil:
			times--
		case errors.Is(err, store.ErrConflict):
			p.conflict, p.point = true, e.point
		default:
			c.Errorf("Put: %v", err)
			return h
		}
		h = append(h, p)
	}
	return h
}

// judge requires a history to be linearizable. Each value is written once, from
// the one before, so the order of writes is known, and what is left is that no
// call is at an earlier point than one that had ended before it began, and none
// knows of a write that had not begun when it ended.
func (c *check) judge(all []event) {
	began := map[int]time.Time{0: {}} // by point, the Put that wrote it
	for _, e := range all {
		if e.put && !e.conflict {
			if _, ok := began[e.point]; ok {
				c.Errorf("%d was written twice: an increment is lost", e.point)
			}
			began[e.point] = e.start
		}
	}
	byEnd := slices.Clone(all)
	slices.SortFunc(byEnd, func(a, b event) int { return a.end.Compare(b.end) })
	slices.SortFunc(all, func(a, b event) int { return cmp.Or(a.start.Compare(b.start), cmp.Compare(a.point, b.point)) })
	var known, conflicts int // the latest point that an ended call was at
	for _, e := range all {
		for len(byEnd) > 0 && byEnd[0].end.Before(e.start) {
			if !byEnd[0].conflict {
				known = max(known, byEnd[0].point)
			}
			byEnd = byEnd[1:]
		}
		switch {
		case e.conflict:
			conflicts++
			// Something must have been written over what the condition named.
			if t, ok := began[e.point+1]; !ok || t.After(e.end) {
				c.Errorf("a Put on %d conflicted, and nothing was written on %d", e.point, e.point)
			}
		case e.put && e.point <= known:
			c.Errorf("%d was written after %d had been seen", e.point, known)
		case !e.put && e.point < known:
			c.Errorf("%d was read after %d had been seen", e.point, known)
		case !e.put && began[e.point].After(e.end):
			c.Errorf("%d was read before it was written", e.point)
		}
	}
	c.Logf("%d calls, %d conflicts", len(all), conflicts)
}
