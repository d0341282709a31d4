package lease

import (
	"time"

	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

// tell logs a change of state that an operator wants to know, once.
func (k *keeper) tell(was *State, now State, s term.State) {
	if was != nil && was.Class == store.Strict && now.Class != store.Strict {
		k.log.Warn("the store can forget what it acknowledged; ids are unique as long as clocks are right",
			"within", k.rules.Skew, "why", now.Why, "wait at each start", k.rules.Quarantine(s.Pool))
	}
	var kind string
	switch {
	case now.Degraded && s.Closed: // a request was broken off, and the worker is given back
		return
	case now.Degraded && s.Fails == 0:
		kind = "unseen"
	case now.Degraded:
		kind = "degraded"
	case s.Phase == term.Holding:
		kind = "holding"
	case s.Over():
		kind = s.Phase.String()
	default:
		return
	}
	if kind == k.told {
		return
	}
	log := k.log.With("worker", now.Worker, "term", now.Term)
	switch {
	case kind == "degraded":
		left := now.Left(k.now().Wall).Round(time.Second)
		log.Warn("the store does not answer; ids go on", "left", left, "until", now.Horizon, "err", now.Err)
	case kind == "unseen":
		log.Warn("the store does not say what it promises; ids go on", "err", now.Err)
	case kind == "holding" && (k.told == "degraded" || k.told == "unseen"):
		log.Info("the store answers again", "until", now.Horizon)
	case kind == "holding":
		log.Debug("took a worker", "class", now.Class, "until", now.Horizon)
	case s.Phase == term.Released:
		log.Debug("gave the worker back")
	case !k.begun() && (s.Phase == term.Refused || s.Phase == term.Forgotten): // Open returns it
	case s.Phase == term.Lost && k.options.foreign: // Watch says so
	case s.Phase == term.Lost:
		log.Warn("lost the worker; taking another", "err", now.Err)
	case s.Phase == term.Refused:
		log.Error("no worker can be had", "err", now.Err)
	case s.Phase == term.Forgotten:
		log.Error("issuing stopped for good", "err", now.Err, "hint", "firn store restored")
	}
	k.told = kind
}
