package daemon

import (
	"context"
	"errors"
	"slices"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/server"
)

// hearFlakes asks the store whether it has a counter of the name of a flake of the plan, for each
// flake that it has not answered about, and returns those of which it has one. Flakes of one pool
// share a supply, so that opening it does not tell. A store that does not answer says nothing.
func (p *plan) hearFlakes(ctx context.Context, stores *sharedStores) (clash []*outlet) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	for _, d := range p.series {
		if !p.unheard(d) {
			continue
		}
		u, err := stores.enter(ctx, d.URLs[0])
		if err != nil {
			break
		}
		err = errors.Join(countername.SameKind(ctx, u.store, d.Series), stores.leave(u))
		var other *countername.KindError
		if errors.As(err, &other) {
			p.heard[d] = other
			clash = append(clash, d)
			continue
		}
		if err != nil {
			break
		}
		p.heard[d] = nil
	}
	return clash
}

// flakesAgree returns an error if the store says that a flake of the plan has the name of a counter.
func (p *plan) flakesAgree(ctx context.Context, stores *sharedStores) error {
	if clash := p.hearFlakes(ctx, stores); len(clash) > 0 {
		return p.heard[clash[0]]
	}
	return nil
}

// unheard reports whether the store has not said yet if it has a counter of a flake's name.
func (p *plan) unheard(d *outlet) bool {
	_, heard := p.heard[d]
	return d.Kind == config.Flake && !heard
}

// allHeard reports whether the store has been heard about each flake.
func (p *plan) allHeard() bool { return !slices.ContainsFunc(p.series, p.unheard) }

// inherit takes what the store has said of flakes of an earlier plan, where it says nothing now.
func (p *plan) inherit(before *plan) {
	for _, d := range p.series {
		for _, old := range before.series {
			if p.unheard(d) && !before.unheard(old) && old.Kind == config.Flake && old.Name == d.Name && slices.Equal(old.URLs, d.URLs) {
				p.heard[d] = before.heard[old]
			}
		}
	}
}

// errUnheard says that an id may be wrong in the place of a number.
var errUnheard = errors.New("its store has not said yet whether it has a counter of that name")

// withheld is why a flake gives nothing although its pool may be open. One that may go on from a
// grant file while the store is away does so until the store has been heard.
func (p *plan) withheld(d *outlet) error {
	if p.unheard(d) && d.Leasing.Options.GrantFile == "" {
		return errUnheard
	}
	return p.heard[d]
}

// A withheldSupply gives nothing.
type withheldSupply struct {
	*supply
	err error
}

// why is what is said of it: where its pool is not open and may be later, that.
func (s withheldSupply) why() error {
	if _, err := s.flow(); err != nil && passes(s.err) {
		return err
	}
	return s.err
}

func (s withheldSupply) Next(context.Context) (firn.ID, error) { return 0, s.why() }

func (s withheldSupply) Append(_ context.Context, dst []firn.ID, _ int) ([]firn.ID, error) {
	return dst, s.why()
}

func (s withheldSupply) reserve(context.Context, int) (firn.Range, error) {
	return firn.Range{}, s.why()
}

func (s withheldSupply) state() server.State {
	d, err := s.drawing, s.why()
	return server.State{Kind: d.Kind, Store: d.storeText(), Err: err, TroubleSince: beganOf(err)}
}

// serveWithheld returns the series of a name that gives nothing: it takes requests of every kind,
// and all of them fail. A source of nil is one that gives nothing.
func (d *outlet) serveWithheld(name string, s *supply, err error, source *server.Source) *server.Series {
	none := withheldSupply{s, err}
	if source == nil {
		source = &server.Source{State: none.state}
	}
	return server.Numbers(name, none, &server.SeriesOptions{Layout: s.layout(), Reserve: none.reserve, Source: source, Explain: d.judge})
}
