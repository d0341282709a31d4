package block

import (
	"math"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// This file says what is written, and what follows from what came of it.

// write asks for a Put of s.want, in the place of the record of version v.
func (s State) write(r *Rules, p Purpose, v store.Version) (State, Action) {
	s.goal = p
	return s, Action{For: p, Request: record.Request{
		Op: record.Put, Key: r.Key, Value: s.want.Encode(), Cond: store.Condition{Version: v},
	}}
}

// create writes the first record.
func (s State) create(r *Rules) (State, Action) {
	switch {
	case r.Found == nil:
		return s.done(Grant{}, &Refusal{Why: Missing})
	case !s.Durability.Durable && !r.Accept:
		return s.done(Grant{}, &Refusal{Why: Lossy, Seen: s.Durability.Why})
	}
	s.want, s.span = r.Found.New(), Span{Key: r.Key}
	s.want.Store = s.Durability.Identity
	if !s.Durability.Durable {
		s.want.Instance = s.Durability.Instance
	}
	return s.write(r, ToBegin, "")
}

// put writes a record that grants what Take asks for.
func (s State) put(r *Rules, now Now) (State, Action) {
	left := s.Have.Left()
	n := min(s.take.Need, left)
	n += min(s.take.Ahead, left-n)
	if n == 0 || n < s.take.Least {
		return s.done(Grant{}, &Refusal{Why: Ended, Max: s.Have.Max, Left: left})
	}
	s.want = s.Have
	s.want.V = record.Format
	if s.want.Store == "" {
		s.want.Store = s.Durability.Identity
	}
	s.want.Granted += n * s.want.Stride()
	s.span = Span{Key: r.Key, Above: s.Have.Granted, To: s.want.Granted}
	if s.want.Granted >= s.want.Reached {
		s.want.Reached = 0
	}
	s.want.Writes++
	s.want.Rate, s.want.At, s.want.By = s.rate(now.Wall, n), now.Wall.UTC().Truncate(time.Millisecond), r.By
	return s.write(r, ToGrant, s.version)
}

// rate is the rate of the record that want replaces, with n numbers more.
func (s *State) rate(now time.Time, n int64) float64 {
	rate := s.Have.RateAt(now) + float64(n)/spell.Seconds()
	if math.IsNaN(rate) || math.IsInf(rate, 0) {
		return 0
	}
	return rate
}

// acknowledged: the record is what this process wrote, to begin or to grant, under version v.
func (s State) acknowledged(r *Rules, now Now, v store.Version) (State, Action) {
	s = s.written()
	s.Have, s.version = s.want, v
	begun := s.span.To == s.span.Above
	if begun {
		s.alone = true
	} else {
		s.own = s.own.Granted(s.span, v)
	}
	switch {
	case s.stop != nil:
		return s.handBack(r)
	case begun: // it is read as any other
		return s.next(r)
	case s.Have.Instance != "", !s.Durability.Durable, now.Boot-s.promised >= again:
		s.goal = ToProve
		return s, ask(ToProve)
	}
	return s.grant()
}

// grant gives what was just acknowledged.
func (s State) grant() (State, Action) {
	stride := s.Have.Stride()
	return s.done(Grant{First: s.span.Above + stride, Count: (s.span.To - s.span.Above) / stride, Stride: stride}, nil)
}

// conflicted: somebody else has written since the record was read.
func (s State) conflicted(r *Rules) (State, Action) {
	if s.under.For == ToHandBack {
		return s.end(nil) // somebody was granted more, above what was to be handed back
	}
	s.goal, s.alone = ToRead, false
	s.tries++
	if s.tries < 2 {
		return s.next(r)
	}
	// Whoever has lost often waits least, so that nobody starves.
	return s.sleep(4 * time.Millisecond >> min(s.tries-2, 6))
}

// unanswered: the action under way failed. A Put may have been carried out, or
// may yet be.
func (s State) unanswered(a Answer) (State, Action) {
	s.Fails++
	s.Err = a.Err
	if s.under.For == ToHandBack {
		return s.end(a.Err) // it is left at that: were it tried again, numbers of others might be handed back
	}
	if s.under.Op == record.Put {
		s.unwritten = true
		s.own = s.own.Unknown(s.span, a.Record.Version)
	}
	return s.sleep(min(50*time.Millisecond<<min(s.Fails-1, 6), 2*time.Second))
}

// handBack lowers the record to what was used, if this process was the last to
// be granted anything.
func (s State) handBack(r *Rules) (State, Action) {
	used := s.stop.Used
	if used == 0 { // before the first number the run may begin below zero
		used = math.MinInt64
	}
	to, ok := s.own.HandBack(s.version, used)
	if !ok {
		return s.end(nil)
	}
	top, _ := s.own.Top(r.Key)
	s.want = s.Have
	s.want.Granted, s.want.Reached = to, max(s.Have.Reached, top)
	s.want.Writes++
	return s.write(r, ToHandBack, s.version)
}

// handedBack: the record says only what was used.
func (s State) handedBack() (State, Action) {
	s.Returned = (s.Have.Granted - s.want.Granted) / s.want.Stride()
	return s.end(nil)
}
