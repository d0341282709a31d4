package main

import (
	"fmt"
	"slices"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/shard"
)

// A servePlan is what a server is to serve and how, with nothing opened yet.
type servePlan struct {
	options    serveOptions
	series     []*drawing
	others     *drawing       // any other name; nil: there is no other
	names      *storeNames    // tell a counter from any other name; nil: there is no other
	flakesSaid bool           // --kind flake: a name is a flake that no counter has
	unlisted   error          // why the store has not said yet which names are counters; nil: it has
	storeAt    value          // "" is the implicit store
	config     string         // its path; "": there is none
	sharded    []shard.Server // that the console shows

	// By flake of series what the store has said of its name: nil, or that it is the name of a
	// counter. Of those that are not in it the store has said nothing.
	heard map[*drawing]error
}

// servePlan reads what a server is to serve.
func (s *settings) servePlan() (*servePlan, error) {
	p := &servePlan{storeAt: s.storeURL(), heard: map[*drawing]error{}}
	err := s.onePool()
	if err != nil {
		return nil, err
	}
	if p.options, err = s.serveOptions(); err != nil {
		return nil, err
	}
	if p.sharded, err = s.shardServers(); err != nil {
		return nil, err
	}
	if s.file != nil {
		p.config = s.file.path
		for i := range s.file.series {
			d, err := s.serveDrawing(&s.file.series[i])
			if err != nil {
				return nil, err
			}
			p.series = append(p.series, d)
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
	said := s.value("kind", entry{}, "")
	switch {
	case said.text == "" && said.from == byDefault:
		return false, nil
	case said.text != kindFlake:
		return false, ui.Bad("%s %s: firn serve takes flake only: a name that no counter has gives ids with a time", said.from, said.text).
			Hint("to make a segment: firn segments create NAME").
			Hint("to make a serial: firn serials create NAME --pattern PATTERN")
	case listed:
		return false, ui.Bad("%s flake is about names that are not listed, and %s lists series: no others are served", said.from, s.file.path).
			Hint("leave out --kind: firn serve")
	}
	return true, nil
}

// onePool refuses a pool that is said beside those of the file: a server would serve either
// other ids than the file says, or others than the one who set it expects.
func (s *settings) onePool() error {
	f := s.flags.Lookup("pool")
	if !f.Changed || s.file == nil || len(s.file.pools) == 0 {
		return nil
	}
	return ui.Bad("%s is set to %s, and %s names pools: firn serve takes the pool of each series from there", origin(f), f.Value, s.file.path).
		Hint("leave out %s; in firn.yaml: series: { NAME: { kind: flake, pool: POOL } }", origin(f))
}

// serveDrawing returns what to draw from for a series of the file.
func (s *settings) serveDrawing(one *seriesConfig) (*drawing, error) {
	d := &drawing{name: one.name.text, kind: one.kind.text, urls: []string{s.storeURL().text}, hints: hinter{s.cmd}, listed: true}
	if one.answers.text == "public" {
		if f := s.file.keysMissing(one); f != nil {
			f.Err = fmt.Errorf("%s:%d: %w", s.file.path, one.publicAt.line, f.Err)
			return nil, f
		}
		d.form = one.public
	}
	if d.kind != kindFlake {
		return d, s.countedDrawing(d, one)
	}
	name, pool, err := s.pool(d.name)
	if err != nil {
		return nil, err // the file was checked
	}
	if d.leasing, err = s.leasingFrom(name, pool, one.shard); err != nil {
		return nil, err
	}
	d.leasing.serves = true
	return d, nil
}

// check refuses what cannot be served together.
func (p *servePlan) check() error {
	files := map[string]string{} // grant file to the pool and shard it is of
	for _, d := range p.series {
		if d.kind != kindFlake || d.leasing.options.GrantFile == "" {
			continue
		}
		o := d.leasing.options
		held := fmt.Sprintf("pool %s, shard %d", d.leasing.pool, o.Shard)
		if other := files[o.GrantFile]; other != "" && other != held {
			return ui.Bad("the grant file %s is for one lease, and here it would be for two: %s, and %s", o.GrantFile, other, held)
		}
		files[o.GrantFile] = held
	}
	return nil
}

// serveOptions are the settings of the server, but for its series.
func (s *settings) serveOptions() (serveOptions, error) {
	var o serveOptions
	for i := range serveKeys {
		k := &serveKeys[i]
		v := s.serveValue(k)
		if v.from == byDefault && k.standard == "none" {
			continue
		}
		if err := k.set(&o, v.text); err != nil {
			return o, valueError(v.from, err)
		}
	}
	if s.file != nil {
		for _, t := range s.file.serve.tokens {
			o.tokens = append(o.tokens, t.token())
		}
	}
	if len(o.listeners()) == 0 {
		return o, ui.Bad("there is nowhere to listen: resp, http and admin are off")
	}
	return o, nil
}

// serveValue returns a setting of the server.
func (s *settings) serveValue(k *serveKey) value {
	var said entry
	if s.file != nil {
		said = s.file.serve.keys[k.key()]
	}
	return s.value(k.flag, said, k.standard)
}

// token is what the file says of a token.
func (t *tokenConfig) token() server.Token {
	hash, err := parseHash(t.hash.text)
	if err != nil {
		panic(err) // it was read before
	}
	rights := map[string]server.Right{}
	for _, r := range t.rights {
		rights[r.series.text] = r.right
	}
	return server.Token{Name: t.name.text, Hash: hash, Rights: rights}
}

// serveInForce are the settings of the server as config print shows them. Nobody
// gets from a hash to a token, and it is no matter of who looks at settings.
func (s *settings) serveInForce() []settingLine {
	var all []settingLine
	for i := range serveKeys {
		v := s.serveValue(&serveKeys[i])
		all = append(all, settingLine{serveKeys[i].key(), v.text, v.from})
	}
	if s.file == nil {
		return all
	}
	for _, t := range s.file.serve.tokens {
		v := s.value("", entry{hashPrefix + "xxxxx", t.hash.at}, "")
		all = append(all, settingLine{"tokens." + t.name.text + ".hash", v.text, v.from})
		for _, r := range t.rights {
			v := s.value("", entry{r.right.String(), r.series.at}, "")
			all = append(all, settingLine{"tokens." + t.name.text + ".rights." + r.series.text, v.text, v.from})
		}
	}
	return all
}

// A listening is a listener that is asked for.
type listening struct {
	flag string
	at   address
}

// listeners are those that are on.
func (o *serveOptions) listeners() []listening {
	all := []listening{{"resp", o.resp}, {"http", o.http}, {"admin", o.admin}}
	return slices.DeleteFunc(all, func(l listening) bool { return l.at.off() })
}

// guard refuses to let strangers in.
func (p *servePlan) guard(noAuth bool) error {
	o := &p.options
	listeners := o.listeners()
	i := slices.IndexFunc(listeners, func(l listening) bool { return l.at.beyond() })
	if i < 0 {
		return nil
	}
	l := listeners[i]
	switch open := o.clientCA == "" && !noAuth; {
	case open && len(o.tokens) == 0 && l.flag != "admin":
		return ui.Bad("--%s %s: other hosts can come there, and there are neither tokens nor client certificates: anybody could draw", l.flag, l.at).
			Hint("to make a token, and see what to write into firn.yaml: firn serve token").
			Hint("--insecure-no-auth, if only those who may draw can come there")
	case open && o.admin.beyond():
		return ui.Bad("--admin %s: other hosts can come there, and no token is asked for: anybody could see the state", o.admin).
			Hint("tls.client-ca in firn.yaml; or --insecure-no-auth, if only operators can come there")
	}
	if p.storeAt.text == "" && p.usesStore() {
		return ui.Bad("--%s %s: other hosts can come there, and no --store is given: a server on another host would have a store of its own, and make the same ids", l.flag, l.at).
			Hint("--store %s, or another server that all servers of ids share", serverStore).
			Hint("only if all processes that make these ids are on this host: --store %s", hostStore)
	}
	return nil
}

// usesStore reports whether any series is kept in the store of --store.
func (p *servePlan) usesStore() bool {
	return p.others != nil || slices.ContainsFunc(p.series, func(d *drawing) bool { return slices.Contains(d.urls, "") })
}

// plain reports whether tokens travel where others may read them.
func (o *serveOptions) plain() bool {
	return o.cert == "" && slices.ContainsFunc(o.listeners(), func(l listening) bool { return l.at.beyond() })
}
