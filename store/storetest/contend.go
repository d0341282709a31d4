package storetest

import (
	"errors"
	"runtime"
	"strconv"
	"sync"

	"github.com/firn-id/firn/store"
)

const (
	contenders = 64 // goroutines that contend
	shared     = 4  // handles they share
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

// contention lets everybody increment one record once. No increment may be lost.
func contention(c *check) {
	handles := c.handles()
	first := c.put(handles[0], "n", `0`, store.Condition{})
	var wg sync.WaitGroup
	for i := range contenders {
		wg.Go(func() { c.increment(handles[i%shared]) })
	}
	wg.Wait()
	last := c.get(handles[0], "n")
	if n, _ := strconv.Atoi(string(last.Value)); n != contenders || last.Version == first.Version {
		c.Errorf("%d increments were acknowledged, and the record is %s", contenders, show(last))
	}
}

// increment tries until it has incremented the record.
func (c *check) increment(s store.Store) {
	for range 100 * contenders { // at most, against a store that never lets us
		r, err := s.Get(c.Context(), "n")
		if err != nil {
			c.Errorf("Get: %v", err)
			return
		}
		n, err := strconv.Atoi(string(r.Value))
		if err != nil {
			c.Errorf("the record is %s", show(r))
			return
		}
		runtime.Gosched() // to let somebody in, where a store never waits
		_, err = s.Put(c.Context(), "n", []byte(strconv.Itoa(n+1)), store.Condition{Version: r.Version})
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrConflict) {
			c.Errorf("Put: %v", err)
			return
		}
	}
	c.Errorf("%d tries, and the record is not incremented", 100*contenders)
}
