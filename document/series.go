// Package document issues texts that people read: a prefix, a date, a counter, such
// as INV-20261120-000042. They never repeat, and the counters have no gaps but
// where a process was killed or the outcome of a write stayed unknown.
//
// The step that creates the database creates the series, once, by [Create]; a program only
// opens it. A store in a file creates it by itself:
//
//	st, err := sqlite.Open(ctx, "/var/lib/shop/ids.db")
//	...
//	invoices, err := document.Open(ctx, st, "invoice",
//		&document.Options{Pattern: "INV-{yyyyMMdd}-{6}", Zone: "Asia/Ho_Chi_Minh"})
//	...
//	defer invoices.Close()
//	n, err := invoices.Next(ctx) // n.Text
//
// Each date has a counter of its own in the store, which is never removed. The store's
// clock only chooses the counter: if that clock is set back over midnight, yesterday's
// counter continues where it ended.
package document

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/store"
)

// A Series gives out the texts of one name. All its methods may be called from
// many goroutines at once: those that wait for the store share one write. Package
// internal/dated decides, and says why nothing repeats.
type Series struct {
	store store.Store
	rules rules
	base  time.Time

	mu     sync.Mutex // guards series
	series *dated.Series

	life   context.Context // of requests
	cancel context.CancelFunc
	done   sync.WaitGroup // of the goroutine that draws
}

// Next returns the next text. It waits for the store: for one write, which it
// may share with other calls. The date is that of the store's clock during the
// call; with Cache, or after calls that gave up waiting, as it was read up to a
// second before.
//
// Errors: [*EndError] where the period has no number left, [*InstanceError]
// and [*LossyError] where the store could have forgotten, [*store.ForgotError]
// where it has and [*store.OtherStoreError] where another one answers (both final), [firn.ErrClosed] after Close, ctx's, and the store's own.
// After an error a number may be lost; it is never given out twice.
func (s *Series) Next(ctx context.Context) (Number, error) {
	var one [1]Number
	got, err := s.Append(ctx, one[:0], 1)
	if err != nil {
		return Number{}, err
	}
	return got[0], nil
}

// Append appends n texts to dst, or none. Errors are those of Next; a call that returns
// one leaves what it got to the next calls, but for a write whose outcome stays unknown.
func (s *Series) Append(ctx context.Context, dst []Number, n int) ([]Number, error) {
	if n <= 0 {
		return dst, nil
	}
	if name := s.rules.Name; template.Is(name) {
		return dst, &OptionError{"series", fmt.Sprintf("series %s: it is a template, and gives no texts: open one of its names, with Options.Template", name), nil}
	}
	s.mu.Lock()
	got, err := s.series.Take(&outside{Series: s, ctx: ctx}, int64(n))
	s.mu.Unlock()
	if err != nil {
		return dst, s.rules.explain(err)
	}
	for _, g := range got {
		for c := g.Next; c <= g.Last; c++ {
			dst = append(dst, s.rules.pattern.number(g.Period, c))
		}
	}
	return dst, nil
}

// State is where a series stands.
type State struct {
	Pattern  string
	Zone     string
	Durable  bool   // of the store: on a lossy one numbers are unique at best effort
	Why      string // what was seen of the store
	Last     Number // last one that this process was given; zero before
	Reserved int64  // counts in hand, which nobody else can have
	Err      error  // of the last draw
}

// State returns where the series stands now.
func (s *Series) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, last := s.series.Durability(), s.series.Last()
	st := State{
		Pattern: s.rules.pattern.text, Zone: s.rules.zoneName(), Durable: p.Durable, Why: p.Why,
		Reserved: s.series.Reserved(), Err: s.rules.explain(s.series.Err()),
	}
	if last.Left() > 0 {
		st.Last = s.rules.pattern.number(last.Period, last.Last)
	}
	return st
}

// Close stops giving out texts for good and hands back the counts that are in
// hand, if nobody drew since. It waits for the store, at most 5 s. An error says
// that counts are lost. Close may be called more than once.
func (s *Series) Close() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), dated.Farewell)
	defer cancel()
	stop := context.AfterFunc(ctx, s.cancel) // a write under way may be answered yet
	defer func() { stop(); s.cancel() }()
	s.mu.Lock()
	defer s.mu.Unlock()
	lost, err := s.series.Close(&outside{Series: s, ctx: ctx})
	if err != nil {
		return fmt.Errorf("document: %d reserved numbers of series %q were not handed back: %w", lost, s.rules.Name, err)
	}
	return nil
}
