package config

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
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/open"
)

// This file reads firn.yaml. It walks the nodes of the document by itself: so
// every fault is reported at once, with its line and column, an unknown key with
// the nearest known one, and each value knows where it stands.

// A File is what a firn.yaml says. Values are kept as text, with their place.
type File struct {
	Path   string
	store  Entry
	Pools  []Pool // in the order of the file, as are series
	Series []Written
	serve  Serve

	Servers []ShardServer // of firn shards
}

type Pool struct {
	name    Entry
	knobs   map[string]Entry // what was said, by the key's name
	Options LeaseOptions     // the same, read
	faulty  bool             // not all of it could be read
}

type Written struct {
	Name, Kind, pool, shard Entry

	keys     map[string]Entry // others, by name
	options  CounterOptions   // what they say
	stores   []Entry          // of a ticket
	Public   *Form            // nil: none
	publicAt Place
	Answers  Entry // what the server gives: id or public

	faulty bool
}

// An Entry is a key or a value as it stands in the file; zero: it does not.
type Entry struct {
	Text string
	At   Place
}

// A Place in a file; lines and columns count from 1.
type Place struct{ Line, Column int }

// A Fault is one thing that is wrong with a file.
type Fault struct {
	Place          // where it is in the file
	Text    string // what is wrong
	Nearest string // the name that was probably meant; "" if that is not known
}

// A FaultsError is everything that is wrong with a file.
type FaultsError struct {
	Path   string
	Faults []Fault
}

func (e *FaultsError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", e.Path, f.Line, f.Column, f.Text)
	}
	return strings.Join(lines, "\n")
}

// Retryable is false; see firn.Retryable.
func (*FaultsError) Retryable() bool { return false }

// Parse reads a config. The error is a [configError].
func Parse(path string, data []byte) (*File, error) {
	r := reader{File: File{Path: path, serve: Serve{
		keys: map[string]Entry{}, at: map[string]Place{}, options: serveDefaults(),
	}}}
	if root := r.document(data); root != nil {
		r.root(root)
	}
	r.whole()
	if len(r.faults) > 0 {
		slices.SortStableFunc(r.faults, func(a, b Fault) int {
			return (a.Line-b.Line)<<16 + a.Column - b.Column
		})
		return nil, &FaultsError{path, r.faults}
	}
	return &r.File, nil
}

// A reader collects what a file says, and what is wrong with it.
type reader struct {
	File
	faults []Fault
}

func (r *reader) fault(at Place, format string, args ...any) {
	r.faults = append(r.faults, Fault{Place: at, Text: fmt.Sprintf(format, args...)})
}

// document returns the one document of a file, or nil if it says nothing.
func (r *reader) document(data []byte) *yaml.Node {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		r.fault(Place{1, 1}, "%s", err)
		return nil
	}
	var first, second yaml.Node
	for _, n := range []*yaml.Node{&first, &second} {
		err := loader.Load(n)
		var wrong *yaml.LoadError
		switch {
		case errors.Is(err, io.EOF):
		case errors.As(err, &wrong):
			at := Place{max(wrong.Mark.Line, 1), max(wrong.Mark.Column, 1)}
			if wrong.ContextMsg != "" {
				r.fault(at, "%s, %s", wrong.ContextMsg, wrong.Message)
			} else {
				r.fault(at, "%s", wrong.Message)
			}
			return nil
		case err != nil:
			r.fault(Place{1, 1}, "%s", err)
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

func placeOf(n *yaml.Node) Place { return Place{n.Line, n.Column} }

func (r *reader) root(n *yaml.Node) {
	r.mapping("the config", n, func(key Entry, value *yaml.Node) {
		switch {
		case key.Text == "store":
			r.store = r.storeURL("store", value)
		case key.Text == "pools":
			r.mapping("pools", value, func(name Entry, value *yaml.Node) {
				r.Pools = append(r.Pools, r.pool(name, value))
			})
		case key.Text == "series":
			r.mapping("series", value, func(name Entry, value *yaml.Node) {
				r.Series = append(r.Series, r.oneSeries(name, value))
			})
		case key.Text == "tokens":
			r.tokens(value)
		case key.Text == "shards":
			r.shards(value)
		case slices.Contains(serveSections, key.Text):
			r.serveSection(key, value)
		default:
			r.unknown(key, "a config", append([]string{"store", "pools", "series", "shards", "tokens"}, serveSections...))
		}
	})
}

// storeURL reads the URL of a store. A path counts from the config's own
// directory: from that of the process it would be another store each time. So it would be
// from a config that several directories have by a symbolic link.
func (r *reader) storeURL(what string, n *yaml.Node) Entry {
	url := r.scalar(what, n)
	if url.At.Line == 0 {
		return url
	}
	if path, ok := strings.CutPrefix(url.Text, "sqlite:"); ok && path != "" && !strings.HasPrefix(path, "//") {
		whole, err := filepath.Abs(r.fromHere(path))
		if err != nil {
			r.fault(url.At, "%s: %s", what, err)
			return url
		}
		if info, err := os.Lstat(r.Path); err == nil && info.Mode()&fs.ModeSymlink != 0 && !filepath.IsAbs(path) {
			r.fault(url.At, "%s: %s is a relative path, and this file is a symbolic link: each link would have a store of its own, which makes the same ids; write an absolute path", what, url.Text)
		}
		url.Text = "sqlite:" + whole
	}
	if err := CheckStore(url.Text); err != nil {
		r.fault(url.At, "%s: %s", what, phrase.WithoutPackage(err.Error()))
	}
	return url
}

// CheckStore returns what is wrong with the URL of a store that is to last.
func CheckStore(url string) error {
	if strings.HasPrefix(url, "memory:") {
		return fmt.Errorf("%s forgets with this process: the next would make the same ids", url)
	}
	return open.Check(url)
}

// fromHere is a path of the file, as the process finds it.
func (r *reader) fromHere(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(r.Path), path)
}

func (r *reader) pool(name Entry, n *yaml.Node) Pool {
	p := Pool{name: name, knobs: map[string]Entry{}}
	what := "pools." + name.Text
	before := len(r.faults)
	r.mapping(what, n, func(key Entry, value *yaml.Node) {
		k := KeyNamed(LeaseKeys, key.Text)
		if k == nil {
			r.unknown(key, "a pool", KeyNames(LeaseKeys))
			return
		}
		v := r.scalar(what+"."+key.Text, value)
		if v.At.Line == 0 {
			return
		}
		if k.path {
			v.Text = r.fromHere(v.Text)
		}
		if err := k.Set(&p.Options, v.Text); err != nil {
			r.valueFault(what+"."+key.Text, v, value, err)
			return
		}
		p.knobs[key.Text] = v
	})
	p.faulty = len(r.faults) > before
	return p
}

// valueFault reports a value that cannot be, at the place in it if that is known.
func (r *reader) valueFault(what string, v Entry, n *yaml.Node, err error) {
	var syntax *firn.SyntaxError
	if !errors.As(err, &syntax) {
		r.fault(v.At, "%s: %s", what, err)
		return
	}
	at := v.At
	if n.Kind == yaml.ScalarNode && !strings.Contains(v.Text, "\n") {
		at.Column += syntax.Offset
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			at.Column++
		}
	}
	r.fault(at, "%s: %s", what, syntax.Reason)
}

// mapping calls f with each key of a mapping. Nothing where a mapping could be
// is an empty one: somebody has commented its keys out.
func (r *reader) mapping(what string, n *yaml.Node, f func(key Entry, value *yaml.Node)) {
	n = resolved(n)
	switch {
	case isNull(n):
		return
	case n.Kind != yaml.MappingNode:
		r.fault(placeOf(n), "%s has keys and values, and is not %s", what, kindName(n))
		return
	}
	seen := map[string]Place{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		key := Entry{resolved(k).Value, placeOf(k)}
		if first, twice := seen[key.Text]; twice {
			r.fault(key.At, "%s is there twice, first on line %d", key.Text, first.Line)
			continue
		}
		seen[key.Text] = key.At
		f(key, n.Content[i+1])
	}
}

// scalar returns a value that is a text or a number, or the zero entry.
func (r *reader) scalar(what string, n *yaml.Node) Entry {
	at := placeOf(n)
	n = resolved(n)
	switch {
	case isNull(n) || n.Kind == yaml.ScalarNode && n.Value == "":
		r.fault(at, "%s has no value", what)
	case n.Kind != yaml.ScalarNode:
		r.fault(at, "%s is one value, and not %s", what, kindName(n))
	default:
		return Entry{n.Value, at}
	}
	return Entry{}
}

// unknown reports a key that is not known here, and the nearest that is.
func (r *reader) unknown(key Entry, where string, names []string) {
	if best := nearest.Name(key.Text, names); best != "" {
		r.fault(key.At, "%s has no key %q; is it %s?", where, key.Text, best)
		r.faults[len(r.faults)-1].Nearest = best
		return
	}
	r.fault(key.At, "%s has no key %q; there are %s", where, key.Text, strings.Join(names, ", "))
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
func (r *reader) whole() {
	for i := range r.Pools {
		p := &r.Pools[i]
		if p.faulty {
			continue
		}
		o := p.Options
		said := maps.Clone(p.knobs)
		if _, ok := said["ttl"]; !ok {
			said["ttl"] = said["renew"] // the other end of the rule about both
		}
		r.check("pools."+p.name.Text, p.name, o, said)
	}
	for i := range r.Series {
		r.wholeSeries(&r.Series[i])
	}
	r.wholeServe()
}

// check reports what a lease would say of the options, each at its own place.
func (r *reader) check(what string, pool Entry, o LeaseOptions, said map[string]Entry) {
	o.Pool = pool.Text
	for _, err := range parts(o.Faults()) {
		at := pool.At
		var option *lease.OptionError
		if errors.As(err, &option) && said[option.Option].At.Line != 0 {
			at = said[option.Option].At
		}
		r.fault(at, "%s: %s", what, phrase.WithoutPackage(err.Error()))
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

// Layout is the layout that the file says of the pool, or else the default one.
func (p *Pool) Layout() firn.Layout {
	if l := p.Options.Layout; l.IsValid() {
		return l
	}
	return firn.Default()
}

// Pool returns the pool of that name, or nil.
func (c *File) Pool(name string) *Pool {
	i := slices.IndexFunc(c.Pools, func(p Pool) bool { return p.name.Text == name })
	if i < 0 {
		return nil
	}
	return &c.Pools[i]
}

// PoolOf returns the pool of a series, or nil for the default one.
func (c *File) PoolOf(s *Written) (*Pool, error) {
	switch {
	case s.pool.Text != "":
		return c.knownPool(s.pool.Text)
	}
	return c.onlyPool()
}

// onlyPool is the pool that is meant where none is named: the only one, or else the one
// of the default name; nil where the file has no pools.
func (c *File) onlyPool() (*Pool, error) {
	switch def := c.Pool(pool.Default); {
	case len(c.Pools) == 0:
		return nil, nil
	case len(c.Pools) == 1:
		return &c.Pools[0], nil
	case def != nil:
		return def, nil
	}
	return nil, fmt.Errorf("no pool is named, and there are %s", strings.Join(c.poolNames(), ", "))
}

// knownPool returns the pool of that name, or an error with the nearest.
func (c *File) knownPool(name string) (*Pool, error) {
	if p := c.Pool(name); p != nil {
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

func (c *File) poolNames() []string {
	names := make([]string, len(c.Pools))
	for i, p := range c.Pools {
		names[i] = p.name.Text
	}
	return names
}

// CheckKeys reads the key files of public forms, and returns a [*configError] where one cannot
// be had. Say writes an error for a person. Keys that a flag or a variable names are
// left out: the process that serves may have another variable than this one.
func (c *File) CheckKeys(say func(error) string) error {
	wrong := &FaultsError{Path: c.Path}
	for i := range c.Series {
		one := &c.Series[i]
		if one.Public == nil {
			continue
		}
		if f := c.KeysMissing(one); f != nil {
			wrong.Faults = append(wrong.Faults, Fault{Place: one.publicAt, Text: say(f)})
			continue
		}
		if keys := one.Public.Values["keys"]; keys == "" || strings.HasPrefix(keys, KeysFromVariable) {
			continue
		}
		if _, err := one.Public.Open(nil); err != nil {
			wrong.Faults = append(wrong.Faults, Fault{Place: one.publicAt, Text: fmt.Sprintf("series %s: public: %s", one.Name.Text, say(err))})
		}
	}
	if len(wrong.Faults) == 0 {
		return nil
	}
	return wrong
}
