package holder

import (
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A Slot is what one write leaves in a grant file: a grant and a mark in it. Nothing above
// the mark is issued before the mark is written.
type Slot struct {
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
func (p *Process) Adopt(s Slot, boot time.Duration) error {
	switch wait := p.Rules.Delay(s.Mark, p.Clock.At(boot)); {
	case s.Grant.Lossy, !p.View.Durability.Durable:
		return errors.New("the store can forget")
	case s.Grant.Since > boot:
		return errors.New("the boot clock has gone back")
	case p.Rules.Choice == term.Insist && s.Grant.Worker != p.Rules.Worker:
		return fmt.Errorf("it has worker %d", s.Grant.Worker)
	case wait > p.Rules.Wait:
		return fmt.Errorf("its mark lies %s ahead", wait)
	}
	p.resume, p.base, p.PoolID, p.hearsay = &s.Grant, s.Mark, s.Grant.PoolID, true
	return nil
}

// slot returns what is to be written before more is issued, and whether that is due. The
// mark is kept markAhead ahead of the clock.
func (p *Process) slot(now time.Time, grant firn.Grant) (s Slot, due bool) {
	saved, _ := p.Term.Saved()
	first := p.markOf != saved.Record.Owner // the first mark of a term
	if first {
		p.mark = grant.Base
	}
	layout := p.Rules.Layout
	if late := min(layout.Tick(now.Add(markAhead/2)), grant.Horizon); !first && p.mark >= late {
		return s, false
	}
	want := min(layout.Tick(now.Add(markAhead)), grant.Horizon)
	return Slot{Mark: max(want, p.mark), Grant: saved, Durability: p.View.Durability}, true
}

// marked takes note of what came of writing a slot.
func (p *Process) marked(s Slot, err error) {
	if p.FileErr = err; err == nil {
		p.mark, p.markOf = s.Mark, s.Grant.Record.Owner
	}
}
