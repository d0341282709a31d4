package term

import (
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// This file has every write, and what follows from its answer. A worker's record is
// written to take it, to extend it and to release it, by put; what the answer leaves in
// doubt is read and settled.

// take writes down that a worker is ours. Where its base lies ahead, nothing is
// granted yet: no horizon above its base is further ahead than a floor is raised
// by a restore.
func (s State) take(r *Rules, now Now, c candidate) (State, Action) {
	reach := min(r.Reach, s.budget(r))
	s.Phase, s.Worker, s.Base = Taking, c.worker, c.base
	want := Record{
		V: record.Format, Term: c.rec.Term + 1, Owner: s.token(), Name: s.name, Build: r.Build,
		Horizon: max(c.base, r.tick(s.wall(r, now, s.drift(now)).Add(reach))), TTL: r.ttl(reach).Milliseconds(),
	}
	return s.put(r, now, write{purpose: TakeWorker, want: want, version: c.version, reach: reach})
}

// extend writes down that the grant goes further ahead of the clock.
func (s State) extend(r *Rules, now Now) (State, Action) {
	reach := r.reach(s.Reach, s.budget(r))
	want := s.Have
	want.Horizon = max(want.Horizon, r.tick(s.wall(r, now, s.drift(now)).Add(reach)))
	want.TTL, want.Build = r.ttl(reach).Milliseconds(), r.Build // another firn may have left us this grant
	return s.put(r, now, write{purpose: ExtendWorker, want: want, version: s.version, reach: reach})
}

// release frees the worker. It is the one step that lowers a horizon: the
// generator is closed for good, and has issued nothing above s.last. Where an extension
// was acknowledged late, the record has another version than ours: the release is refused,
// and settle reads which one.
func (s State) release(r *Rules) (State, Action) {
	s.Phase = Releasing
	want := s.Have
	want.Owner, want.TTL = "", 0
	want.Horizon = max(s.Base, min(s.last, s.Have.Horizon))
	s.write = write{purpose: ReleaseWorker, want: want, version: s.version}
	return s.again(r)
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
	s.write.copies++
	cond := store.Condition{Version: s.write.version}
	if s.Lossy && s.write.purpose == ExtendWorker {
		// A store that forgets must not let us revive on a record that fell back.
		cond.Within = time.Duration(s.Have.TTL) * time.Millisecond
	}
	return s, put(s.write.purpose, KeyWorker(r.Pool, s.Worker), s.write.want, cond)
}

// wrote: the Put under way was acknowledged.
func (s State) wrote(r *Rules, now Now, rec store.Record) (State, Action) {
	switch s.doing {
	case WritePool:
		return s.next(r, now)
	case WriteHint:
		s.Phase = Confirming
		return s.next(r, now)
	}
	return s.acknowledged(r, now, rec, s.asked)
}

// conflicted: the Put under way was not carried out and never will be. Somebody else was
// first.
func (s State) conflicted(r *Rules, now Now) (State, Action) {
	switch s.doing {
	case WritePool:
		return s.next(r, now)
	case WriteHint:
		s.Phase = Confirming
		return s.next(r, now)
	case TakeWorker:
		s.Phase = Seeking
		s.tries++
		pause := min(5*time.Millisecond<<min(s.tries, 6), 250*time.Millisecond)
		until := now.Boot + s.jitter(pause)
		return s, sleep(until)
	}
	// An earlier copy of ours was carried out, or somebody else's write was.
	s.write.doubt, s.write.refused = true, true
	return s.next(r, now)
}

// acknowledged: what was wanted is in the store, as rec, asked for at since.
func (s State) acknowledged(r *Rules, now Now, rec store.Record, since time.Duration) (State, Action) {
	s.write.since, s.write.doubt = since, false
	if late := s.Since + time.Duration(s.Have.TTL)*time.Millisecond; s.write.purpose == ExtendWorker && now.Boot > late {
		s.write.late = &rec
		return s.late(r, now)
	}
	return s.granted(r, now, rec)
}

// late: an extension was acknowledged late. By now others may have had the
// worker, from a store that forgot our last write and then theirs. Where no
// process has seen that it can, until after the acknowledgement, it has not.
func (s State) late(r *Rules, now Now) (State, Action) {
	if s.Lossy {
		return s.end(Lost, &LostError{Worker: s.Worker, Late: true}) // the grant in hand stays what it was
	}
	return s.hold(r, now)
}

// granted: the acknowledgement rec counts.
func (s State) granted(r *Rules, now Now, rec store.Record) (State, Action) {
	s.Have, s.version, s.Since, s.Reach = s.write.want, rec.Version, s.write.since, s.write.reach
	s.hear(now, rec)
	purpose := s.write.purpose
	s.heir = false
	s.write, s.Fails, s.Err = write{}, 0, nil
	switch purpose {
	case ReleaseWorker:
		return s.end(Released, nil)
	case TakeWorker:
		s.Phase, s.tries = Confirming, 0
		if r.Choice == Fresh {
			s.Phase = Noting
		}
	}
	return s.next(r, now)
}

// settle: our worker's record was read because a write to it is in doubt. A clone of this process, as in
// a virtual machine that was cloned, has our owner token and may write the same as we want to. It has
// the worker if our only copy was refused, or if it wrote something else.
func (s State) settle(r *Rules, now Now, rec store.Record) (State, Action) {
	cur, err := ReadRecord(rec)
	untouched := rec.Version == s.write.version
	clones := s.write.refused && s.write.copies == 1
	switch {
	case err == nil && cur == s.write.want && !untouched && !clones: // it was carried out
		return s.acknowledged(r, now, rec, s.write.since)
	case s.write.purpose == TakeWorker: // not yet; should it be later, the record falls free by itself
		s.write = write{}
		return s.next(r, now)
	case rec.Version == "" && !s.Lossy && !s.repaired():
		return s.end(Forgotten, &store.ForgotError{Store: "pool " + r.Pool, What: "the record of our own worker is missing"})
	case untouched && s.write.refused: // the store found it too old to extend
		return s.end(Lost, &LostError{Worker: s.Worker, Late: true})
	case untouched && s.Closed && s.write.purpose == ExtendWorker: // never mind the extension
		s.write = write{}
		return s.next(r, now)
	case untouched:
		return s.again(r)
	case err == nil && cur.Owner == s.Have.Owner && s.Closed: // an extension arrived after all
		s.write, s.version = write{}, rec.Version
		return s.release(r)
	case err == nil && !s.Lossy && (cur == s.Have && !clones || s.heir && cur.Owner == s.Have.Owner && cur.Horizon >= s.Have.Horizon):
		// An extension that an earlier process sent, before it died and left us
		// its grant; or somebody put back what we have.
		s.write.want = cur
		return s.acknowledged(r, now, rec, s.Since)
	case err == nil && !s.Lossy && !s.repaired() && (cur.Owner == s.Have.Owner && cur.Horizon < s.Have.Horizon || cur.Term < s.Have.Term):
		return s.end(Forgotten, &store.ForgotError{Store: "pool " + r.Pool, What: "the record of our own worker went back to an earlier state"})
	}
	lost := &LostError{Worker: s.Worker, Err: err}
	if cur.Owner != "" {
		lost.Name = cur.Name
	}
	return s.end(Lost, lost)
}

// repaired reports whether the pool was made safe after what the store may have
// forgotten of this grant: whatever is granted now starts above it. Only a restore
// raises a floor, and what is granted after that is above the floor.
func (s *State) repaired() bool { return s.Pool.Floor >= s.Have.Horizon }

// amend writes what this member has to say into the pool's record. Whatever comes of it,
// the record is read again.
func (s State) amend(r *Rules, p Pool) (State, Action) {
	return s, put(WritePool, KeyPool(r.Pool), p, store.Condition{Version: s.at})
}

// note leaves word where the next fresh worker may be. Whatever comes of it, the worker
// is ours.
func (s State) note(r *Rules) (State, Action) {
	next := hint{V: record.Format, Next: s.Worker + 1}
	return s, put(WriteHint, keyFresh(r.Pool), next, store.Condition{Version: s.hint})
}
