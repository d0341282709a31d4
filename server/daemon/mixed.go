package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/beside"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// unmixed returns an error if the next plan takes a series to a pool whose ids may equal those of
// the pool that it has. --may-repeat claimed that ids of the two pools never meet. In this series they
// would meet: other servers still give ids of the old pool in it.
func (p *plan) unmixed(ctx context.Context, stores *sharedStores, next *plan) error {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	for _, d := range next.drawings() {
		for _, had := range p.ever() {
			if d.Kind != config.Flake || had.Kind != config.Flake || d.Name != had.Name ||
				d.Leasing.Pool == had.Leasing.Pool || !slices.Equal(d.URLs, had.URLs) {
				continue
			}
			u, err := stores.enter(ctx, d.URLs[0])
			if err != nil {
				return &SeriesError{d.Series, err}
			}
			err = errors.Join(mixes(ctx, u.store, d, had), stores.leave(u))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// mixes returns an error if the pool of a drawing may repeat ids of the pool that the drawing had. A
// pool that is missing repeats nothing yet.
func mixes(ctx context.Context, s store.Store, d, had *outlet) error {
	now, err := pool.Show(ctx, s, d.Leasing.Pool)
	if errors.As(err, new(*pool.MissingError)) {
		return nil
	} else if err != nil {
		return &SeriesError{d.Series, err}
	}
	before, err := pool.Show(ctx, s, had.Leasing.Pool)
	if errors.As(err, new(*pool.MissingError)) {
		return nil
	} else if err != nil {
		return &SeriesError{d.Series, err}
	}
	if !beside.Accepted(now, before) {
		return nil
	}
	advice := []string{fmt.Sprintf("a pool that was created without --may-repeat %s", phrase.ShellWord(before.Name))}
	if now.Layout == before.Layout && before.Workers() > 1 {
		lower, upper := beside.Halves(before)
		advice = append(advice, fmt.Sprintf("or give each pool its own workers, such as: firn pool set %s --workers %s; firn pool set %s --workers %s. Then send SIGHUP again",
			phrase.ShellWord(before.Name), lower, phrase.ShellWord(now.Name), upper))
	}
	what := "all series"
	if d.Name != "" {
		what = "series " + d.Name
	}
	return wrongSettings(fmt.Sprintf("pool %s may repeat ids of pool %s, from which %s has had its ids", now.Name, before.Name, what), advice...)
}
