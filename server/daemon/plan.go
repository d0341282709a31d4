package daemon

import (
	"fmt"
	"slices"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/shard/topology"
)

// A plan is what a server is to serve and how, with nothing opened yet.
type plan struct {
	options    config.ServerOptions
	series     []*outlet
	others     *outlet           // any other name; nil: there is no other
	names      *storeNames       // tell a counter from any other name; nil: there is no other
	flakesSaid bool              // --kind flake: a name is a flake that no counter has
	unlisted   error             // why the store has not said yet which names are counters; nil: it has
	storeAt    config.Value      // "" is the implicit store
	config     string            // its path; "": there is none
	sharded    []topology.Server // that the console shows

	// By flake of series what the store has said of its name: nil, or that it is the name of a
	// counter. Of those that are not in it the store has said nothing.
	heard map[*outlet]error

	past []*outlet // what earlier plans of this server drew from and this one does not
}

// follows remembers what the plan before drew from, and those before that.
func (p *plan) follows(before *plan) {
	for _, had := range append(before.drawings(), before.past...) {
		if !slices.ContainsFunc(p.drawings(), func(d *outlet) bool {
			return d.Name == had.Name && d.source() == had.source() && slices.Equal(d.URLs, had.URLs)
		}) {
			p.past = append(p.past, had)
		}
	}
}

// ever are the drawings of the plan and of the earlier ones of this server.
func (p *plan) ever() []*outlet { return append(slices.Clone(p.drawings()), p.past...) }

// makePlan returns what a server is to serve by these settings.
func makePlan(c *config.Config, o *Options) (*plan, error) {
	p := &plan{storeAt: c.StoreURL(), heard: map[*outlet]error{}}
	if said, ok := c.Said("pool"); ok && c.File != nil && len(c.File.Pools) > 0 {
		return nil, &PoolError{said, c.File.Path}
	}
	var err error
	if p.options, err = c.Server(); err != nil {
		return nil, err
	}
	if p.sharded, err = c.ShardServers(); err != nil {
		return nil, err
	}
	if c.File != nil {
		p.config = c.File.Path
		for i := range c.File.Series {
			one, err := c.Served(&c.File.Series[i])
			if err != nil {
				return nil, err
			}
			p.series = append(p.series, &outlet{Series: one, advise: o.Advise, hostname: o.Hostname})
		}
	}
	said, _ := c.Said("kind")
	p.flakesSaid = said.Text == config.Flake
	if len(p.series) > 0 {
		return p, p.check()
	}
	one, err := c.Chosen("", nil)
	if err != nil {
		return nil, err
	}
	p.others = &outlet{Series: one, advise: o.Advise, hostname: o.Hostname}
	return p, p.check()
}

// check refuses what cannot be served together.
func (p *plan) check() error {
	files := map[string]string{} // grant file to the pool and shard it is of
	for _, d := range p.series {
		if d.Kind != config.Flake || d.Leasing.Options.GrantFile == "" {
			continue
		}
		o := d.Leasing.Options
		held := fmt.Sprintf("pool %s, shard %d", d.Leasing.Pool, o.Shard)
		if other := files[o.GrantFile]; other != "" && other != held {
			return wrongSettings(fmt.Sprintf("the grant file %s is for one lease, and here it would be for two: %s, and %s", o.GrantFile, other, held))
		}
		files[o.GrantFile] = held
	}
	return nil
}

// guard refuses to let strangers in.
func (p *plan) guard(noAuth bool) error {
	o := &p.options
	listeners := o.Listeners()
	i := slices.IndexFunc(listeners, func(l config.Listening) bool { return l.At.Beyond() })
	if i < 0 {
		return nil
	}
	l := listeners[i]
	switch open := o.ClientCA == "" && !noAuth; {
	case open && len(o.Tokens) == 0 && l.Flag != "admin":
		return &GuardError{Listener: l.Flag, At: l.At}
	case open && o.Admin.Beyond():
		return &GuardError{Listener: "admin", At: o.Admin, State: true}
	}
	if p.storeAt.Text == "" && p.usesStore() {
		return &GuardError{Listener: l.Flag, At: l.At, Store: true}
	}
	return nil
}

// usesStore reports whether any series is kept in the store of --store.
func (p *plan) usesStore() bool {
	return p.others != nil || slices.ContainsFunc(p.series, func(d *outlet) bool { return slices.Contains(d.URLs, "") })
}
