package move

import (
	"fmt"
	"slices"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/topology"
)

// A goal is what somebody wants.
type goal struct {
	attempt string
	back    bool // to the source
}

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
	for _, do := range []action{toTake, toRecordOwner, toBegin, toClaim, toLoad} {
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
			fmt.Sprintf("to abort it: firn shard abort %s; to drop the old copies of those that have moved: firn shard finish %s", phrase.Numbers(numbers(todo)), phrase.Numbers(numbers(by[toEnd]))),
		}
	}
	if do := f.streams(); do != toCut {
		if g.back && do != toWait {
			return step{}, &StuckError{todo[0].shard, "what is written to it does not go back to the source any more", finishFirst(todo)}
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
	case to.serves() && from.state == topology.StateOpen && from.batch != "":
		return toRecordOwner, nil
	case to.serves():
		return toEnd, nil
	case from.serves() && from.attempt != g.attempt && from.batch == "" && g.back:
		return "", &StuckError{p.shard, "another command has begun to finish its move, so its old copy is not kept up to date any more", finishFirst([]pairOf{p})}
	case from.serves() && from.attempt != g.attempt && from.batch == "" && to.batch != "":
		return "", &StuckError{p.shard, "an earlier move was aborted in part", giveUp([]pairOf{p})}
	case from.serves() && from.attempt != g.attempt:
		return toBegin, nil
	case from.serves() && !same:
		return toClaim, nil
	case from.serves() && !to.here: // a copy there takes no more rows
		return "", &StuckError{p.shard, "the server that it is to come to is a copy, or was promoted or restored, since the move began", ""} // withOpening knows its name
	case from.serves() && !to.loaded && g.back:
		return "", &StuckError{p.shard, "its copy is not kept up to date any more", finishFirst([]pairOf{p})}
	case from.serves() && !to.loaded:
		return toLoad, nil
	case from.serves():
		return toCut, nil
	case from.state == topology.StateMoved && same && to.state == topology.StateMoved:
		return toTake, nil
	case from.there && !from.here && from.state == topology.StateOpen && to.state == topology.StateMoved && to.loaded:
		return toTake, nil // it may have let the shard go before it was promoted
	}
	return "", &StuckError{p.shard, fmt.Sprintf("no server serves it (%s at term %d, %s at term %d)", from.state, from.term, to.state, to.term), seeDoctor}
}
