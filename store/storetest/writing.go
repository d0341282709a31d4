package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	writers = 8 // goroutines that write while others list
	owned   = 3 // records of each, there from the beginning
	updates = 4 // of each of these; and each time a new record
	listers = 2 // goroutines that list
)

// A written record is one that a writer knows of.
type written struct {
	store.Record
	start, end time.Time // of the Put
}

// A listing is one List.
type listing struct {
	start, end time.Time
	records    []store.Record
}

// listWhileWriting lists records that are written meanwhile. Each that is listed
// must have been so at some instant of the List, and none may be missing that
// was there before.
func listWhileWriting(c *check) {
	handles := c.handles()
	w := &writing{check: c, history: make(map[string][]written)}
	var put, list sync.WaitGroup
	for i := range writers {
		s := handles[i%shared]
		for k := range owned {
			w.put(s, fmt.Sprintf("w/%d/%d", i, k))
		}
		put.Go(func() {
			for round := range updates {
				for k := range owned {
					w.put(s, fmt.Sprintf("w/%d/%d", i, k))
				}
				w.put(s, fmt.Sprintf("w/%d/new/%d", i, round))
			}
		})
	}
	stop := make(chan struct{})
	lists := make([][]listing, listers)
	for i := range listers {
		s := handles[(i+1)%shared]
		list.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					if n > 0 {
						return
					}
				default:
				}
				l := listing{start: time.Now()}
				var err error
				if l.records, err = s.List(c.Context(), "w/"); err != nil {
					c.Errorf("List: %v", err)
					return
				}
				l.end = time.Now()
				lists[i] = append(lists[i], l)
			}
		})
	}
	put.Wait()
	close(stop)
	list.Wait()
	for _, l := range slices.Concat(lists...) {
		w.judge(l)
	}
	c.Logf("%d lists of %d records", len(slices.Concat(lists...)), len(w.history))
}

// writing is what the writers know, by key and in order.
type writing struct {
	*check
	mu      sync.Mutex // guards history
	history map[string][]written
}

// put writes key, of which the caller is the only writer.
func (w *writing) put(s store.Store, key string) {
	w.mu.Lock()
	writes := w.history[key]
	w.mu.Unlock()
	var cond store.Condition
	if len(writes) > 0 {
		cond.Version = writes[len(writes)-1].Version
	}
	next := written{start: time.Now()}
	var err error
	next.Record, err = s.Put(w.Context(), key, fmt.Appendf(nil, `{"key":%q,"round":%d}`, key, len(writes)), cond)
	if err != nil {
		w.Errorf("Put %q with %+v: %v", key, cond, err)
		return
	}
	next.end = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history[key] = append(w.history[key], next)
}

// judge compares one List with what was written.
func (w *writing) judge(l listing) {
	there := make(map[string]bool)
	for _, r := range l.records {
		there[r.Key] = true
		writes := w.history[r.Key]
		i := 0
		for i < len(writes) && !same(writes[i].Record, r) {
			i++
		}
		switch {
		case i == len(writes):
			w.Errorf("listed, and never written: %s", show(r))
		case writes[i].start.After(l.end):
			w.Errorf("listed before it was written: %s", show(r))
		case i+1 < len(writes) && writes[i+1].end.Before(l.start):
			w.Errorf("listed as %s, and %s had been acknowledged before", show(r), show(writes[i+1].Record))
		}
	}
	for key, writes := range w.history {
		if writes[0].end.Before(l.start) && !there[key] {
			w.Errorf("%q had been written before a List that lacks it", key)
		}
	}
}
