package term_test

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

// A simStore keeps records as the contract says, until it is told to forget.
type simStore struct {
	w       *world
	err     time.Duration // of its clock
	records map[string]*stored
	keys    []string // sorted
	log     []change
	version uint64
	forgot  bool // it has gone back, and nobody has repaired it
	async   bool // a shifting one: it can forget now
	firm    int  // a shifting one does not forget so many writes
}

// stored is a record; it is never changed in place.
type stored struct {
	value   []byte
	version store.Version
	written time.Time     // by the store's clock
	at      time.Duration // true time
	worker  term.Record   // of a worker's record, decoded
}

// A change is a write that can be taken back.
type change struct {
	key     string
	was, is *stored // was is nil: there was none
}

func newSimStore(w *world) *simStore {
	s := &simStore{w: w, records: map[string]*stored{}}
	switch {
	case w.kind.lossy():
		s.err = w.storeSkew()
	case w.kind == clocked:
		s.err = w.upTo(2*w.rules.Skew) - w.rules.Skew
	}
	return s
}

// found makes the pool, as an operator does who knows that there was none.
func (s *simStore) found() {
	if !s.w.setup.founded {
		return
	}
	r := &s.w.rules
	first, count := int64(0), r.Layout.Workers()
	p := term.Pool{V: 1, ID: "founded", Layout: r.Layout.String(), Workers: workers(first, count), Outage: r.Outage.Milliseconds()}
	if s.w.unequal && (!s.w.kind.lossy() || s.w.kind == shifting) {
		p.Outage = max(p.Outage/int64(1+s.w.rng.IntN(3)), 1000) // and is raised when somebody needs more
	}
	s.write(term.KeyPool(r.Pool), p.Encode())
}

// promise is what a process is told.
func (s *simStore) promise(p *process) store.Promise {
	class := store.Strict
	if k := s.w.kind; k == lossy || k == lossyBlind || k == shifting && s.forgets(p) {
		class = store.Lossy
	}
	return store.Promise{Class: class, Why: s.w.kind.String(), Embedded: s.w.kind == embedded}
}

// forgets reports whether a write by p may be forgotten.
func (s *simStore) forgets(p *process) bool { return s.async || p != nil && p.async }

// marked reports whether the pool's record says that the store can forget.
func (s *simStore) marked() bool {
	p, err := term.ReadPool(s.get(term.KeyPool(s.w.rules.Pool)))
	return err == nil && p.Lossy != ""
}

func workers(first, count int64) string {
	return strconv.FormatInt(first, 10) + "-" + strconv.FormatInt(first+count-1, 10)
}

// clock is the store's; zero where it has none.
func (s *simStore) clock() time.Time {
	switch {
	case s.w.kind == embedded:
		return s.w.hosts[0].wall()
	case s.w.kind.clock():
		return s.w.instant().Add(s.err)
	}
	return time.Time{}
}

func (s *simStore) get(key string) store.Record {
	rec := store.Record{Key: key, Read: s.clock()}
	if r := s.records[key]; r != nil {
		rec.Value, rec.Version, rec.Written = r.value, r.version, r.written
	}
	return rec
}

func (s *simStore) list(prefix string) []store.Record {
	var list []store.Record
	from, _ := slices.BinarySearch(s.keys, prefix)
	for _, key := range s.keys[from:] {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		list = append(list, s.get(key))
	}
	return list
}

// put carries out a Put. By is nil for an operator's.
func (s *simStore) put(by *process, key string, value []byte, cond store.Condition) (store.Record, error) {
	m := &s.w.mutant
	was, old := s.records[key], store.Version("")
	if was != nil {
		old = was.version
	}
	if old != cond.Version && !(m.ignoreVersion && by != nil) {
		return store.Record{}, store.ErrConflict
	}
	now := s.clock()
	if cond.Within != 0 && !now.IsZero() && !m.ignoreWithin && now.Sub(was.written) > cond.Within {
		return store.Record{}, store.ErrConflict
	}
	marked := s.w.kind == shifting && s.marked()
	r := s.write(key, value)
	if !s.forgets(by) || !marked {
		s.firm = len(s.log) // with all that was written before it
	}
	s.w.check.put(by, key, was, r)
	return s.get(key), nil
}

func (s *simStore) write(key string, value []byte) *stored {
	was := s.records[key]
	s.version++
	r := &stored{value: value, version: store.Version(strconv.FormatUint(s.version, 36)), written: s.clock(), at: s.w.now}
	if s.w.mutant.countVersions {
		r.version = "1"
		if was != nil {
			n, _ := strconv.Atoi(string(was.version))
			r.version = store.Version(strconv.Itoa(n + 1))
		}
	}
	if n, ok := term.WorkerOf(s.w.rules.Pool, key); ok {
		var err error
		if r.worker, err = term.ReadRecord(store.Record{Key: key, Value: value, Version: r.version}); err != nil {
			s.w.fail("worker %d: %v", n, err)
		}
		s.w.logf("store: worker %d is term %d %.4s to %d, ttl %d ms (version %s)", n, r.worker.Term, r.worker.Owner, r.worker.Horizon, r.worker.TTL, r.version)
	} else {
		s.w.logf("store: %s is %s", key, value)
	}
	s.log = append(s.log, change{key, was, r})
	s.set(key, r)
	return r
}

// set puts a record, or with nil removes it.
func (s *simStore) set(key string, r *stored) {
	i, found := slices.BinarySearch(s.keys, key)
	switch {
	case r == nil:
		delete(s.records, key)
		if found {
			s.keys = slices.Delete(s.keys, i, i+1)
		}
		return
	case !found:
		s.keys = slices.Insert(s.keys, i, key)
	}
	s.records[key] = r
}

// rollBack makes the store forget all writes from the nth on.
func (s *simStore) rollBack(n int) {
	s.w.logf("store: forgets %d of %d writes", len(s.log)-n, len(s.log))
	for len(s.log) > n {
		c := s.log[len(s.log)-1]
		s.log = s.log[:len(s.log)-1]
		s.set(c.key, c.was)
	}
}

// snapshot draws how many writes a rolled back store has: often all but the
// last few, or those before the last holder of a worker came.
func (s *simStore) snapshot() int {
	n, keep := len(s.log), 0
	if s.w.setup.founded && !s.w.chance(0.05) {
		keep = 1
	}
	switch s.w.rng.IntN(8) {
	case 0, 1, 2, 3:
		return max(s.lastTaken(1+s.w.rng.IntN(3)), min(keep, n))
	case 4:
		return min(keep, n)
	}
	back := pick(s.w.rng, s.w.rng.IntN(3), s.w.rng.IntN(6), s.w.rng.IntN(30), s.w.rng.IntN(n+1), n)
	return max(n-back, min(keep, n))
}

// lastTaken is how many writes there were before a worker changed hands, the
// nth time from now back.
func (s *simStore) lastTaken(n int) int {
	for i := len(s.log) - 1; i >= 0; i-- {
		was, is := s.log[i].was, s.log[i].is
		if is.worker.Owner != "" && (was == nil || was.worker.Term != is.worker.Term) {
			if n--; n == 0 {
				if was == nil || was.worker.Owner != "" {
					return i
				}
				for j := i - 1; j >= 0; j-- {
					if s.log[j].is == was {
						return j // before it was released
					}
				}
			}
		}
	}
	return 0
}

// worker is a worker's record and whether it is there.
func (s *simStore) worker(n int64) (*stored, bool) {
	r, ok := s.records[term.KeyWorker(s.w.rules.Pool, n)]
	return r, ok
}
