package daemon

import (
	"slices"

	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/whichstore"
	fromurl "github.com/firn-id/firn/store/open"
)

// A store that was recovered may have lost counters, and nothing in it says which. A server of
// any name then gives no id by a name that no counter has: somebody may know it as that of a
// counter.

// mayBeLost reports whether a name that no counter has may be that of one which the store lost.
func (n *storeNames) mayBeLost() bool { return n.recovered && !n.flakesSaid }

// lost is the error of such a name.
func (n *storeNames) lost(name string) error {
	return &countername.LostNameError{Store: fromurl.Redact(whichstore.Text(n.url)), Name: name}
}

// distrust has the server that runs give nothing by names that no counter has, before a reload
// that may be refused.
func (o *service) distrust() error {
	was := o.plan
	names := was.names
	now := *was
	now.names = &storeNames{
		stores: names.stores, url: names.url, most: names.most, again: names.again, flakesSaid: names.flakesSaid,
		recovered: true, outdated: make(chan struct{}),
	}
	options, series, err := now.serverOptions(o.supplies, o.log, nil)
	if err == nil {
		err = o.server.Replace(options, series...)
	}
	if err != nil {
		return err
	}
	o.plan = &now
	close(names.outdated)
	o.tellLost(was)
	return nil
}

// tellLost logs that the plan in force gives nothing by a name that no counter has, where the one
// before it did. Nil: there was none before.
func (o *service) tellLost(was *plan) {
	p := o.plan
	if p.names == nil || !p.names.mayBeLost() || was != nil && was.names != nil && was.names.url == p.names.url && was.names.mayBeLost() {
		return
	}
	o.log.Warn("the store may have lost counters: a name that no counter has gives nothing",
		withHint(p.others.hintOf(p.names.lost("NAME")), "store", p.others.storeText())...)
}

// lost are the counters that the server has served and a store does not list: it has lost
// them, or is another one. Their names must not give ids of a pool from now on.
func (p *plan) lost(found []*outlet, url string) (all []*outlet) {
	if p.names == nil {
		return nil
	}
	for _, d := range p.series {
		if !slices.ContainsFunc(found, func(f *outlet) bool { return f.Name == d.Name }) {
			one := *d.Series
			one.URLs = []string{url}
			all = append(all, &outlet{Series: &one, advise: d.advise, hostname: d.hostname})
		}
	}
	return all
}
