package term

import (
	"time"

	"github.com/firn-id/firn/store"
)

// wrote: the Put under way was acknowledged.
func (s State) wrote(r *Rules, now Now, rec store.Record) (State, Action) {
	switch {
	case s.Phase == Amending:
		s.Phase = Joining
		return s.next(r, now)
	case s.key == keyPool(r.Pool):
		return s.next(r, now)
	}
	return s.acknowledged(r, now, rec, s.asked)
}

// conflicted: the Put under way was not carried out and never will be.
func (s State) conflicted(r *Rules, now Now) (State, Action) {
	switch {
	case s.Phase == Amending: // somebody else was first
		s.Phase = Joining
		return s.next(r, now)
	case s.key == keyPool(r.Pool):
		return s.next(r, now)
	case s.Phase == Taking: // likewise
		s.Phase = Seeking
		s.tries++
		pause := min(5*time.Millisecond<<min(s.tries, 6), 250*time.Millisecond)
		until := now.Boot + s.jitter(pause)
		return s, Action{Op: Sleep, Until: until}
	}
	// An earlier copy of ours was carried out, or somebody else's write was.
	s.write.doubt, s.write.refused = true, true
	return s.next(r, now)
}

// acknowledged: what was wanted is in the store, as rec, asked for at since.
func (s State) acknowledged(r *Rules, now Now, rec store.Record, since time.Duration) (State, Action) {
	s.write.since, s.write.doubt = since, false
	if late := s.Since + time.Duration(s.Have.TTL)*time.Millisecond; s.Phase == Holding && now.Boot > late {
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
	s.write, s.Fails, s.Err = write{}, 0, nil
	switch s.Phase {
	case Releasing:
		return s.end(Released, nil)
	case Taking:
		s.Phase, s.tries = Confirming, 0
		if r.Choice == Fresh {
			s.Phase = Noting
		}
	}
	return s.next(r, now)
}

// settle: our worker's record was read because a write to it is in doubt.
func (s State) settle(r *Rules, now Now, rec store.Record) (State, Action) {
	cur, err := ReadRecord(rec)
	untouched := rec.Version == s.write.version
	switch {
	case err == nil && cur == s.write.want && !untouched: // it was carried out
		return s.acknowledged(r, now, rec, s.write.since)
	case s.Phase == Taking: // not yet; should it be later, the record falls free by itself
		s.write = write{}
		return s.next(r, now)
	case rec.Version == "" && !s.Lossy && !s.repaired():
		return s.end(Forgotten, &store.ForgotError{Store: "pool " + r.Pool, What: "the record of our own worker is missing"})
	case untouched && s.write.refused: // the store found it too old to extend
		return s.end(Lost, &LostError{Worker: s.Worker, Late: true})
	case untouched && s.Closed && s.Phase == Holding: // never mind the extension
		s.write = write{}
		return s.next(r, now)
	case untouched:
		return s.again(r)
	case err == nil && cur.Owner == s.Have.Owner && s.Closed: // an extension arrived after all
		s.write, s.version = write{}, rec.Version
		return s.release(r)
	case err == nil && !s.Lossy && cur.Owner == s.Have.Owner && cur.Horizon >= s.Have.Horizon:
		// An extension that an earlier process sent, before it died and left us
		// its grant.
		s.write.want = cur
		return s.acknowledged(r, now, rec, s.Since)
	case err == nil && !s.Lossy && !s.repaired() && (cur.Owner == s.Have.Owner || cur.Term < s.Have.Term):
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

// hold extends the grant when it is time, and sleeps until then. What the pool's
// record has to say, or to tell, comes first.
func (s State) hold(r *Rules, now Now) (State, Action) {
	if s.write.late != nil || s.Pool.ID == "" || s.amended(r, now, s.Pool) != s.Pool {
		return s, Action{Op: Get, Key: keyPool(r.Pool)}
	}
	due := r.due(s.Reach)
	if r.tick(now.Wall) > s.Have.Horizon { // after a suspend, or a clock that was set right
		due = min(due, time.Second)
	}
	switch due += s.Since; {
	case !s.View.Known && now.Boot >= s.look.at: // this may be a copy of the store that the grant is of
		return s, Action{Op: Ask}
	case !s.View.Known:
		return s, Action{Op: Sleep, Until: s.look.at}
	case now.Boot >= due:
	case now.Boot >= s.look.at:
		return s, Action{Op: Ask}
	default:
		return s, Action{Op: Sleep, Until: min(due, s.look.at)}
	}
	reach := r.reach(s.Reach, s.budget(r))
	want := s.Have
	want.Horizon = max(want.Horizon, r.tick(s.wall(r, now, s.drift(now)).Add(reach)))
	want.TTL = r.ttl(reach).Milliseconds()
	return s.put(r, now, write{want: want, version: s.version, reach: reach})
}

// hear remembers what the store's clock said.
func (s *State) hear(now Now, rec store.Record) {
	if s.read = rec.Read; !s.read.IsZero() {
		s.read = s.read.Add(-now.Boot)
	}
	s.heard = now.Boot
}

// drift is by how much the boot clock and the store's may have come apart since the store
// was heard, as after a pause of hours: 500 parts in a million are the most that the
// system's is made faster or slower to correct it (adjtimex(2)).
func (s *State) drift(now Now) time.Duration { return (now.Boot - s.heard) / 2000 }

// wall is the time from which a grant reaches: where this process's clock runs
// ahead of the store's, it is followed no further than the bound on clocks, less
// what they may have come apart.
func (s *State) wall(r *Rules, now Now, drift time.Duration) time.Time {
	most := s.read.Add(now.Boot + r.Skew - drift)
	if r.LocalClock || s.read.IsZero() || now.Wall.Before(most) {
		return now.Wall
	}
	return most
}

// release frees the worker. It is the one step that lowers a horizon: the
// generator is closed for good, and has issued nothing above s.last.
func (s State) release(r *Rules) (State, Action) {
	s.Phase = Releasing
	if late := s.write.late; late != nil {
		s.version = late.Version
	}
	want := s.Have
	want.Owner, want.TTL = "", 0
	want.Horizon = max(s.Base, min(s.last, s.Have.Horizon))
	s.write = write{want: want, version: s.version}
	return s.again(r)
}
