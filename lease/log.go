package lease

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/holder"
	"github.com/firn-id/firn/internal/term"
)

// lastMinute is how long before ids end it is said once more.
const lastMinute = time.Minute

// told is what was logged.
type told struct {
	kind   string    // of the last change
	spent  time.Time // when ids ended, which resume later; zero: they have not ended, or resumed
	waits  bool      // for the first id of the term
	marked bool      // that the mark of the grant file cannot be raised
}

// ended remembers when ids ended, until they resume.
func (t *told) ended(at time.Time) {
	if t.spent.IsZero() {
		t.spent = at
	}
}

// rounded is a duration as a log shows it.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

// tell logs a change of state that an operator wants to know, once.
func (k *keeper) tell(was *State, now State, p *holder.Process) {
	s := &p.Term
	wall := p.Now(k.Clocks().Boot).Wall
	k.tellFile(p)
	if was != nil && was.Durable && !now.Durable {
		k.log.Warn("the store can lose writes that it acknowledged; ids are unique while all clocks are right",
			"within", p.Rules.Skew, "why", now.Why, "wait at each start", p.Rules.Quarantine(s.Pool))
	}
	k.tellWait(now, wall)
	kind := k.kind(s, now, wall)
	if kind == "" || kind == k.told.kind {
		return
	}
	log := k.log.With("worker", now.workerLogged(), "term", now.Term)
	switch {
	case kind == "away", kind == "ending":
		log.Warn("store does not answer; ids continue until "+now.EndsAt.UTC().Format(time.RFC3339),
			"left", now.Left(wall).Round(time.Second), "err", now.Err)
	case kind == "ended":
		k.told.ended(now.EndsAt)
		log.Error("ids ended: store has not answered since "+now.AwaySince.UTC().Format(time.RFC3339)+
			"; ids resume when it does. Do not restart, delete records or create the pool again", "err", now.Err)
	case kind == "spent":
		k.told.ended(now.EndsAt)
		log.Error("ids ended: the store has not extended the lease, and does not say whether it can lose writes; ids resume when it does", "err", now.Err)
	case kind == "unseen":
		k.tellResumed(log, wall)
		log.Warn("the store does not say whether it can lose writes; ids continue", "err", now.Err)
	case kind == "holding" && k.tellResumed(log, wall):
	case kind == "holding" && (k.told.kind == "away" || k.told.kind == "ending" || k.told.kind == "unseen"):
		log.Info("the store answers again")
	case kind == "holding":
		log.Debug("took a worker", "durable", now.Durable, "until", now.EndsAt)
	case s.Phase == term.Released:
		log.Debug("gave the worker back")
	case !p.Begun && (s.Phase == term.Refused || s.Phase == term.Forgotten): // Open returns it
	case s.Phase == term.Lost && k.options.foreign: // Worker.Err says so
	case s.Phase == term.Lost:
		if p.Begun {
			k.told.ended(wall)
		}
		log.Warn("lost the worker; leasing another", k.lossOf(now.Err)...)
	case s.Phase == term.Refused:
		k.told.ended(wall)
		log.Error("cannot lease a worker; trying again", "err", now.Err)
	case s.Phase == term.Forgotten:
		log.Error("ids ended, and do not resume by themselves", "err", now.Err, "hint", recovery(now.Err, k.options.Outage))
	}
	k.told.kind = kind
}

// tellResumed logs that ids resumed, and reports whether they had ended.
func (k *keeper) tellResumed(log *slog.Logger, wall time.Time) bool {
	if k.told.spent.IsZero() {
		return false
	}
	log.Info("ids resumed after " + rounded(wall.Sub(k.told.spent)).String())
	k.told.spent = time.Time{}
	return true
}

// workerLogged is the worker as a log has it: its number, or 3/7 where it has several fields.
func (s State) workerLogged() any {
	if text := s.Layout.WorkerText(s.Worker); strings.Contains(text, "/") {
		return text
	}
	return s.Worker
}

// kind names the state that a lease is in; empty: there is nothing to say of it.
func (k *keeper) kind(s *term.State, now State, wall time.Time) string {
	switch left := now.Left(wall); {
	case now.StoreAway && s.Closed: // a request was broken off, and the worker is given back
		return ""
	case now.StoreAway && s.Fails == 0:
		return k.unseen(now, wall)
	case now.StoreAway && left <= 0 && !k.options.foreign: // another program is stopped in time
		return "ended"
	case now.StoreAway && left <= lastMinute:
		return "ending"
	case now.StoreAway:
		return "away"
	case s.Phase == term.Holding && !k.told.spent.IsZero() && !(now.Issuing && now.StartsAt.IsZero()):
		return "" // the store answers, but the lease may be lost yet, or its first id has to wait
	case s.Phase == term.Holding:
		return "holding"
	case s.Over():
		return s.Phase.String()
	}
	return ""
}

// unseen is the kind where the store answers, but does not say what it promises. The first answer after an outage
// comes before the grant that ids need.
func (k *keeper) unseen(now State, wall time.Time) string {
	switch {
	case now.Left(wall) > 0 && now.StartsAt.IsZero():
		return "unseen"
	case k.told.spent.IsZero() && now.Left(wall) <= 0 && !k.options.foreign: // another program is stopped in time
		return "spent"
	}
	return "" // the log says already that there are no ids, or when they begin
}

// lossOf says why a worker was lost. After a failover that lost writes the store may have an earlier
// term of this very process.
func (k *keeper) lossOf(err error) []any {
	var lost *term.LostError
	if errors.As(err, &lost) && lost.Name == k.options.Name {
		return []any{"err", err, "note", "that is the name of this process: the store has another term of it, as after a failover that lost its last writes, or a second process has the same name"}
	}
	return []any{"err", err}
}

// tellFile logs once that the mark cannot be raised.
func (k *keeper) tellFile(p *holder.Process) {
	if p.FileErr != nil && !k.told.marked {
		k.log.Error("cannot write the grant file; ids end within a second", "err", p.FileErr)
	}
	k.told.marked = p.FileErr != nil
}

// tellWait tells of a long wait for the first id of a term, when it begins: until it is nearly over
// nothing is granted. Calls wait as long, where a lost worker was replaced.
func (k *keeper) tellWait(now State, wall time.Time) {
	told := k.told.waits
	if k.told.waits = now.held(); told || !now.held() {
		return
	}
	delay := now.StartsAt.Sub(wall)
	switch {
	case delay <= time.Second:
	case k.opened == nil:
		k.log.Warn("waiting before ids resume", "worker", now.workerLogged(), "for", delay.Round(time.Second), "why", now.waits)
	default:
		k.log.Warn("waiting before the first id", "for", delay.Round(time.Second), "why", now.waits)
		if k.options.Waiting != nil {
			k.options.Waiting(now.StartsAt, now.waits)
		}
	}
}

// recovery says how the store is made safe.
func recovery(err error, outage time.Duration) string {
	return term.Recovery(err, outage)
}
