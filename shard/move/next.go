package move

import (
	"fmt"
	"slices"

	"github.com/firn-id/firn/shard"
)

// A goal is what somebody wants.
type goal struct {
	attempt string
	back    bool // to the source
}

// An action is one kind of thing that a mover does.
type action string

const (
	toEnd   action = "end"   // nothing
	toBegin action = "begin" // with these shards
	toClaim action = "claim" // them on the other server
	toLoad  action = "load"  // their schemas
	toCut   action = "cut"   // this shard over, after its copy was compared
	toTake  action = "take"  // what was let go
	toNote  action = "note"  // on a server that has forgotten it that it has let shards go

	toSpeak      action = "speak"      // make the publication of the source
	toKeep       action = "keep"       // make its slot
	toListen     action = "listen"     // subscribe the target
	toHear       action = "hear"       // enable that
	toWait       action = "wait"       // for the copy
	toSpeakBack  action = "speakBack"  // the same the other way,
	toListenBack action = "listenBack" //
	toMute       action = "mute"       // with nothing in it yet
	toKeepBack   action = "keepBack"   //
	toHearBack   action = "hearBack"   //
)

// A step is what a mover does next.
type step struct {
	do     action
	shards []pairOf
}

// sides are what the server that a shard is to leave says of it, and that it is to come to.
func (p pairOf) sides(g goal) (from, to copyOf) {
	if g.back {
		return p.target, p.source
	}
	return p.source, p.target
}

// A StuckError says why a shard can go neither way by itself.
type StuckError struct {
	Shard int64
	Why   string
	Do    string // what to type; empty: nobody can say
}

func (e *StuckError) Error() string { return fmt.Sprintf("shard %d: %s", e.Shard, e.Why) }

// What to type about a shard that is stuck.
const seeDoctor = "to see what to do: firn shard doctor"

func giveUp(some []pairOf) string {
	return fmt.Sprintf("to give the move up, before it is moved again: firn shard abort %s", List(numbers(some)))
}

func noWayBack(some []pairOf) string {
	return fmt.Sprintf("to drop the old copy, before it is moved there anew: firn shard finish %s", List(numbers(some)))
}

// next says what comes next. It is a function of the facts alone: whoever reads the same
// ones does the same.
func next(g goal, f *facts) (step, error) {
	var todo []pairOf // not where they are to be
	by := make(map[action][]pairOf)
	for _, p := range f.shards {
		do, err := nextOf(g, p)
		if err != nil {
			return step{}, err
		}
		by[do] = append(by[do], p)
		if do != toEnd {
			todo = append(todo, p)
		}
	}
	// What was let go is nowhere: it comes first.
	for _, do := range []action{toTake, toNote, toBegin, toClaim, toLoad} {
		if len(by[do]) > 0 {
			return step{do, by[do]}, nil
		}
	}
	if len(todo) == 0 {
		return step{do: toEnd}, nil
	}
	moved := slices.ContainsFunc(by[toEnd], func(p pairOf) bool { return p.target.batch != "" })
	if !f.target.slot && moved && !g.back {
		return step{}, &StuckError{
			todo[0].shard, "the stream back of its move was lost",
			fmt.Sprintf("to give it up: firn shard abort %s; to drop the old copies of those that have moved: firn shard finish %s", List(numbers(todo)), List(numbers(by[toEnd]))),
		}
	}
	if do := f.streams(); do != toCut {
		if g.back && do != toWait {
			return step{}, &StuckError{todo[0].shard, "what is written to it does not go back to the source any more", noWayBack(todo)}
		}
		if do == toEnd {
			return step{}, &StuckError{todo[0].shard, "a stream of its move was lost", giveUp(todo)}
		}
		return step{do, todo}, nil
	}
	return step{toCut, todo[:1]}, nil
}

// nextOf says what comes next for one shard, as far as that depends on nothing else: toCut
// where it is ready for that.
func nextOf(g goal, p pairOf) (action, error) {
	from, to := p.sides(g)
	same := to.term == from.term && to.attempt == from.attempt
	switch {
	case from.serves() && to.serves():
		return "", &StuckError{p.shard, "both servers serve it: one of them was put back to an earlier state", seeDoctor}
	case to.serves() && from.state == shard.StateOpen && from.batch != "":
		return toNote, nil
	case to.serves():
		return toEnd, nil
	case from.serves() && from.attempt != g.attempt && from.batch == "" && g.back:
		return "", &StuckError{p.shard, "another command has begun to finish its move, so its old copy is not kept up to date any more", noWayBack([]pairOf{p})}
	case from.serves() && from.attempt != g.attempt && from.batch == "" && to.batch != "":
		return "", &StuckError{p.shard, "an earlier move was given up half way", giveUp([]pairOf{p})}
	case from.serves() && from.attempt != g.attempt:
		return toBegin, nil
	case from.serves() && !same:
		return toClaim, nil
	case from.serves() && !to.loaded && g.back:
		return "", &StuckError{p.shard, "its copy is not kept up to date any more", noWayBack([]pairOf{p})}
	case from.serves() && !to.loaded:
		return toLoad, nil
	case from.serves():
		return toCut, nil
	case from.state == shard.StateMoved && same && to.state == shard.StateMoved:
		return toTake, nil
	case from.there && !from.here && from.state == shard.StateOpen && to.state == shard.StateMoved && to.loaded:
		return toTake, nil // it may have let the shard go before it was promoted
	}
	return "", &StuckError{p.shard, fmt.Sprintf("no server serves it (%s at term %d, %s at term %d)", from.state, from.term, to.state, to.term), seeDoctor}
}

// streams says what is missing of the streams, and else toCut: forth first, with the copy;
// then back, in an order in which nothing is sent back that was copied.
func (f *facts) streams() action {
	s, t := f.source, f.target
	switch {
	case s.lost || t.lost || !s.slot && t.subscription || !t.slot && s.enabled: // a slot that is made anew begins too late
		return toEnd
	case !s.publication:
		return toSpeak
	case !s.slot:
		return toKeep
	case !t.subscription:
		return toListen
	case !t.enabled:
		return toHear
	case t.copying > 0:
		return toWait
	case !t.publication:
		return toSpeakBack
	case !s.subscription:
		return toListenBack
	case !t.slot && t.published > 0:
		return toMute
	case !t.slot:
		return toKeepBack
	case !s.enabled:
		return toHearBack
	}
	return toCut
}
