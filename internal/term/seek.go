package term

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A candidate is a worker that may be taken, and how much one would like to.
type candidate struct {
	worker  int64
	rec     Record
	version store.Version
	rank    rank
	base    firn.Tick
	free    time.Duration // until it can be issued from, or taken
	dead    bool          // its holder is taken for dead
	fault   error         // why its record cannot be read
}

// A rank orders candidates, best first.
type rank int

const (
	ours     rank = iota // preferred, or held last under our own name
	free                 // released, or never held
	expired              // of a holder that is taken for dead
	waiting              // can be taken, and issued from after a wait
	unusable             // held, or too far ahead
)

// never is the free of a worker that waiting does not help.
const never = time.Duration(1 << 62)

// seek looks for a free worker: at all of them, or in a large pool at some.
func (s State) seek(r *Rules, now Now) (State, Action) {
	s.Phase = Seeking
	switch {
	case s.belowFloor(r, now):
		return s.end(Refused, s.notYet(r, now))
	case r.Choice == Fresh:
		return s, get(ReadHint, keyFresh(r.Pool))
	case s.count <= mostListed && s.count > 1:
		return s, list(ListWorkers, KeyWorkers(r.Pool))
	}
	s.probes = int(min(s.count, probes))
	if r.Choice == Prefer {
		s.Worker = r.Worker
		return s, get(ReadWorker, KeyWorker(r.Pool, s.Worker))
	}
	return s.probe(r)
}

// probe looks up a worker at random. Where the store's clock is of no use every
// other one is of those that were looked up before, so that one that stays as it
// is is found out.
func (s State) probe(r *Rules) (State, Action) {
	n := s.random.Uint64()
	if s.blind && s.probes%2 == 0 {
		const golden = 0x9e3779b97f4a7c15 // multiples of it are spread well
		n = s.draw + uint64(s.probes)*golden
	}
	s.Worker = s.first + int64(n%uint64(s.count))
	return s, get(ReadWorker, KeyWorker(r.Pool, s.Worker))
}

// probed: one worker of a large pool was looked up.
func (s State) probed(r *Rules, now Now, rec store.Record) (State, Action) {
	if s.count == 1 { // as good as listed
		return s.listed(r, now, []store.Record{rec})
	}
	if s.probes%2 == 0 {
		s.sight(now, rec)
	}
	c := s.judge(r, now, s.Worker, rec)
	if c.rank < waiting {
		return s.take(r, now, c)
	}
	if s.probes--; s.probes > 0 {
		return s.probe(r)
	}
	return s.none(r, now, []candidate{c})
}

// listed: all records of the pool's workers were listed.
func (s State) listed(r *Rules, now Now, list []store.Record) (State, Action) {
	records := make(map[int64]store.Record, len(list))
	for _, rec := range list {
		if n, ok := WorkerOf(r.Pool, rec.Key); ok {
			records[n] = rec
		}
	}
	s.sight(now, list...)
	all := make([]candidate, 0, s.count)
	for n := s.first; n < s.first+s.count; n++ {
		all = append(all, s.judge(r, now, n, records[n]))
	}
	// Low numbers first, so that a pool's records stay few.
	slices.SortStableFunc(all, func(a, b candidate) int {
		if a.rank != b.rank || a.rank < waiting {
			return cmp.Compare(a.rank, b.rank)
		}
		return cmp.Compare(a.free, b.free)
	})
	best := all[0]
	switch {
	case best.rank == unusable:
		return s.none(r, now, all)
	case best.rank < waiting && s.tries > 0:
		// Others are after the same worker: spread over the next best, further
		// with each defeat.
		alike := slices.IndexFunc(all, func(c candidate) bool { return c.rank != best.rank })
		if alike < 0 {
			alike = len(all)
		}
		best = all[s.random.Uint64()%uint64(min(alike, 16<<min(s.tries, 10)))]
	}
	return s.take(r, now, best)
}

// judge says what one would have of a worker.
func (s *State) judge(r *Rules, now Now, n int64, rec store.Record) candidate {
	cur, err := ReadRecord(rec)
	c := candidate{worker: n, rec: cur, version: rec.Version, base: max(cur.Horizon, s.Pool.Floor)}
	if err != nil || c.base >= r.Layout.Last() {
		c.rank, c.free, c.fault = unusable, never, err // its horizon is not known, or at the layout's end
		return c
	}
	c.free = r.Delay(c.base, now.Wall)
	// Where the store can lose an operator's release, too, the holder may live on.
	if cur.Owner != "" || s.Lossy && cur.TTL > 0 {
		if left := s.left(r, now, rec, cur); left > 0 {
			c.rank, c.free = unusable, max(left, c.free)
			return c
		}
	}
	c.dead = cur.Owner != ""
	switch {
	case c.free > r.Wait:
		c.rank = unusable
	case c.free > 0:
		c.rank = waiting
	case cur.Name != "" && cur.Name == s.name, r.Choice == Prefer && n == r.Worker:
		c.rank = ours
	case cur.Owner == "":
		c.rank = free
	default:
		c.rank = expired
	}
	return c
}

// left is for how long a record's holder counts as alive: its time to live since
// the write by the store's clock, or since this version was first seen here: the
// store may have no clock, or one that was set back. On a durable store it is how
// politely workers change hands, and never what makes ids unique. On a lossy one
// it makes sure that a holder whose record comes back finds it too late; and
// there the two readings may be of the clocks of two hosts.
func (s *State) left(r *Rules, now Now, rec store.Record, cur Record) time.Duration {
	unwritten := rec.Read.Sub(rec.Written)
	if s.Lossy {
		unwritten -= 2 * r.Skew
	}
	if at, ok := s.seen[rec.Key]; ok && at.version == rec.Version {
		unwritten = max(unwritten, now.Boot-at.since)
	}
	return time.Duration(cur.TTL)*time.Millisecond - unwritten + 1
}

// sight remembers since when each record has been as it is now.
func (s *State) sight(now Now, list ...store.Record) {
	seen := maps.Clone(s.seen)
	if seen == nil {
		seen = make(map[string]sighting, len(list))
	}
	for _, rec := range list {
		s.blind = s.blind || rec.Read.Before(rec.Written)
		if seen[rec.Key].version != rec.Version {
			seen[rec.Key] = sighting{rec.Version, now.Boot}
		}
	}
	s.seen = seen
}

// none: no worker can be taken now. After a pause the pool is read again: it may have got
// workers meanwhile, or lost some.
func (s State) none(r *Rules, now Now, all []candidate) (State, Action) {
	if now.Boot-s.began >= s.patience(r) {
		if !slices.ContainsFunc(all, func(c candidate) bool { return c.fault == nil }) {
			return s.end(Refused, all[0].fault) // no wait helps
		}
		return s.end(Refused, s.fullError(r, now, all))
	}
	pause := min(max(all[0].free, 50*time.Millisecond), time.Second)
	until := min(now.Boot+pause+s.jitter(50*time.Millisecond), s.began+s.patience(r))
	s.Phase = Joining
	return s, sleep(until)
}

// belowFloor says whether the pool's floor lies too far ahead for any worker, so
// that there is nothing to wait for.
func (s *State) belowFloor(r *Rules, now Now) bool {
	return r.Delay(s.Pool.Floor, now.Wall) > r.Wait+max(s.began+r.Wait-now.Boot, 0)
}

// patience is how long a worker is sought: where the store's clock is of no use,
// long enough to see that a record stays as it is for its time to live.
func (s *State) patience(r *Rules) time.Duration {
	if s.blind {
		return r.Wait + r.TTL
	}
	return r.Wait
}

// hinted: the record of fresh workers was read. The worker is granted by the
// Put that creates its own record; the hint only says where to begin.
func (s State) hinted(r *Rules, now Now, rec store.Record) (State, Action) {
	next := s.first
	if rec.Version != "" {
		h, err := record.Read[hint](rec)
		if err != nil {
			return s.end(Refused, err)
		}
		next = max(next, h.Next)
	}
	s.hint = rec.Version
	if s.tries > 0 {
		next = max(next, s.Worker+1)
	}
	left := s.first + s.count - next
	if left <= 0 {
		return s.end(Refused, &FreshError{Pool: r.Pool, Workers: s.count})
	}
	if s.tries > 0 { // others are after the same: spread, further with each defeat
		next += int64(s.random.Uint64() % uint64(min(int64(4*s.tries), left)))
	}
	c := s.judge(r, now, next, store.Record{})
	if c.rank == unusable { // it would be used up in vain
		return s.none(r, now, []candidate{c})
	}
	return s.take(r, now, c)
}
