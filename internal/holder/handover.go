package holder

import (
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A Handover is what a process leaves in a grant file for the one that starts in its place: a grant, and a
// mark in it. Nothing above the mark is issued before the mark is written.
type Handover struct {
	Void       bool             `json:"void"` // there is nothing to go on with
	Mark       firn.Tick        `json:"mark"`
	Grant      term.Saved       `json:"grant"`
	Durability store.Durability `json:"durability"` // of the store, should it be away
}

// markAhead is how far ahead of the clock a mark reaches. A process that starts
// again waits for that long at most; and ids stop when the holder is held up for
// longer than a mark lasts.
const markAhead = time.Second

// Adopt makes the first term go on with the grant that a process before this one left, if
// it is of use; the error says why not.
func (p *Process) Adopt(left Handover, boot time.Duration) error {
	switch wait := p.Rules.Delay(left.Mark, p.Clock.At(boot)); {
	case left.Grant.Lossy, !p.View.Durability.Durable:
		return errors.New("the store is lossy")
	case left.Grant.Since > boot:
		return errors.New("the boot clock has gone back")
	case p.Rules.Choice == term.Insist && left.Grant.Worker != p.Rules.Worker:
		return fmt.Errorf("it has worker %d", left.Grant.Worker)
	case wait > p.Rules.Wait:
		return fmt.Errorf("its mark lies %s ahead", wait)
	}
	p.resume, p.base, p.PoolID, p.hearsay = &left.Grant, left.Mark, left.Grant.PoolID, true
	return nil
}

// handover returns what is to be written before more is issued, and whether that is due. The
// mark is kept markAhead ahead of the clock.
func (p *Process) handover(now time.Time, grant firn.Grant) (next Handover, due bool) {
	saved, _ := p.Term.Saved()
	first := p.markOf != saved.Record.Owner // the first mark of a term
	if first {
		p.mark = grant.Base
	}
	layout := p.Rules.Layout
	if late := min(layout.Tick(now.Add(markAhead/2)), grant.Horizon); !first && p.mark >= late {
		return next, false
	}
	want := min(layout.Tick(now.Add(markAhead)), grant.Horizon)
	return Handover{Mark: max(want, p.mark), Grant: saved, Durability: p.View.Durability}, true
}

// marked takes note of what came of writing a handover.
func (p *Process) marked(left Handover, err error) {
	if p.FileErr = err; err == nil {
		p.mark, p.markOf = left.Mark, left.Grant.Record.Owner
	}
}
