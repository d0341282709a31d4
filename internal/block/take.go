package block

import (
	"fmt"
	"math"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// again is how old a promise may be when numbers are used that were granted
// under it.
const again = time.Minute

// found: the record was read.
func (s State) found(r *Rules, now Now, rec store.Record) (State, Action) {
	have, err := Read(rec)
	switch {
	case err != nil && s.stop != nil:
		return s.end(err)
	case err != nil:
		return s.done(Grant{}, err)
	}
	if s.doubt {
		s.doubt = false
		if rec.Version == s.tried {
			return s.acknowledged(r, now, rec.Version)
		}
		// Whatever it says, it is another's write. If ours is carried out yet,
		// or was and has been replaced since, its numbers are nobody's.
		if s.phase == taking {
			s.Doubtful += (s.want.Granted - s.base) / s.want.Stride()
		}
	}
	if err := s.elsewhere(r, have); err != nil {
		return s.end(err)
	}
	if what := s.lacks(have, rec.Version); what != "" {
		return s.end(&store.ForgotError{Store: "series " + r.Name, What: what})
	}
	if s.stop != nil {
		return s.handBack(r)
	}
	if rec.Version == "" {
		return s.create(r)
	}
	s.alone = s.tries == 0 && (s.version == "" || rec.Version == s.version)
	s.Have, s.version = have, rec.Version
	switch {
	case s.take.Need+s.take.Ahead == 0:
		return s.done(Grant{}, nil)
	case !s.accepts(r):
		return s.done(Grant{}, &LossyError{r.Name, s.Durability.Why, false})
	}
	return s.put(r, now)
}

// lacks says what a record no longer has that was known of it; empty: nothing.
func (s *State) lacks(rec Record, v store.Version) string {
	switch was := s.Have; {
	case was.ID == "":
		return ""
	case rec.ID == "":
		return "its record is gone"
	case rec.ID != was.ID:
		return "its record is another series'"
	case rec.Writes < was.Writes, rec.Writes == was.Writes && v != s.version:
		return fmt.Sprintf("its record was written %d times, and says %d", was.Writes, rec.Writes)
	case s.mine != "" && rec.Granted < s.top:
		return fmt.Sprintf("numbers up to %d were granted to this process, and its record says %d", s.top, rec.Granted)
	}
	return ""
}

// elsewhere returns an error if a record was made in another store than the one that made
// the last promise.
func (s *State) elsewhere(r *Rules, rec Record) error {
	return store.CheckOther(fmt.Sprintf("series %q", r.Name), s.Durability.Identity, rec.Store)
}

// accepts reports whether numbers may be taken, as what the store promises goes.
func (s *State) accepts(r *Rules) bool {
	return s.Durability.Durable || r.Accept || s.Have.Lossy
}

// create writes the first record.
func (s State) create(r *Rules) (State, Action) {
	switch {
	case r.Found == nil:
		return s.done(Grant{}, &MissingError{Name: r.Name})
	case !s.Durability.Durable && !r.Accept:
		return s.done(Grant{}, &LossyError{r.Name, s.Durability.Why, false})
	}
	s.phase, s.want = founding, r.Found.New()
	s.want.Store = s.Durability.Identity
	if !s.Durability.Durable {
		s.want.Lossy, s.want.Instance = true, s.Durability.Instance
	}
	return s, Action{Op: Put, Key: r.Key, Value: s.want.Encode()}
}

// put writes a record that grants what Take asks for.
func (s State) put(r *Rules, now Now) (State, Action) {
	left := s.Have.Left()
	n := min(s.take.Need, left)
	n += min(s.take.Ahead, left-n)
	if n == 0 || n < s.take.Least {
		return s.done(Grant{}, &EndError{Name: r.Name, Max: s.Have.Max, Left: left})
	}
	s.phase, s.want, s.base = taking, s.Have, s.Have.Granted
	s.want.V = record.Format
	if s.want.Store == "" {
		s.want.Store = s.Durability.Identity
	}
	s.want.Granted += n * s.want.Stride()
	if s.want.Granted >= s.want.Reached {
		s.want.Reached = 0
	}
	s.want.Writes++
	s.want.Rate, s.want.At, s.want.By = s.rate(now.Wall, n), now.Wall.UTC().Truncate(time.Millisecond), r.By
	return s, Action{Op: Put, Key: r.Key, Value: s.want.Encode(), Cond: store.Condition{Version: s.version}}
}

// acknowledged: the record is what this process wrote, under version v.
func (s State) acknowledged(r *Rules, now Now, v store.Version) (State, Action) {
	if s.phase == returning {
		s.Returned = (s.Have.Granted - s.want.Granted) / s.want.Stride()
		return s.end(nil)
	}
	s.Have, s.version = s.want, v
	if s.phase == founding {
		s.alone = true
	}
	if s.phase == taking {
		if s.base != s.top || s.mine == "" {
			s.from = s.base
		}
		s.top, s.mine = s.Have.Granted, v
	}
	switch {
	case s.stop != nil:
		return s.handBack(r)
	case s.phase == founding && s.take.Need+s.take.Ahead == 0:
		return s.done(Grant{}, nil)
	case s.phase == founding:
		return s.put(r, now)
	case s.Have.Instance != "", !s.Durability.Durable, now.Boot-s.promised >= again:
		s.phase = checking
		return s, Action{Op: Ask}
	}
	return s.grant()
}

// grant gives what was just acknowledged.
func (s State) grant() (State, Action) {
	stride := s.Have.Stride()
	return s.done(Grant{First: s.base + stride, Count: (s.Have.Granted - s.base) / stride, Stride: stride}, nil)
}

// heard: the store made its promise again.
func (s State) heard(r *Rules, now Now, p store.Durability) (State, Action) {
	s.Durability, s.promised = p, now.Boot
	if err := s.elsewhere(r, s.Have); err != nil {
		return s.end(err)
	}
	what := s.stranger(p)
	switch {
	case what != "" && s.Have.Instance == "" && !r.Accept:
		return s.end(&LossyError{r.Name, p.Why, true}) // nothing says that anything was lost
	case what != "":
		return s.end(&store.ForgotError{Store: "series " + r.Name, What: what})
	case s.phase == idle:
		return s, Action{}
	case !s.accepts(r):
		return s.done(Grant{}, &LossyError{r.Name, p.Why, false})
	case s.phase == checking:
		return s.grant()
	}
	s.phase = reading
	return s.next(r, now)
}

// stranger says why the instance that answers may lack what was granted; empty:
// it does not. A record without an instance may be one that has gone back to
// before the store could forget; so only who restores it gives it one.
func (s *State) stranger(p store.Durability) string {
	switch was := s.Have.Instance; {
	case s.Have.ID == "" || was == p.Instance:
		return ""
	case was != "":
		return fmt.Sprintf("it was granted by %q, and %q answers now, which may lack the last grants", was, p.Instance)
	case !p.Durable:
		return fmt.Sprintf("it was created while the store could not lose writes; the store can now, so that %q may lack the last grants", p.Instance)
	}
	return ""
}

// conflicted: somebody else has written since the record was read.
func (s State) conflicted(r *Rules, now Now) (State, Action) {
	if s.phase == returning {
		return s.end(nil) // somebody was granted more, above what was to be handed back
	}
	s.phase, s.alone = reading, false
	s.tries++
	if s.tries < 2 {
		return s.next(r, now)
	}
	// Whoever has lost often waits least, so that nobody starves.
	pause := 4 * time.Millisecond >> min(s.tries-2, 6)
	wait := s.jitter(pause)
	return s, Action{Op: Sleep, For: wait}
}

// handBack lowers the record to what was used, if this process was the last to
// be granted anything.
func (s State) handBack(r *Rules) (State, Action) {
	to := s.from
	if s.stop.Used > 0 { // before the first number from may be negative
		to = max(to, s.stop.Used)
	}
	if s.mine == "" || s.version != s.mine || to >= s.top {
		return s.end(nil)
	}
	s.phase, s.want = returning, s.Have
	s.want.Granted, s.want.Reached = to, max(s.Have.Reached, s.top)
	s.want.Writes++
	return s, Action{Op: Put, Key: r.Key, Value: s.want.Encode(), Cond: store.Condition{Version: s.mine}}
}

// A MissingError says that a store has no series of that name: the name is mistyped, or
// there never was one, or the store has lost it.
type MissingError struct {
	Name    string
	Names   []string // those that the store has; nil where nobody has looked
	Nearest string   // that one of them which was probably meant; "" if none is like it
}

func (e *MissingError) Error() string {
	text := fmt.Sprintf("sequence: the store has no series %q", e.Name)
	if e.Nearest != "" {
		return text + fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	return text
}

// Retryable is false; see firn.Retryable.
func (*MissingError) Retryable() bool { return false }

// An EndError says that a series has not as many numbers left as a call asks for.
type EndError struct {
	Name string
	Max  int64
	Left int64 // how many are left, here and in the store; 0: it has come to its end
}

func (e *EndError) Error() string {
	end := fmt.Sprintf("its max is %d", e.Max)
	if e.Max == math.MaxInt64 {
		end = "no larger number fits 63 bits"
	}
	if e.Left > 0 {
		return fmt.Sprintf("sequence: series %q has only %d numbers left, not enough for this call: %s", e.Name, e.Left, end)
	}
	return fmt.Sprintf("sequence: series %q is used up: %s", e.Name, end)
}

// Retryable is false; see firn.Retryable.
func (*EndError) Retryable() bool { return false }

// A LossyError says that a series is not taken from a store that can forget what
// it acknowledged, because nobody has said that it may.
type LossyError struct {
	Name  string
	Why   string // what was seen of the store
	Since bool   // the store could not forget when the series was created
}

func (e *LossyError) Error() string {
	if e.Since {
		return fmt.Sprintf("sequence: series %q: the store may lose a write that it acknowledged (%s), and could not when the series was created. "+
			"If it loses one, numbers repeat: no clock can tell how far a counter had gone", e.Name, e.Why)
	}
	return fmt.Sprintf("sequence: series %q: the store can forget a write it acknowledged (%s), and then numbers repeat: "+
		"no clock can tell how far a counter had gone", e.Name, e.Why)
}

// Retryable is false; see firn.Retryable.
func (*LossyError) Retryable() bool { return false }
