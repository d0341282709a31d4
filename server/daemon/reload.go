package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/server"
	fromurl "github.com/firn-id/firn/store/open"
)

// reload reads the settings again and serves what they say. On an error nothing has
// changed.
func (o *service) reload(ctx context.Context, why reason) error {
	next, keys, err := o.planAgain()
	if err != nil {
		return err
	}
	// After all that needs no store: what is refused leaves no trace.
	renewed := o.stores.renew(why.mended)
	err = o.take(ctx, why, next, keys)
	o.stores.settle(renewed, err)
	return err
}

// take serves what a plan says. On an error nothing has changed.
func (o *service) take(ctx context.Context, why reason, next *plan, keys *keyring) error {
	if err := o.addCounters(ctx, next); err != nil {
		return o.plan.leaves(next.others, err)
	}
	if err := next.flakesAgree(ctx, o.stores); err != nil {
		return err
	}
	if err := o.plan.unmixed(ctx, o.stores, next); err != nil {
		return err
	}
	next.inherit(o.plan)
	now, fresh := o.supplies.enough(next, o.log, why.mended)
	gone := o.supplies.without(now)
	for _, s := range fresh {
		s.existing = !o.plan.mayCreate(s.drawing)
	}
	resume, err := o.makeWay(ctx, fresh, gone)
	if err != nil {
		return err
	}
	err = o.beginFresh(ctx, why, next, append(o.joined(next, now), fresh...))
	var options *server.Options
	var series []*server.Series
	if err == nil {
		options, series, err = next.serverOptions(now, o.log, o.warn)
	}
	if err == nil {
		err = o.server.Replace(options, series...)
	}
	if err != nil {
		closeAll(fresh, o.log)
		resume()
		return err
	}
	if c := keys.now.Load(); c != nil {
		o.keys.now.Store(c)
	}
	if before := o.plan.names; before != nil {
		close(before.outdated)
	}
	o.formKeys, _ = o.formKeys.with(next)
	o.toldStore(o.plan.storeAt.Text, next.storeAt.Text)
	was := o.plan
	next.follows(was)
	o.plan, o.supplies = next, now
	o.tellLost(was)
	o.shown.Store(&now)
	o.sharded.Store(&next.sharded)
	closeAll(gone, o.log)
	return nil
}

// makeWay has those of the old supplies give up what a fresh one needs, a worker or a grant file,
// that give nothing by now. Resume is for a reload that fails then: it has them tried again.
func (o *service) makeWay(ctx context.Context, fresh, gone []*supply) (resume func(), err error) {
	var paused []*supply
	resume = func() {
		for _, old := range paused {
			old.resume(ctx, o.stores, o.openedLate)
		}
	}
	for _, s := range fresh {
		for _, old := range gone {
			if !s.clashes(old) || slices.Contains(paused, old) {
				continue
			}
			if !old.pause() {
				resume()
				return nil, wrongSettings(fmt.Sprintf("pool %s: the new lease needs the worker or the grant file of the old one, which is given back at a restart", s.drawing.Leasing.Pool),
					"start the server again, or write the old settings of the pool back")
			}
			paused = append(paused, old)
		}
	}
	return resume, nil
}

// joined returns the supplies of the next plan that are there already, and that a series which gives ids
// from another supply now is to draw from.
func (o *service) joined(next *plan, now supplies) []*supply {
	var all []*supply
	for key, s := range now {
		if o.supplies[key] == s && s.idle() != nil && o.gives(next, s) {
			all = append(all, s)
		}
	}
	return all
}

// beginFresh begins supplies for a reload, or asks those that are there whether they give. Counters that it may create come last, and documents
// before sequences, as a document can be refused by its texts: a reload that is refused leaves no
// counter behind.
func (o *service) beginFresh(ctx context.Context, why reason, next *plan, fresh []*supply) error {
	begin := func(s *supply) error { return o.plan.leaves(s.drawing, o.again(ctx, why, next, s)) }
	var documents, sequences []*supply
	creates := make(map[*supply]*atomic.Bool)
	for _, s := range fresh {
		switch {
		case s.existing:
		case s.drawing.Kind == config.Document:
			documents, creates[s] = append(documents, s), new(atomic.Bool)
		case s.drawing.Kind == config.Sequence:
			sequences, creates[s] = append(sequences, s), new(atomic.Bool)
		}
	}
	err := beginAll(ctx, fresh, func(s *supply) error {
		if news := creates[s]; news != nil {
			made, err := s.drawing.mayOpen(ctx, o.stores)
			news.Store(made)
			if made && err == nil {
				err = o.plan.renamed(next, s.drawing)
			}
			return o.plan.leaves(s.drawing, err)
		}
		return begin(s)
	})
	if err == nil {
		documents := slices.DeleteFunc(slices.Clone(documents), func(s *supply) bool { return !creates[s].Load() })
		err = overlap(documents)
	}
	if err == nil {
		err = beginAll(ctx, documents, begin)
	}
	if err == nil {
		err = beginAll(ctx, sequences, begin)
	}
	return err
}

// overlap returns an error if two of these documents, which are all to be created, could give the same text in one
// store.
func overlap(documents []*supply) error {
	var all []*config.Series
	for _, s := range documents {
		all = append(all, s.drawing.Series)
	}
	d, had := countername.EqualTexts(all, whichstore.Texts)
	if d == nil {
		return nil
	}
	return &SeriesError{d, &document.OverlapError{Series: d.Name, Pattern: d.Options.Document.Pattern, Others: []string{had.Name}, OtherPattern: had.Options.Document.Pattern}}
}

// planAgain reads the settings anew. It opens no store.
func (o *service) planAgain() (*plan, *keyring, error) {
	cfg, err := o.load()
	if err != nil {
		return nil, nil, err
	}
	next, err := makePlan(cfg, &o.options)
	if err != nil {
		return nil, nil, err
	}
	if err := o.plan.fixed(next); err != nil {
		return nil, nil, err
	}
	if err := next.guard(o.options.NoAuth); err != nil {
		return nil, nil, err
	}
	keys := &keyring{}
	if err := keys.load(&next.options); err != nil {
		return nil, nil, err
	}
	if err := next.openForms(); err != nil {
		return nil, nil, err
	}
	if _, err := o.formKeys.with(next); err != nil {
		return nil, nil, err
	}
	return next, keys, nil
}

// again opens a supply for a reload, or returns why one that is there gives nothing now. One of settings that the server has already replaces one
// that has ended, so nothing is lost while the new one waits for the time when ids start. Nor is
// it where no series that is to draw from a new one gives anything now.
func (o *service) again(ctx context.Context, why reason, next *plan, s *supply) error {
	switch had := o.supplies[s.key]; {
	case had == s:
		return s.idle()
	case had != nil:
		if why.looks && s.drawing.Kind == config.Document {
			if err := s.drawing.look(ctx, o.stores); err != nil {
				return err
			}
		}
		return s.renew(ctx, o.stores, o.openedLate)
	case !o.gives(next, s):
		return s.await(ctx, o.stores, o.openedLate)
	}
	return s.relieve(ctx, o.stores, o.newer)
}

// gives reports whether the server gives ids now by a name that is to draw from a supply of the
// next plan. A drawing without a name is that of any name that its plan has no drawing of.
func (o *service) gives(next *plan, s *supply) bool {
	for _, d := range next.drawings() {
		if d.Key() != s.key {
			continue
		}
		for _, had := range o.plan.drawings() {
			if had.Name != d.Name && (had.Name != "" || o.plan.lists(d.Name)) && (d.Name != "" || next.lists(had.Name)) {
				continue
			}
			if o.supplies[had.Key()].idle() == nil {
				return true
			}
		}
	}
	return false
}

// lists reports whether the plan has a drawing of that name.
func (p *plan) lists(name string) bool {
	return slices.ContainsFunc(p.series, func(d *outlet) bool { return d.Name == name })
}

// fixed reports what cannot be changed while the server runs. A file that is not there
// at the moment would leave the server without its tokens, and with another store.
func (p *plan) fixed(next *plan) error {
	switch {
	case p.config == "" || next.config == p.config:
	case next.config == "":
		return wrongSettings(p.config+" is not there any more", "put it back: without it the server would use the default file of its user, which is another store")
	default:
		return wrongSettings(fmt.Sprintf("%s would be read, and not %s", next.config, p.config), "start the server again, if that is meant")
	}
	a, b := p.options, next.options
	for _, f := range []struct {
		what string
		same bool
	}{
		{"listen", a.RESP == b.RESP && a.HTTP == b.HTTP && a.Admin == b.Admin && a.Strings == b.Strings && a.Foreign == b.Foreign && slices.Equal(a.Hosts, b.Hosts)},
		{"tls", (a.Cert == "") == (b.Cert == "")},
		{"limits.connections", a.Connections == b.Connections},
		{"limits.idle", a.Idle == b.Idle},
	} {
		if !f.same {
			return wrongSettings(f.what+" was changed, and is read at the start only", "to have it, start the server again; to reload the rest of the file now, write the old value back")
		}
	}
	return nil
}

// toldStore logs that a reload goes to another store, or to the same one by another URL.
func (o *service) toldStore(was, is string) {
	switch before, after := fromurl.Redact(whichstore.Text(was)), fromurl.Redact(whichstore.Text(is)); {
	case was == is:
	case before == after:
		o.log.Info("the password of the store is another one now", "store", after)
	default:
		o.log.Warn("the store is another one now; if it is not the old one under another URL, ids and numbers of both may be equal",
			"before", before, "store", after)
	}
}

// toldCounters logs which counters of the store are served that were not before.
func (o *service) toldCounters(before []*outlet) {
	var found []string
	for _, d := range o.plan.series {
		if !slices.ContainsFunc(before, func(old *outlet) bool { return old.Name == d.Name }) {
			found = append(found, d.Name)
		}
	}
	if len(found) == 0 {
		o.log.Info("the counters of the store were listed again", "series", len(o.plan.series))
		return
	}
	o.log.Info("new counters were found in the store", "counters", found, "series", len(o.plan.series))
}

// came logs what came of a reload: one that a signal asked for, or one that found counters beside those
// that were served before.
func (o *service) came(err error, why reason, before []*outlet) {
	if !errors.Is(err, errUnlisted) && !errors.Is(err, errNewer) && !errors.Is(err, errUnmended) {
		o.reloaded.Store(&reloading{time.Now(), err})
	}
	switch {
	case errors.Is(err, errUnlisted):
	case errors.Is(err, errNewer):
		o.log.Info("the wait has ended, and everything is as it was; the settings are read again")
	case errors.Is(err, errUnmended):
	case err == nil && why.looks:
		o.log.Info("the store was recovered, and is used again", "series", len(o.plan.series))
	case err == nil && !why.signalled:
		o.toldCounters(before)
	default:
		o.told(err)
	}
}

// told logs what came of a reload that a signal asked for, or that failed.
func (o *service) told(err error) {
	if err == nil {
		o.log.Info("reloaded", "config", o.plan.config, "series", len(o.plan.series), "tokens", len(o.plan.options.Tokens))
		return
	}
	hint := advice(o.options.Advise, Problem{Err: err})
	if o.options.Explain != nil {
		err = o.options.Explain(err)
	}
	o.log.Error("not reloaded; everything is as it was", withHint(hint, "err", err)...)
}

// load reads the settings again.
func (o *service) load() (*config.Config, error) {
	switch {
	case o.options.Load != nil:
		return o.options.Load()
	case o.plan.config == "":
		return o.cfg, nil
	}
	return config.Load(o.plan.config)
}
