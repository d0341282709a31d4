package term

import (
	"cmp"
	"slices"
	"time"

	"github.com/firn-id/firn"
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
	case r.Choice == Fresh:
		return s, Action{Op: Get, Key: keyFresh(r.Pool)}
	case s.count <= listed && s.count > 1:
		return s, Action{Op: List, Key: keyWorkers(r.Pool)}
	}
	s.probes = int(min(s.count, probes))
	if r.Choice == Prefer {
		s.Worker = r.Worker
		return s, Action{Op: Get, Key: keyWorker(r.Pool, s.Worker)}
	}
	return s.probe(r)
}

func (s State) probe(r *Rules) (State, Action) {
	s.Worker = s.first + int64(s.random.Uint64()%uint64(s.count))
	return s, Action{Op: Get, Key: keyWorker(r.Pool, s.Worker)}
}

// probed: one worker of a large pool was looked up.
func (s State) probed(r *Rules, now Now, rec store.Record) (State, Action) {
	if s.count == 1 { // as good as listed
		return s.choose(r, now, []store.Record{rec})
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

// choose: all records of the pool's workers were listed.
func (s State) choose(r *Rules, now Now, list []store.Record) (State, Action) {
	records := make(map[int64]store.Record, len(list))
	for _, rec := range list {
		if n, ok := workerOf(r.Pool, rec.Key); ok {
			records[n] = rec
		}
	}
	s.seen = s.sight(now, list)
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
		c.rank, c.free = unusable, never // its horizon is not known, or at the layout's end
		return c
	}
	if cur.Owner != "" {
		if left := s.left(now, rec, cur); left > 0 {
			c.rank, c.free = unusable, left
			return c
		}
	}
	c.free = r.Delay(c.base, now.Wall)
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
// the write, by the store's clock; where that has none, since this version was
// first seen here. It is how politely workers change hands, and never what
// makes ids unique.
func (s *State) left(now Now, rec store.Record, cur Record) time.Duration {
	unwritten := rec.Read.Sub(rec.Written)
	if rec.Read.IsZero() {
		unwritten = 0
		if at, ok := s.seen[rec.Key]; ok && at.version == rec.Version {
			unwritten = now.Boot - at.since
		}
	}
	return time.Duration(cur.TTL)*time.Millisecond - unwritten + 1
}

// sight remembers since when each record has been as it is now.
func (s *State) sight(now Now, list []store.Record) map[string]sighting {
	seen := make(map[string]sighting, len(list))
	for _, rec := range list {
		at, ok := s.seen[rec.Key]
		if !ok || at.version != rec.Version {
			at = sighting{rec.Version, now.Boot}
		}
		seen[rec.Key] = at
	}
	return seen
}

// none: no worker can be taken now.
func (s State) none(r *Rules, now Now, all []candidate) (State, Action) {
	if now.Boot-s.began >= r.Wait {
		return s.end(Refused, s.fullError(r, now, all))
	}
	pause := min(max(all[0].free, 50*time.Millisecond), time.Second)
	return s, Action{Op: Sleep, Until: min(now.Boot+pause+s.jitter(50*time.Millisecond), s.began+r.Wait)}
}

// take writes down that a worker is ours.
func (s State) take(r *Rules, now Now, c candidate) (State, Action) {
	reach := min(r.Reach, r.Outage)
	from := now.Wall
	if at := r.Layout.Time(c.base + 1); !r.Lossy && at.After(from) {
		from = at
	}
	s.Phase, s.Worker, s.Base = Taking, c.worker, c.base
	return s.put(r, now, write{
		want: Record{
			V: format, Term: c.rec.Term + 1, Owner: s.token(), Name: s.name,
			Horizon: max(c.base, r.tick(from.Add(reach))), TTL: r.ttl(reach).Milliseconds(),
		},
		version: c.version, reach: reach,
	})
}

// put sends a write for the first time.
func (s State) put(r *Rules, now Now, w write) (State, Action) {
	w.since = now.Boot
	s.write = w
	return s.again(r)
}

// again sends the write, word for word.
func (s State) again(r *Rules) (State, Action) {
	s.write.doubt, s.write.refused = false, false
	cond := store.Condition{Version: s.write.version}
	if r.Lossy && s.Phase == Holding {
		// A store that forgets must not let us revive on a record that fell back.
		cond.Within = time.Duration(s.Have.TTL) * time.Millisecond
	}
	return s, Action{Op: Put, Key: keyWorker(r.Pool, s.Worker), Value: encode(s.write.want), Cond: cond}
}
