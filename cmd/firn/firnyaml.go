package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/open"
)

// This file reads firn.yaml. It walks the nodes of the document by itself: so
// every fault is reported at once, with its line and column, an unknown key with
// the nearest known one, and each value knows where it stands.

// A config is what a firn.yaml says. Values are kept as text, with their place.
type config struct {
	path   string
	store  entry
	pools  []poolConfig // in the order of the file, as are series
	series []seriesConfig
	serve  serveConfig

	servers []serverConfig // of firn shards
}

type poolConfig struct {
	name   entry
	knobs  map[string]entry // by the knob's name
	faulty bool             // not all of it could be read
}

type seriesConfig struct {
	name, kind, pool, shard entry

	keys     map[string]entry // others, by name
	stores   []entry          // of a ticket
	public   *formSpec        // nil: none
	publicAt place
	answers  entry // what the server gives: id or public

	faulty bool
}

// An entry is a key or a value as it stands in the file; zero: it does not.
type entry struct {
	text string
	at   place
}

// A place in a file; lines and columns count from 1.
type place struct{ line, column int }

// A fault is one thing that is wrong with a file.
type fault struct {
	at   place
	text string
}

// A configError is everything that is wrong with a file.
type configError struct {
	path   string
	faults []fault
}

func (e *configError) Error() string {
	lines := make([]string, len(e.faults))
	for i, f := range e.faults {
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", e.path, f.at.line, f.at.column, f.text)
	}
	return strings.Join(lines, "\n")
}

// parseConfig reads a config. The error is a [configError].
func parseConfig(path string, data []byte) (*config, error) {
	r := configReader{config: config{path: path}}
	if root := r.document(data); root != nil {
		r.root(root)
	}
	r.whole()
	if len(r.faults) > 0 {
		slices.SortStableFunc(r.faults, func(a, b fault) int {
			return (a.at.line-b.at.line)<<16 + a.at.column - b.at.column
		})
		return nil, &configError{path, r.faults}
	}
	return &r.config, nil
}

// A configReader collects what a file says, and what is wrong with it.
type configReader struct {
	config
	faults []fault
}

func (r *configReader) fault(at place, format string, args ...any) {
	r.faults = append(r.faults, fault{at, fmt.Sprintf(format, args...)})
}

// document returns the one document of a file, or nil if it says nothing.
func (r *configReader) document(data []byte) *yaml.Node {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		r.fault(place{1, 1}, "%s", err)
		return nil
	}
	var first, second yaml.Node
	for _, n := range []*yaml.Node{&first, &second} {
		err := loader.Load(n)
		var wrong *yaml.LoadError
		switch {
		case errors.Is(err, io.EOF):
		case errors.As(err, &wrong):
			at := place{max(wrong.Mark.Line, 1), max(wrong.Mark.Column, 1)}
			if wrong.ContextMsg != "" {
				r.fault(at, "%s, %s", wrong.ContextMsg, wrong.Message)
			} else {
				r.fault(at, "%s", wrong.Message)
			}
			return nil
		case err != nil:
			r.fault(place{1, 1}, "%s", err)
			return nil
		}
	}
	if len(second.Content) > 0 {
		r.fault(placeOf(second.Content[0]), "a second document begins here; a config is one")
	}
	if len(first.Content) == 0 {
		return nil
	}
	return first.Content[0]
}

func placeOf(n *yaml.Node) place { return place{n.Line, n.Column} }

func (r *configReader) root(n *yaml.Node) {
	r.mapping("the config", n, func(key entry, value *yaml.Node) {
		switch {
		case key.text == "store":
			r.store = r.storeURL("store", value)
		case key.text == "pools":
			r.mapping("pools", value, func(name entry, value *yaml.Node) {
				r.pools = append(r.pools, r.pool(name, value))
			})
		case key.text == "series":
			r.mapping("series", value, func(name entry, value *yaml.Node) {
				r.series = append(r.series, r.oneSeries(name, value))
			})
		case key.text == "tokens":
			r.tokens(value)
		case key.text == "shards":
			r.shards(value)
		case slices.Contains(serveSections, key.text):
			r.serveSection(key, value)
		default:
			r.unknown(key, "a config", append([]string{"store", "pools", "series", "shards", "tokens"}, serveSections...))
		}
	})
}

// storeURL reads the URL of a store. A path counts from the config's own
// directory: from that of the process it would be another store each time. So it would be
// from a config that several directories have by a symbolic link.
func (r *configReader) storeURL(what string, n *yaml.Node) entry {
	url := r.scalar(what, n)
	if url.at.line == 0 {
		return url
	}
	if path, ok := strings.CutPrefix(url.text, "sqlite:"); ok && path != "" && !strings.HasPrefix(path, "//") {
		whole, err := filepath.Abs(r.fromHere(path))
		if err != nil {
			r.fault(url.at, "%s: %s", what, err)
			return url
		}
		if info, err := os.Lstat(r.path); err == nil && info.Mode()&fs.ModeSymlink != 0 && !filepath.IsAbs(path) {
			r.fault(url.at, "%s: %s is a relative path, and this file is a symbolic link: each link would have a store of its own, which makes the same ids; write an absolute path", what, url.text)
		}
		url.text = "sqlite:" + whole
	}
	if err := checkStore(url.text); err != nil {
		r.fault(url.at, "%s: %s", what, ui.WithoutPackage(err.Error()))
	}
	return url
}

// checkStore returns what is wrong with the URL of a store that is to last.
func checkStore(url string) error {
	if strings.HasPrefix(url, "memory:") {
		return fmt.Errorf("%s forgets with this process: the next would make the same ids", url)
	}
	return open.Check(url)
}

// fromHere is a path of the file, as the process finds it.
func (r *configReader) fromHere(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(r.path), path)
}

func (r *configReader) pool(name entry, n *yaml.Node) poolConfig {
	p := poolConfig{name: name, knobs: map[string]entry{}}
	what := "pools." + name.text
	before := len(r.faults)
	r.mapping(what, n, func(key entry, value *yaml.Node) {
		i := slices.IndexFunc(knobs, func(k knob) bool { return k.name == key.text })
		if i < 0 {
			r.unknown(key, "a pool", knobNames())
			return
		}
		v := r.scalar(what+"."+key.text, value)
		if v.at.line == 0 {
			return
		}
		if err := knobs[i].set(new(poolOptions), v.text); err != nil {
			r.valueFault(what+"."+key.text, v, value, err)
			return
		}
		if key.text == "file" {
			v.text = r.fromHere(v.text)
		}
		p.knobs[key.text] = v
	})
	p.faulty = len(r.faults) > before
	return p
}

// valueFault reports a value that cannot be, at the place in it if that is known.
func (r *configReader) valueFault(what string, v entry, n *yaml.Node, err error) {
	var syntax *firn.SyntaxError
	if !errors.As(err, &syntax) {
		r.fault(v.at, "%s: %s", what, err)
		return
	}
	at := v.at
	if n.Kind == yaml.ScalarNode && !strings.Contains(v.text, "\n") {
		at.column += syntax.Offset
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			at.column++
		}
	}
	r.fault(at, "%s: %s", what, syntax.Reason)
}

// mapping calls f with each key of a mapping. Nothing where a mapping could be
// is an empty one: somebody has commented its keys out.
func (r *configReader) mapping(what string, n *yaml.Node, f func(key entry, value *yaml.Node)) {
	n = resolved(n)
	switch {
	case isNull(n):
		return
	case n.Kind != yaml.MappingNode:
		r.fault(placeOf(n), "%s has keys and values, and is not %s", what, kindName(n))
		return
	}
	seen := map[string]place{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		key := entry{resolved(k).Value, placeOf(k)}
		if first, twice := seen[key.text]; twice {
			r.fault(key.at, "%s is there twice, first on line %d", key.text, first.line)
			continue
		}
		seen[key.text] = key.at
		f(key, n.Content[i+1])
	}
}

// scalar returns a value that is a text or a number, or the zero entry.
func (r *configReader) scalar(what string, n *yaml.Node) entry {
	at := placeOf(n)
	n = resolved(n)
	switch {
	case isNull(n) || n.Kind == yaml.ScalarNode && n.Value == "":
		r.fault(at, "%s has no value", what)
	case n.Kind != yaml.ScalarNode:
		r.fault(at, "%s is one value, and not %s", what, kindName(n))
	default:
		return entry{n.Value, at}
	}
	return entry{}
}

// unknown reports a key that is not known here, and the nearest that is.
func (r *configReader) unknown(key entry, where string, names []string) {
	if best := nearest.Name(key.text, names); best != "" {
		r.fault(key.at, "%s has no key %q; is it %s?", where, key.text, best)
		return
	}
	r.fault(key.at, "%s has no key %q; there are %s", where, key.text, strings.Join(names, ", "))
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%.40q", n.Value)
}

// whole reports what only shows in the file as a whole: of pools and series that
// are right in themselves, so that no fault has another for its cause.
func (r *configReader) whole() {
	for i := range r.pools {
		p := &r.pools[i]
		if p.faulty {
			continue
		}
		o := p.options()
		said := maps.Clone(p.knobs)
		if _, ok := said["ttl"]; !ok {
			said["ttl"] = said["renew"] // the other end of the rule about both
		}
		r.check("pools."+p.name.text, p.name, o, said)
	}
	for i := range r.series {
		r.wholeSeries(&r.series[i])
	}
	r.wholeServe()
}

// check reports what a lease would say of the options, each at its own place.
func (r *configReader) check(what string, pool entry, o poolOptions, said map[string]entry) {
	o.Pool = pool.text
	for _, err := range parts(o.check()) {
		at := pool.at
		var option *lease.OptionError
		if errors.As(err, &option) && said[option.Option].at.line != 0 {
			at = said[option.Option].at
		}
		r.fault(at, "%s: %s", what, ui.WithoutPackage(err.Error()))
	}
}

// parts are the errors that were joined to err, one in the other too.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, parts(one)...)
	}
	return all
}

// options are what the file says of the pool, and nothing else.
func (p *poolConfig) options() poolOptions {
	var o poolOptions
	for _, k := range knobs {
		if v, ok := p.knobs[k.name]; ok {
			if err := k.set(&o, v.text); err != nil {
				panic(err) // it was set before
			}
		}
	}
	return o
}

// layout is the layout that the file says of the pool, or else the default one.
func (p *poolConfig) layout() firn.Layout {
	if l := p.options().Layout; l.IsValid() {
		return l
	}
	return firn.Default()
}

// pool returns the pool of that name, or nil.
func (c *config) pool(name string) *poolConfig {
	i := slices.IndexFunc(c.pools, func(p poolConfig) bool { return p.name.text == name })
	if i < 0 {
		return nil
	}
	return &c.pools[i]
}

// poolOf returns the pool of a series, or nil for the default one.
func (c *config) poolOf(s *seriesConfig) (*poolConfig, error) {
	switch {
	case s.pool.text != "":
		return c.knownPool(s.pool.text)
	}
	return c.onlyPool()
}

// onlyPool is the pool that is meant where none is named: the only one, or else the one
// of the default name; nil where the file has no pools.
func (c *config) onlyPool() (*poolConfig, error) {
	switch def := c.pool(pool.Default); {
	case len(c.pools) == 0:
		return nil, nil
	case len(c.pools) == 1:
		return &c.pools[0], nil
	case def != nil:
		return def, nil
	}
	return nil, fmt.Errorf("no pool is named, and there are %s", strings.Join(c.poolNames(), ", "))
}

// knownPool returns the pool of that name, or an error with the nearest.
func (c *config) knownPool(name string) (*poolConfig, error) {
	if p := c.pool(name); p != nil {
		return p, nil
	}
	names := c.poolNames()
	switch best := nearest.Name(name, names); {
	case best != "":
		return nil, fmt.Errorf("there is no pool %q; is it %s?", name, best)
	case len(names) == 0:
		return nil, fmt.Errorf("there is no pool %q", name)
	}
	return nil, fmt.Errorf("there is no pool %q; there are %s", name, strings.Join(names, ", "))
}

func (c *config) poolNames() []string {
	names := make([]string, len(c.pools))
	for i, p := range c.pools {
		names[i] = p.name.text
	}
	return names
}
