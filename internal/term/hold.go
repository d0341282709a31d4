package term

import (
	"time"
)

// hold extends the grant when it is time, and sleeps until then. What the pool's
// record has to say, or to tell, comes first.
func (s State) hold(r *Rules, now Now) (State, Action) {
	if s.write.late != nil || s.Pool.ID == "" || s.amended(r, now, s.Pool) != s.Pool {
		return s, get(WatchPool, KeyPool(r.Pool))
	}
	due := r.due(s.Reach)
	if r.tick(now.Wall) > s.Have.Horizon { // after a suspend, or a clock that was set right
		due = min(due, time.Second)
	}
	switch due += s.Since; {
	case !s.View.Known && now.Boot >= s.look.at: // this may be a copy of the store that the grant is of
		return s, ask(WatchDurability)
	case !s.View.Known:
		return s, sleep(s.look.at)
	case now.Boot >= due:
	case now.Boot >= s.look.at:
		return s, ask(WatchDurability)
	default:
		return s, sleep(min(due, s.look.at))
	}
	return s.extend(r, now)
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
