package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/server"
)

// supplies are what the series of a server draw from, by key.
type supplies map[string]*supply

// enough returns the supplies of a plan: those there are, and new ones that are not
// open yet. With anew, one that has ended for good is replaced: somebody says that its store
// is mended.
func (all supplies) enough(p *plan, log *slog.Logger, anew func(url string) bool) (now supplies, fresh []*supply) {
	now = supplies{}
	for _, d := range p.drawings() {
		key := d.Key()
		if now[key] != nil {
			continue
		}
		if s := all[key]; s != nil && (s.final() == nil || !every(d.URLs, anew)) {
			now[key] = s
			continue
		}
		s := newSupply(d, log)
		now[key] = s
		fresh = append(fresh, s)
	}
	return now, fresh
}

// without are those that are not in others.
func (all supplies) without(others supplies) []*supply {
	var gone []*supply
	for key, s := range all {
		if others[key] != s {
			gone = append(gone, s)
		}
	}
	return gone
}

// drawings are all that the plan draws from.
func (p *plan) drawings() []*outlet {
	if p.others != nil {
		return append([]*outlet{p.others}, p.series...)
	}
	return p.series
}

// beginAll begins supplies at the same time. The error is that of those that cannot
// be opened: of [*SeriesError] joined.
func beginAll(ctx context.Context, all []*supply, begin func(*supply) error) error {
	errs := make([]error, len(all))
	var done sync.WaitGroup
	for i, s := range all {
		done.Go(func() {
			if err := begin(s); err != nil {
				errs[i] = &SeriesError{s.drawing.Series, err}
			}
		})
	}
	done.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// closeAll closes supplies at the same time, and tells of what was lost.
func closeAll(all []*supply, log *slog.Logger) {
	var done sync.WaitGroup
	for _, s := range all {
		done.Go(func() {
			if err := s.close(); err != nil {
				log.Warn(s.drawing.Lost(), "err", err)
			}
		})
	}
	done.Wait()
}

// serverOptions are what a server is made with. Warn is told who else can read keys.
func (p *plan) serverOptions(all supplies, log *slog.Logger, warn func(string)) (*server.Options, []*server.Series, error) {
	o := &server.Options{
		MaxBatch: p.options.Batch, MaxRange: p.options.Ranges, MaxNames: p.options.Names,
		Tokens: p.options.Tokens, Logger: log,
	}
	var series []*server.Series
	for _, d := range p.series {
		if err := p.withheld(d); err != nil {
			series = append(series, d.serveWithheld(d.Name, all[d.Key()], err, nil))
			continue
		}
		one, err := d.serve(d.Name, all[d.Key()], warn)
		if err != nil {
			return nil, nil, err
		}
		series = append(series, one)
	}
	if d := p.others; d != nil {
		s := all[d.Key()]
		o.Layout = s.layout()
		if p.unlisted != nil {
			s = newSupply(d, s.log) // that nobody opens
			s.trouble.Store(&p.unlisted)
			o.Others = func(name string) (*server.Series, error) { return d.serveUnknown(name, s), nil }
			return o, series, nil
		}
		o.Others = func(name string) (*server.Series, error) {
			err := p.names.flake(name)
			if errors.As(err, new(*countername.LostNameError)) {
				return d.serveWithheld(name, s, err, s.source), nil // its pool is in order
			}
			if err != nil {
				return nil, err
			}
			return d.serve(name, s, warn)
		}
	}
	return o, series, nil
}

// starting are the options and series of a server that starts: none of them gives anything.
func (p *plan) starting(log *slog.Logger) (*server.Options, []*server.Series, error) {
	unopened := *p
	unopened.unlisted = errOpening // it is not known yet which other names are counters
	all, _ := supplies{}.enough(&unopened, log, nil)
	return unopened.serverOptions(all, log, nil)
}

// serve returns the series of a name that draws from a supply.
func (d *outlet) serve(name string, s *supply, warn func(string)) (*server.Series, error) {
	o := &server.SeriesOptions{Source: s.source, Explain: d.judge}
	var err error
	d.forms.warn(warn)
	if d.Form != nil {
		o.Form, o.FormName = d.forms.open, d.Form.Kind.Name
	} else if d.Reads != nil {
		o.Reads, o.ReadsName = d.forms.open, d.Reads.Kind.Name
	}
	switch d.Kind {
	case config.Document:
		if o.Pattern, err = document.ParsePattern(d.Options.Document.Pattern); err != nil {
			return nil, err
		}
		if template.Is(name) {
			o.Names = func(ctx context.Context, name string) (server.TextSource, error) { return s.named(ctx, name) }
		}
		return server.Texts(name, textSupply{s}, o), nil
	case config.Flake:
		o.Layout = s.layout()
	default:
		o.Reserve = s.reserve
		o.Step = max(d.Options.Sequence.Increment, 1) * int64(len(d.URLs))
	}
	return server.Numbers(name, s, o), nil
}

// serveUnknown returns the series of a name that may be that of a counter, while the store has
// not said so: it takes requests of every kind, and all of them fail as those of a supply that
// is not open.
func (d *outlet) serveUnknown(name string, s *supply) *server.Series {
	return server.Numbers(name, s, &server.SeriesOptions{Layout: s.layout(), Reserve: s.reserve, Source: s.source, Explain: d.judge})
}

// clashes reports whether two leases cannot be held at once: they insist on one
// worker, or go on with one grant file.
func (s *supply) clashes(old *supply) bool {
	if s.drawing.Kind != config.Flake || old.drawing.Kind != config.Flake {
		return false
	}
	a, b := s.drawing.Leasing, old.drawing.Leasing
	if a.Options.GrantFile != "" && a.Options.GrantFile == b.Options.GrantFile {
		return true
	}
	l := old.layout() // of the pool; an old lease that does not know it holds no worker yet
	asked, _ := a.Options.Choice.In(l)
	had, _ := b.Options.Choice.In(l)
	_, only := asked.Only()
	return only && asked == had && s.drawing.URLs[0] == old.drawing.URLs[0] && a.Pool == b.Pool
}

// example is the name of a series to show people.
func (p *plan) example() string {
	for _, d := range p.series {
		return d.Name
	}
	return "photo"
}
