package block

import (
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// This file says what follows from what was read of the record, and heard of the store.

// again is how old the answer about durability may be when numbers are used that were granted
// under it.
const again = time.Minute

// settle: the record was read because it is not known what came of a write.
func (s State) settle(r *Rules, now Now, rec store.Record) (State, Action) {
	if _, err := Read(rec); err != nil {
		return s.unreadable(err)
	}
	own, span, done := s.own.Settle(r.Key, rec.Version)
	s.own = own
	if done {
		return s.acknowledged(r, now, rec.Version)
	}
	s.Doubtful += (span.To - span.Above) / s.want.Stride()
	return s.read(r, now, rec)
}

// unreadable: there is something that is no record. The doubt, if any, stays.
func (s State) unreadable(err error) (State, Action) {
	if s.stop != nil {
		return s.end(err)
	}
	return s.done(Grant{}, err)
}

// read: the record was read, and it is not what a write in doubt has made of it.
func (s State) read(r *Rules, now Now, rec store.Record) (State, Action) {
	have, err := Read(rec)
	if err != nil {
		return s.unreadable(err)
	}
	if err := s.elsewhere(r, have); err != nil {
		return s.end(err)
	}
	if what := s.lacks(r, have, rec.Version); what != "" {
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
	if s.take.Need+s.take.Ahead > 0 {
		if !s.accepts(r) {
			return s.done(Grant{}, &Refusal{Why: Lossy, Seen: s.Durability.Why})
		}
		return s.put(r, now)
	}
	if err := s.strange(r); err != nil {
		return s.unfit(err)
	}
	return s.done(Grant{}, nil)
}

// lacks says what a record no longer has that was known of it; empty: nothing.
func (s *State) lacks(r *Rules, rec Record, v store.Version) string {
	was := s.Have
	top, granted := s.own.Top(r.Key)
	switch {
	case was.ID == "":
		return ""
	case rec.ID == "":
		return "its record is gone"
	case rec.ID != was.ID:
		return "its record is another series'"
	case rec.Writes < was.Writes, rec.Writes == was.Writes && v != s.version:
		return fmt.Sprintf("its record was written %d times, and says %d", was.Writes, rec.Writes)
	case granted && rec.Granted < top:
		return fmt.Sprintf("numbers up to %d were granted to this process, and its record says %d", top, rec.Granted)
	}
	return ""
}

// elsewhere returns an error if a record was made in another store than the one that
// answered last.
func (s *State) elsewhere(r *Rules, rec Record) error {
	return record.CheckOther(fmt.Sprintf("series %q", r.Name), s.Durability.Identity, rec.Store)
}

// accepts reports whether numbers may be taken, for a store of that durability.
func (s *State) accepts(r *Rules) bool {
	return s.Durability.Durable || r.Accept
}

// heard: the store said again how durable it is.
func (s State) heard(r *Rules, now Now, p store.Durability) (State, Action) {
	s.Durability, s.promised = p, now.Boot
	if err := s.elsewhere(r, s.Have); err != nil {
		return s.end(err)
	}
	if err := s.strange(r); err != nil {
		return s.unfit(err)
	}
	switch {
	case s.under.For == ToLook:
		return s, Action{}
	case !s.accepts(r):
		return s.done(Grant{}, &Refusal{Why: Lossy, Seen: p.Why})
	case s.under.For == ToProve:
		return s.grant()
	}
	s.goal = ToRead
	return s.next(r)
}

// unfit is what follows where the store may lack what was granted. Where it is only lossy, and
// nothing says that it did, nothing is granted until it is durable again.
func (s State) unfit(err error) (State, Action) {
	if refused := new(Refusal); errors.As(err, &refused) {
		return s.done(Grant{}, err)
	}
	return s.end(err)
}

// strange returns an error where the instance that answered last may lack what was
// granted.
func (s *State) strange(r *Rules) error {
	return s.Have.Strange(r.Name, s.Durability, r.Accept)
}

// Strange returns an error where a store of this durability may lack what was granted of
// the counter: a [*store.ForgotError], or a [*Refusal] where nothing says that anything was lost.
// A record without an instance may be one that has gone back to before the store
// was lossy; so only a recovery gives it one.
func (r Record) Strange(name string, p store.Durability, accept bool) error {
	var what string
	switch was := r.Instance; {
	case r.ID == "" || was == p.Instance:
		return nil
	case was != "":
		what = fmt.Sprintf("it was granted by %q, and %q answers now, which may lack the last grants", was, p.Instance)
	case p.Durable:
		return nil
	case !accept:
		return &Refusal{Why: Lossy, Seen: p.Why, Since: true}
	default:
		what = fmt.Sprintf("it was created while the store could not lose writes; the store can now, so that %q may lack the last grants", p.Instance)
	}
	return &store.ForgotError{Store: "series " + name, What: what}
}
