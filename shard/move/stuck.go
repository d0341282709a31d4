package move

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// A StuckError says why a shard can neither move on nor go back.
type StuckError struct {
	Shard int64
	Why   string
	Do    string // what to type; empty: nobody can say
}

func (e *StuckError) Error() string { return fmt.Sprintf("shard %d: %s", e.Shard, e.Why) }

// What to type about a shard that is stuck.
const seeDoctor = "to see what to do: firn shard doctor"

func giveUp(some []pairOf) string {
	return fmt.Sprintf("to abort the move, before it is moved again: firn shard abort %s", phrase.Numbers(numbers(some)))
}

func finishFirst(some []pairOf) string {
	return fmt.Sprintf("to drop the old copy, before it is moved there anew: firn shard finish %s", phrase.Numbers(numbers(some)))
}

// opens says which command opens a shard that no server serves: where it was let go to, or where
// most is known of it.
func (m *Mover) opens(p pairOf) string {
	if o, lost := m.lost(p); lost {
		return o.Text()
	}
	if do := m.copyDo(p); do != "" {
		return do
	}
	return "to open it: " + opening(p.letGoTo() == m.source.Name, []int64{p.shard}, m.target.Name)
}

// lost says which server opens a shard that no server serves and no move opens.
func (m *Mover) lost(p pairOf) (check.Opening, bool) {
	return check.OpeningOf(m.views(p), p.shard)
}

// copyDo says what to do where one of the servers is a copy, or "".
func (m *Mover) copyDo(p pairOf) string { return copyDo(m.views(p), p.shard) }

// views is what the servers say of one shard.
func (m *Mover) views(p pairOf) map[string]*topology.View {
	return map[string]*topology.View{m.source.Name: p.source.view(p.shard), m.target.Name: p.target.view(p.shard)}
}

// withOpening is the error of a shard that is stuck, with the command that opens it if no move can.
func (m *Mover) withOpening(f *facts, err error) error {
	var stuck *StuckError
	if !errors.As(err, &stuck) {
		return err
	}
	for _, p := range f.shards {
		if o, lost := m.lost(p); lost && p.shard == stuck.Shard {
			return &StuckError{stuck.Shard, stuck.Why, o.Text()}
		}
		if do := m.copyDo(p); do != "" && p.shard == stuck.Shard {
			return &StuckError{stuck.Shard, stuck.Why, do}
		}
		if stuck.Do == "" && p.shard == stuck.Shard {
			return &StuckError{stuck.Shard, stuck.Why, check.ReopenCopy(m.elsewhere(p))}
		}
	}
	return err
}

// elsewhere is the server that is to receive a shard and is not the server that the move began with.
func (m *Mover) elsewhere(p pairOf) string {
	if p.source.serves() {
		return m.target.Name
	}
	return m.source.Name
}

// lostDo says what opens a shard that no server serves and no move opens, or "".
func lostDo(views map[string]*topology.View, n int64) string {
	if o, lost := check.OpeningOf(views, n); lost {
		return o.Text()
	}
	return ""
}

// copyDo says what to do about a shard that no server serves because a server is a copy, or "".
func copyDo(views map[string]*topology.View, n int64) string {
	if server := check.CopyOf(views, n); server != "" {
		return check.ReopenCopy(server)
	}
	return ""
}
