package doctor

import (
	"context"
	"errors"
	"strings"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// This file finds counters that stand still: whoever opens one is refused, because the store
// may lack its last numbers.

// still reports the counter of a record if the counter stands still.
func (e *exam) still(rec store.Record, p store.Durability) {
	name, err := e.refusal(rec, p)
	if err == nil {
		return
	}
	f := failure("series "+name, err)
	f.Do = strings.Join(wayOut(err, e.url), "; ")
	e.report(f)
}

// wayOut is what to do about a counter that stands still.
func wayOut(err error, url string) []string {
	switch {
	case errors.As(err, new(*store.ForgotError)):
		return remedy.Counter(err, url)
	case errors.As(err, new(*document.InstanceError)):
		return remedy.MayHaveLost(err, url)
	}
	return remedy.BecameLossy(err, url)
}

// refusal returns the error that a process gets which opens the counter of a record; nil if the
// record is of no counter, or the counter can be opened.
func (e *exam) refusal(rec store.Record, p store.Durability) (name string, err error) {
	if name, ok := strings.CutPrefix(rec.Key, block.Keys); ok {
		have, err := block.Read(rec)
		if err != nil {
			return name, nil // records says so
		}
		return name, strange(have, name, p, e.accepts[name])
	}
	ours, def, err := dated.Check(rec)
	if !ours || def == nil || err != nil {
		return "", nil
	}
	name = strings.TrimPrefix(rec.Key, dated.Keys)
	return name, e.untrusted(name, def, p)
}

// untrusted returns the error of a document on a store that can lose writes; nil if processes that
// accept this can open it. Where firn.yaml has the document, missing reports that it does not accept.
func (e *exam) untrusted(name string, def *dated.Definition, p store.Durability) error {
	accepts, served := e.accepts[name]
	switch {
	case !p.Durable && served && !accepts:
		return nil
	case !p.Durable && !accepts && !def.Lossy:
		return &document.LossyError{Series: name, Why: p.Why}
	case def.Strange(p):
		return &document.InstanceError{Series: name, Have: p.Instance, Want: def.Instance}
	}
	return nil
}

// strange returns an error where a sequence stands still, or part of a ticket. Accept says that
// its numbers may repeat.
func strange(have block.Record, name string, p store.Durability, accept bool) error {
	err := have.Strange(name, p, accept)
	var no *block.Refusal
	if errors.As(err, &no) {
		return &sequence.LossyError{Name: name, Why: no.Seen, Since: no.Since}
	}
	return err
}

// standing returns an error where the part of a ticket stands still that a store has.
func standing(ctx context.Context, st store.Store, s *config.Series) error {
	p, err := st.Durability(ctx)
	if err != nil {
		return err
	}
	rec, err := st.Get(ctx, block.Key(s.Name))
	if err != nil {
		return err
	}
	have, err := block.Read(rec)
	if err != nil {
		return err
	}
	return strange(have, s.Name, p, s.Options.Sequence.MayRepeat)
}
