package main

import (
	"fmt"
	"slices"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard"
)

// A servePlan is what a server is to serve and how, with nothing opened yet.
type servePlan struct {
	options    config.ServerOptions
	series     []*drawing
	others     *drawing       // any other name; nil: there is no other
	names      *storeNames    // tell a counter from any other name; nil: there is no other
	flakesSaid bool           // --kind flake: a name is a flake that no counter has
	unlisted   error          // why the store has not said yet which names are counters; nil: it has
	storeAt    config.Value   // "" is the implicit store
	config     string         // its path; "": there is none
	sharded    []shard.Server // that the console shows

	// By flake of series what the store has said of its name: nil, or that it is the name of a
	// counter. Of those that are not in it the store has said nothing.
	heard map[*drawing]error
}

// servePlan reads what a server is to serve.
func (s *settings) servePlan() (*servePlan, error) {
	p := &servePlan{storeAt: s.StoreURL(), heard: map[*drawing]error{}}
	err := s.onePool()
	if err != nil {
		return nil, err
	}
	if p.options, err = s.Server(); err != nil {
		return nil, err
	}
	if p.sharded, err = s.ShardServers(); err != nil {
		return nil, err
	}
	if s.File != nil {
		p.config = s.File.Path
		for i := range s.File.Series {
			one, err := s.Served(&s.File.Series[i])
			if err != nil {
				return nil, err
			}
			p.series = append(p.series, &drawing{one, hinter{s.cmd}})
		}
	}
	if p.flakesSaid, err = s.flakesSaid(len(p.series) > 0); err != nil {
		return nil, err
	}
	if len(p.series) > 0 {
		return p, p.check()
	}
	if p.others, err = s.drawing(""); err != nil {
		return nil, err
	}
	return p, p.check()
}

// flakesSaid reports whether --kind says that a name is a flake which no counter has.
func (s *settings) flakesSaid(listed bool) (bool, error) {
	said := s.Value("kind", config.Entry{}, "")
	switch {
	case said.Text == "" && said.From == config.Default:
		return false, nil
	case said.Text != config.Flake:
		return false, ui.Bad("%s %s: firn serve takes flake only: a name that no counter has gives ids with a time", said.From, said.Text).
			Hint("to make a segment: firn segments create NAME").
			Hint("to make a serial: firn serials create NAME --pattern PATTERN")
	case listed:
		return false, ui.Bad("%s flake is about names that are not listed, and %s lists series: no others are served", said.From, s.File.Path).
			Hint("leave out --kind: firn serve")
	}
	return true, nil
}

// onePool refuses a pool that is said beside those of the file: a server would serve either
// other ids than the file says, or others than the one who set it expects.
func (s *settings) onePool() error {
	said, ok := s.Said("pool")
	if !ok || s.File == nil || len(s.File.Pools) == 0 {
		return nil
	}
	return ui.Bad("%s is set to %s, and %s names pools: firn serve takes the pool of each series from there", said.From, said.Text, s.File.Path).
		Hint("leave out %s; in firn.yaml: series: { NAME: { kind: flake, pool: POOL } }", said.From)
}

// check refuses what cannot be served together.
func (p *servePlan) check() error {
	files := map[string]string{} // grant file to the pool and shard it is of
	for _, d := range p.series {
		if d.Kind != config.Flake || d.Leasing.Options.GrantFile == "" {
			continue
		}
		o := d.Leasing.Options
		held := fmt.Sprintf("pool %s, shard %d", d.Leasing.Pool, o.Shard)
		if other := files[o.GrantFile]; other != "" && other != held {
			return ui.Bad("the grant file %s is for one lease, and here it would be for two: %s, and %s", o.GrantFile, other, held)
		}
		files[o.GrantFile] = held
	}
	return nil
}

// guard refuses to let strangers in.
func (p *servePlan) guard(noAuth bool) error {
	o := &p.options
	listeners := o.Listeners()
	i := slices.IndexFunc(listeners, func(l config.Listening) bool { return l.At.Beyond() })
	if i < 0 {
		return nil
	}
	l := listeners[i]
	switch open := o.ClientCA == "" && !noAuth; {
	case open && len(o.Tokens) == 0 && l.Flag != "admin":
		return ui.Bad("--%s %s: other hosts can come there, and there are neither tokens nor client certificates: anybody could draw", l.Flag, l.At).
			Hint("to make a token, and see what to write into firn.yaml: firn serve token").
			Hint("--insecure-no-auth, if only those who may draw can come there")
	case open && o.Admin.Beyond():
		return ui.Bad("--admin %s: other hosts can come there, and no token is asked for: anybody could see the state", o.Admin).
			Hint("tls.client-ca in firn.yaml; or --insecure-no-auth, if only operators can come there")
	}
	if p.storeAt.Text == "" && p.usesStore() {
		return ui.Bad("--%s %s: other hosts can come there, and no --store is given: a server on another host would have a store of its own, and make the same ids", l.Flag, l.At).
			Hint("--store %s, or another server that all servers of ids share", serverStore).
			Hint("only if all processes that make these ids are on this host: --store %s", hostStore)
	}
	return nil
}

// usesStore reports whether any series is kept in the store of --store.
func (p *servePlan) usesStore() bool {
	return p.others != nil || slices.ContainsFunc(p.series, func(d *drawing) bool { return slices.Contains(d.URLs, "") })
}
