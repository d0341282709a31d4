package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A memory is the store: it keeps records as the contract says, until it is told
// to forget.
type memory struct {
	w        *world
	err      time.Duration // of its clock
	records  map[string]*stored
	keys     []string // sorted
	log      []change
	keep     int    // so many writes made it what it was at the start
	gone     bool   // its file was removed
	instance int    // of a lossy one; another one answers when it has forgotten
	async    bool   // a shifting one: it can forget now
	blank    bool   // it has forgotten that a counter was recovered, and nobody has recovered it since
	firm     int    // a shifting one does not forget so many writes
	settled  bool   // a lossy one: it does not forget any more
	identity string // what it says of itself; empty: it cannot tell
}

// stored is a record; it is never changed in place.
type stored struct {
	value   []byte
	version store.Version
	written time.Time     // by the store's clock
	at      time.Duration // true time
	worker  term.Record   // of a worker's record, decoded
	counter block.Record  // of the counter's, decoded
	dated   dated.Counter // of one of documents', decoded
	pool    term.Pool     // of the pool's, decoded
	whole   *stored       // of a damaged one, what it was before; nil: it can be read
}

// A change is a write that can be taken back.
type change struct {
	key     string
	was, is *stored // was is nil: there was none
}

func newMemory(w *world) *memory {
	s := &memory{w: w, records: map[string]*stored{}}
	if w.named {
		s.identity = "store"
	}
	switch {
	case w.kind.lossy():
		s.err = w.storeSkew()
	case w.kind == clocked:
		s.err = w.upTo(2*w.rules.Skew) - w.rules.Skew
	}
	return s
}

// found makes the counter and the pool, as an operator does who knows that there
// were none.
func (s *memory) found() {
	w := s.w
	if w.series && !w.begins {
		s.foundCounters()
	}
	if w.documents && !w.begins {
		w.newSeries(s)
	}
	s.keep = len(s.log)
	if !w.setup.founded || !w.leases {
		return
	}
	r := &w.rules
	first := w.pools[0]
	first.existed = true
	limit := r.Outage
	if w.unequal && limit <= term.OutageDurable && w.rng.IntN(3) > 0 {
		limit = 0 // and on a store that does not forget is raised when somebody needs more
	}
	p := term.NewPool("founded", r.Layout, first.range0, limit)
	p.Workers, p.Reserved, p.Store = p.Reserved, "", s.identity
	s.write(first.key, p.Encode(), w.newVersion())
	if forgotten := w.chance(0.05); !forgotten { // else it may be forgotten, too
		s.keep = len(s.log)
	}
}

// promise is what a process is told.
func (s *memory) promise(p *process) store.Durability {
	k := s.w.kind
	return store.Durability{
		Durable: (k != lossy && k != lossyBlind || s.settled) && (k != shifting || !s.forgets(p)), Why: k.String(),
		LocalClock: k == embedded, NoticesLoss: k == embedded,
		Instance: "run " + strconv.Itoa(s.instance), Identity: s.identity,
	}
}

// forgets reports whether a write by p may be forgotten.
func (s *memory) forgets(p *process) bool { return s.async || p != nil && p.async }

// marked reports whether the pool's record says that the store is lossy.
func (s *memory) marked() bool {
	r := s.record(s.w.pools[0]) // a shifting one has one
	return r != nil && r.pool.Lossy != ""
}

// marks returns how many counters say that the store is lossy.
func (s *memory) marks() (n int) {
	for _, key := range counters[:s.w.lanes] {
		if r := s.records[key].intact(); r != nil && r.counter.Instance != "" {
			n++
		}
	}
	return n
}

// replaced reports whether another file is in the place of this one, or none.
func (s *memory) replaced() bool {
	return (s.gone || s.w.store != s && s.w.copy != s)
}

// clock is the store's; zero where it has none.
func (s *memory) clock() time.Time {
	switch {
	case s.w.kind == embedded:
		return s.w.hosts[0].wall()
	case s.w.kind.clock():
		return s.w.instant().Add(s.err)
	}
	return time.Time{}
}

// newVersion names a write: no two have the same.
func (w *world) newVersion() store.Version {
	w.versions++
	return store.Version(strconv.FormatUint(w.versions, 36))
}

// answer does what a request asks.
func (s *memory) answer(by *process, rq request) (r reply) {
	switch rq.kind {
	case get:
		return reply{rec: s.get(rq.key)}
	case list:
		return reply{list: s.list(rq.key)}
	case promise:
		if s.replaced() {
			return reply{err: errReplaced}
		}
		return reply{promise: s.promise(by)}
	}
	r.tried = rq.version
	if s.replaced() { // as the adapter finds out before and after
		r.err = errReplaced
		return r
	}
	if rq.kind == update {
		now := s.get(rq.key)
		rq.cond.Version = now.Version
		if rq.value, r.err = rq.change(now); r.err != nil {
			return r
		}
	}
	r.rec, r.err = s.put(by, rq.key, rq.value, rq.cond, rq.version)
	return r
}

func (s *memory) get(key string) store.Record {
	rec := store.Record{Key: key, Read: s.clock()}
	if r := s.records[key]; r != nil {
		rec.Value, rec.Version, rec.Written = r.value, r.version, r.written
	}
	return rec
}

func (s *memory) list(prefix string) []store.Record {
	from, _ := slices.BinarySearch(s.keys, prefix)
	to := from
	for to < len(s.keys) && strings.HasPrefix(s.keys[to], prefix) {
		to++
	}
	records := make([]store.Record, 0, to-from)
	for _, key := range s.keys[from:to] {
		records = append(records, s.get(key))
	}
	return records
}

// put carries out a Put. By is nil, or operates, for an operator's.
func (s *memory) put(by *process, key string, value []byte, cond store.Condition, v store.Version) (store.Record, error) {
	if by != nil && by.operates {
		by = nil
	}
	was, old := s.records[key], store.Version("")
	if was != nil {
		old = was.version
	}
	if old != cond.Version && (by == nil || !s.w.wrong.overwrites) {
		s.w.total.Faults[conflict]++
		return store.Record{}, store.ErrConflict
	}
	now := s.clock()
	if cond.Within != 0 && !now.IsZero() && now.Sub(was.written) > cond.Within {
		return store.Record{}, store.ErrConflict
	}
	if was != nil && was.whole != nil && (by != nil || counterOf(key) < 0) { // the operator of the counter has a copy
		s.w.fail(misstep, "%s: somebody writes over a record that cannot be read", key)
	}
	marked := s.w.kind == shifting && s.marked()
	r := s.write(key, value, v)
	if !s.forgets(by) || !marked {
		s.firm = len(s.log) // with all that was written before it
	}
	s.w.check.put(by, key, was, r)
	return s.get(key), nil
}

func (s *memory) write(key string, value []byte, v store.Version) *stored {
	w, was := s.w, s.records[key]
	r := &stored{value: value, version: v, written: s.clock(), at: w.now}
	if w.wrong.counts {
		r.version = "1"
		if was != nil {
			n, _ := strconv.Atoi(string(was.version))
			r.version = store.Version(strconv.Itoa(n + 1))
		}
	}
	rec := store.Record{Key: key, Value: value, Version: r.version}
	var err error
	if p, n, ok := w.poolOf(key); ok {
		r.worker, err = term.ReadRecord(rec)
		if w.trace != nil {
			w.logf("store: worker %d of %s is term %d %.4s to %d, ttl %d ms (version %s)", n, p.name, r.worker.Term, r.worker.Owner, r.worker.Horizon, r.worker.TTL, r.version)
		}
	} else {
		if counterOf(key) >= 0 {
			r.counter, err = block.Read(rec)
		} else if w.documents {
			err = r.read(key)
		}
		for _, p := range w.pools {
			if p.key == key {
				r.pool, err = term.ReadPool(rec)
				w.noted(p, was, r.pool)
			}
		}
		if w.trace != nil {
			w.logf("store: %s is %s (version %s)", key, value, r.version)
		}
	}
	if err != nil {
		w.fail(misstep, "%s: %v", key, err)
	}
	s.log = append(s.log, change{key, was, r})
	s.set(key, r)
	return r
}

// set puts a record, or with nil removes it.
func (s *memory) set(key string, r *stored) {
	if _, there := s.records[key]; there && r != nil {
		s.records[key] = r
		return
	}
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

// remove removes a record, as by hand.
func (s *memory) remove(key string) {
	s.w.total.Forgotten++
	s.log = append(s.log, change{key, s.records[key], &stored{}})
	s.set(key, nil)
}

// rollBack makes the store forget all writes from the nth on.
func (s *memory) rollBack(n int) {
	s.w.logf("store: forgets %d of %d writes", len(s.log)-n, len(s.log))
	s.w.total.Forgotten += len(s.log) - n
	s.w.forgot = true
	for len(s.log) > n {
		c := s.log[len(s.log)-1]
		s.log = s.log[:len(s.log)-1]
		s.set(c.key, c.was.intact())
	}
	s.firm = min(s.firm, n)
	s.w.check.forgotten(s)
}

// copy is another store with the same records, as a copy of its file is.
func (s *memory) copy() *memory {
	c := *s
	c.records, c.keys, c.log, c.gone = map[string]*stored{}, slices.Clone(s.keys), slices.Clone(s.log), false
	for key, r := range s.records {
		c.records[key] = r.intact()
	}
	return &c
}

// snapshot draws how many writes a rolled back store has: often all but the
// last few, or those before the last holder of a worker came.
func (s *memory) snapshot() int {
	n := len(s.log)
	least := min(s.keep, n)
	switch s.w.rng.IntN(8) {
	case 0, 1, 2, 3:
		if s.w.leases {
			return max(s.lastTaken(1+s.w.rng.IntN(3)), least)
		}
	case 4:
		return least
	}
	back := pick(s.w.rng, s.w.rng.IntN(3), s.w.rng.IntN(6), s.w.rng.IntN(30), s.w.rng.IntN(n+1), n)
	return max(n-back, least)
}

// lastTaken is how many writes there were before a worker changed hands, the
// nth time from now back.
func (s *memory) lastTaken(n int) int {
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

// noted: a pool's record was written. Where it is created and its ids start late the
// schedule goes on until some were issued, the first few times.
func (w *world) noted(p *pool, was *stored, r term.Pool) {
	p.existed, p.floor = p.existed || r.Created(), max(p.floor, r.Floor)
	if !r.Created() || was != nil && was.pool.Created() || w.created > 3 {
		return
	}
	w.created++
	if starts := w.begin(r.Floor + 1).Sub(w.origin); r.Floor > 0 && starts > w.now+20*time.Second && starts < w.now+time.Hour {
		w.starts = max(w.starts, starts)
		w.ends = max(w.ends, starts+min(w.lasts, 20*time.Second))
	}
}
