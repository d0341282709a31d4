package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/pool"
)

// A File is what a firn.yaml says. Values are kept as text, with their place.
type File struct {
	Path   string
	store  Entry
	Pools  []Pool // in the order of the file, as are series
	Series []Written
	serve  Serve

	Servers []ShardServer // of firn shard
}

// A Pool is what a file says of a pool.
type Pool struct {
	name    Entry
	knobs   map[string]Entry // what was said, by the key's name
	Options LeaseOptions     // the same, read
	faulty  bool             // not all of it could be read
}

// A Written is what a file says of a series.
type Written struct {
	Name, Kind, pool, shard Entry

	keys     map[string]Entry // others, by name
	options  CounterOptions   // what they say
	stores   []Entry          // of a sequence over several; nil: it has the one of the file
	Public   *Form            // nil: none
	publicAt Place
	Answers  Entry // what the server gives: id or public

	faulty bool
}

// Across reports whether the series is a sequence over several stores.
func (w *Written) Across() bool { return w.stores != nil }

// Pattern is the pattern of a document; "" of any other series.
func (w *Written) Pattern() string { return w.options.Document.Pattern }

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
