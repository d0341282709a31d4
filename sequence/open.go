package sequence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/supply"
	"github.com/firn-id/firn/store"
)

// Open opens a series and begins to reserve numbers of it. A series that is not
// there is created on an embedded store only, and if that was never restored;
// elsewhere it could be one that the store has forgotten, and [Create] says that
// there was none. The series outlives ctx; Close hands back what it can.
//
// Errors to tell apart, besides the store's: [*OptionError]s, [*MissingError],
// [*MismatchError], [*LossyError], [*store.FormatError], [*store.ForgotError], and
// [*store.OtherStoreError], the store is a copy.
func Open(ctx context.Context, st store.Store, name string, opts *Options) (*Series, error) {
	return open(ctx, []store.Store{st}, name, opts)
}

// OpenAcross opens a series over several stores, each of which has every kth
// number and serves alone while the others are away. Calls draw from all in
// turn, and from those that answer; the numbers of each store increase, those of
// all do only roughly. The series is created by [CreateAcross]; at least one
// store has to answer. The order of stores does not matter.
//
// Errors are those of [Open]; a store that has another series, another number of
// stores or another's place in it, is refused with [*store.ForgotError] or
// [*MismatchError].
func OpenAcross(ctx context.Context, stores []store.Store, name string, opts *Options) (*Series, error) {
	if len(stores) < 2 || len(stores) > block.MaxStores {
		return nil, &OptionError{"stores", fmt.Sprintf("stores: a series is spread over 2 to %d, not %d", block.MaxStores, len(stores))}
	}
	return open(ctx, stores, name, opts)
}

func open(ctx context.Context, stores []store.Store, name string, opts *Options) (*Series, error) {
	o := opts.withDefaults()
	if err := o.validate(name, len(stores)); err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Series{name: name, options: o, epoch: time.Now().Add(-time.Second), stop: stop}
	worlds := make([]supply.World, len(stores))
	for i, st := range stores {
		k := &keeper{
			series: s, store: st, updater: store.AsUpdater(st), log: o.Logger.With("series", name),
			life: life, nudge: make(chan struct{}, 1),
		}
		s.keepers, worlds[i] = append(s.keepers, k), k
	}
	s.supply.Begin(o.Wait, patience, worlds...)
	for i, k := range s.keepers {
		k.Lane = s.supply.Lane(i)
	}
	if err := s.join(ctx); err != nil {
		stop()
		return nil, err
	}
	for _, k := range s.keepers {
		s.done.Go(k.run)
	}
	return s, nil
}

// join reads the record of each store, and returns an error where one of them
// is not the series', or none answers.
func (s *Series) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Wait)
	defer cancel()
	answers := make(chan error, len(s.keepers))
	for _, k := range s.keepers {
		go func() { answers <- k.join(ctx, len(s.keepers) > 1, "") }()
	}
	var outage *OutageError
	var away, wrong []error
	for range s.keepers {
		switch err := <-answers; {
		case errors.As(err, &outage):
			away = append(away, err)
		case err != nil:
			wrong = append(wrong, err)
		}
	}
	if len(wrong) > 0 {
		return wrong[0]
	}
	if len(away) == len(s.keepers) {
		return away[0]
	}
	for _, k := range s.keepers {
		if err := s.fits(k); err != nil {
			return err
		}
	}
	return nil
}

// join asks for the store's durability and reads the series' record. With once it
// gives up at the first request that fails; else when ctx is done. The id is the
// series', if it is known.
func (k *keeper) join(ctx context.Context, once bool, id string) error {
	began := time.Now()
	s := k.series
	a, err := k.insist(ctx, once, record.Request{Op: record.Ask})
	if err != nil {
		return err
	}
	p := a.Durability
	rules := block.Rules{Name: s.name, Key: block.Key(s.name), Accept: s.options.MayRepeat, By: s.options.Name}
	if p.NoticesLoss && len(s.keepers) == 1 {
		a, err := k.insist(ctx, once, record.Request{Op: record.Get, Key: record.KeyLost})
		if err != nil {
			return err
		}
		if a.Record.Version == "" {
			r := s.options.record()
			r.ID = record.NewID()
			rules.Found = &r
		}
	}
	limits := block.Limits{MaxUnused: int64(s.options.MaxUnused), CacheFor: s.options.CacheFor}
	d, do := block.Start(rules, limits, id, record.Seed(), p, s.clocks()).Step(s.clocks(), block.Take{})
	for do.Op != record.None {
		if d.State.Fails > 0 && once || ctx.Err() != nil {
			return &OutageError{Name: s.name, Wait: time.Since(began), Err: d.State.Err}
		}
		d, do = d.Step(s.clocks(), k.request(ctx, do))
	}
	err = explain(s.name, do.Err)
	var none *MissingError
	if errors.As(err, &none) && !p.Durable && !s.options.MayRepeat {
		return &LossyError{Name: s.name, Why: p.Why} // to create it would be refused for that
	}
	if err != nil {
		return withNames(ctx, k.store, err)
	}
	if err := k.agrees(d.State); err != nil {
		return err
	}
	k.Open(d, k.updater != nil)
	return nil
}

// request is one of Open's, which is given up when ctx is done.
func (k *keeper) request(ctx context.Context, do block.Action) block.Answer {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return request(ctx, k.store, do)
}

// insist asks the store until it answers. With once it asks once; else until ctx
// is done.
func (k *keeper) insist(ctx context.Context, once bool, q record.Request) (block.Answer, error) {
	began := time.Now()
	for {
		a := k.request(ctx, block.Action{Request: q})
		var forgot *store.ForgotError
		switch {
		case a.Err == nil || errors.As(a.Err, &forgot):
			return a, a.Err
		case once || ctx.Err() != nil:
			return a, &OutageError{Name: k.series.name, Wait: time.Since(began), Err: a.Err}
		}
		sleep(ctx, breath)
	}
}

// agrees returns an error where the record is not as the options say.
func (k *keeper) agrees(m block.State) error {
	name, have, p := k.series.name, m.Have, m.Durability
	if err := k.series.options.agrees(name, have); err != nil {
		return err
	}
	if have.Pending {
		return fmt.Errorf("sequence: series %q was not created on all of its stores; create it again to complete it", name)
	}
	if n := int64(len(k.series.keepers)); max(have.Stores, 1) != n {
		return &MismatchError{name, "stores", fmt.Sprint(max(have.Stores, 1)), fmt.Sprint(n)}
	}
	if !p.Durable {
		if !k.series.options.MayRepeat {
			return &LossyError{Name: name, Why: p.Why}
		}
		k.log.Warn("best effort: the store is lossy: it can lose a write that it acknowledged, and then numbers repeat", "why", p.Why)
	}
	return nil
}

// fits returns an error where a keeper that has joined has not another part of the
// same series than the other keepers that have.
func (s *Series) fits(k *keeper) error {
	have := k.Status().Driver.State.Have
	for i, other := range s.supply.Status() {
		switch o := other.Driver.State.Have; {
		case s.keepers[i] == k || o.First == 0 || have.First == 0:
		case o.ID != have.ID:
			return &store.ForgotError{Store: "series " + s.name, What: "two of its stores have records of different series"}
		case o.Offset == have.Offset:
			return sameOffset(s.name, o.Offset)
		}
	}
	return nil
}

func sameOffset(name string, offset int64) error {
	return &MismatchError{name, "offsets", fmt.Sprintf("%d on two stores", offset), "different ones; was one store given twice?"}
}

// id is the series' id, once a keeper has read it.
func (s *Series) id() string {
	for _, now := range s.supply.Status() {
		if id := now.Driver.State.Have.ID; id != "" {
			return id
		}
	}
	return ""
}

// clocks reads the process's clocks.
func (s *Series) clocks() block.Now {
	return block.Now{Wall: time.Now(), Boot: time.Since(s.epoch)}
}
