package config

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
)

// A Config is the settings in force: each is what was said beside the file, as by a flag or
// a variable, else what the file says, else the default.
type Config struct {
	File  *File            // nil if there is no firn.yaml
	extra map[string]Value // what was said beside the file, by the name of the key
}

// New returns the settings of a file, nil where there is none, and of what was said beside it,
// by the name of the key.
func New(file *File, said map[string]Value) *Config { return &Config{file, said} }

// A Value is what a setting is, and where that is from.
type Value struct{ Text, From string }

// Default is where a value is from that nobody said.
const Default = "default"

// Said returns what was said beside the file.
func (c *Config) Said(name string) (v Value, ok bool) {
	v, ok = c.extra[name]
	return v, ok
}

// Value returns the setting of this name, where the file has it as written.
func (c *Config) Value(name string, written Entry, standard string) Value {
	if v, ok := c.Said(name); ok && name != "" {
		return v
	}
	if written.At.Line != 0 {
		return Value{written.Text, fmt.Sprintf("%s:%d", c.File.Path, written.At.Line)}
	}
	return Value{standard, Default}
}

// StoreURL is the URL of the store; "" is the implicit one.
func (c *Config) StoreURL() Value {
	var written Entry
	if c.File != nil {
		written = c.File.store
	}
	return c.Value("store", written, "")
}

// Pool returns the pool that a series draws from, or a command works on: the one that was
// said, that of the series, of the file where it has one pool or one of that name, or else
// [pool.Default]. It is nil for one that is not in the file.
func (c *Config) Pool(series string) (name string, written *Pool, err error) {
	said, _ := c.Said("pool")
	name = said.Text
	switch {
	case c.File == nil:
		return cmp.Or(name, pool.Default), nil, nil
	case name != "" && len(c.File.Pools) > 0:
		if written = c.File.Pool(name); written == nil {
			return "", nil, c.unlisted(said)
		}
		return name, written, nil
	case name != "":
		return name, nil, nil
	case series != "" && len(c.File.Series) > 0:
		one, err := c.File.SeriesNamed(series)
		if err != nil {
			return "", nil, err
		}
		if written, err = c.File.PoolOf(one); err != nil {
			return "", nil, err
		}
	default:
		if written, err = c.File.onlyPool(); err != nil {
			return "", nil, &WhichPoolError{c.File.Path, c.File.poolNames()}
		}
	}
	if written == nil {
		return pool.Default, nil, nil
	}
	return written.name.Text, written, nil
}

// unlisted is the error for a pool that is asked for and that the file does not list. The
// store may have it.
func (c *Config) unlisted(said Value) error {
	names := c.File.poolNames()
	e := &UnlistedPoolError{
		From: said.From, Path: c.File.Path, Pool: said.Text, Pools: names,
		Nearest: nearest.Name(said.Text, names), Listing: c.File.Listing(said.Text),
	}
	if said.Text != pool.Default && nearest.Name(said.Text, []string{pool.Default}) != "" {
		e.Default = c.File.Listing(pool.Default)
	}
	return e
}

// Listing says how a pool is added to those of the file.
func (c *File) Listing(name string) string {
	return fmt.Sprintf("add it under pools of %s: pools: { %s: {} }", c.Path, yamlKey(name))
}

// yamlKey is a name as a key of firn.yaml.
func yamlKey(name string) string {
	if !IsSeriesName(name) || strings.Contains(name, ":") {
		return strconv.Quote(name)
	}
	return name
}

// SeriesNamed returns the series of that name. Without a file, and where it lists
// none, there is nothing that a name could be missing from: it returns nil.
func (c *Config) SeriesNamed(name string) (*Written, error) {
	if c.File == nil || len(c.File.Series) == 0 {
		return nil, nil
	}
	return c.File.SeriesNamed(name)
}

// SeriesNamed returns the series of that name, or the template that it is a name of, or an error with
// the nearest.
func (c *File) SeriesNamed(name string) (*Written, error) {
	var names []string
	for i := range c.Series {
		if s := c.Series[i].Name.Text; s == name || template.Has(s, name) {
			return &c.Series[i], nil // no other has the name
		}
		names = append(names, c.Series[i].Name.Text)
	}
	e := faulty("%s has no series %q", c.Path, name)
	switch best := nearest.Name(name, names); {
	case best != "":
		return nil, e.advise("is it %s?", best)
	case len(names) > 0:
		return nil, e.advise("there are %s", strings.Join(names, ", "))
	}
	return nil, e.advise("series: { %s: { kind: KIND } }, of %s", name, strings.Join(Kinds, ", "))
}

// A Leasing is what it takes to lease a worker.
type Leasing struct {
	URL     string // "" is the implicit store
	File    *File  // the firn.yaml that lists pools; nil if there is no firn.yaml
	Pool    string
	Options LeaseOptions
	From    map[string]string // where each setting is from
	Serves  bool              // it is that of a series of firn.yaml, for a server
}

// Leasing returns what to lease for a series, or for none.
func (c *Config) Leasing(series string) (*Leasing, error) {
	name, written, err := c.Pool(series)
	if err != nil {
		return nil, err
	}
	var shard Entry
	if series != "" {
		one, err := c.SeriesNamed(series)
		if err != nil {
			return nil, err
		}
		if one != nil {
			shard = one.shard
		}
	}
	return c.LeasingFrom(name, written, shard)
}

// LeasingOf returns what to lease from a pool; "" is the pool that is meant where none is named.
func (c *Config) LeasingOf(name string) (*Leasing, error) {
	if name == "" {
		return c.Leasing("")
	}
	if c.File != nil && len(c.File.Pools) > 0 {
		written, err := c.File.knownPool(name)
		if err != nil {
			return nil, faulty("%s: %w", c.File.Path, err)
		}
		return c.LeasingFrom(name, written, Entry{})
	}
	return c.LeasingFrom(name, nil, Entry{})
}

// PoolSaid is what the file says of a pool, nil where it says nothing.
func (c *Config) PoolSaid(name string) *Pool {
	if c.File == nil {
		return nil
	}
	return c.File.Pool(name)
}

// LeasingFrom returns what to lease from a pool, written being what the file has of it.
func (c *Config) LeasingFrom(name string, written *Pool, shard Entry) (*Leasing, error) {
	l := &Leasing{URL: c.StoreURL().Text, Pool: name, From: map[string]string{}}
	if c.File != nil && len(c.File.Pools) > 0 {
		l.File = c.File
	}
	if written != nil {
		l.Options = written.Options
	}
	for _, k := range LeaseKeys {
		l.From[k.Name] = c.Knob(k, written).From
		if v, ok := c.Said(k.Name); ok {
			if err := k.Set(&l.Options, v.Text); err != nil {
				return nil, &ValueError{v.From, err}
			}
		}
	}
	v := c.Value("shard", shard, "0")
	l.From["shard"] = v.From
	var err error
	if l.Options.Shard, err = parseNumber(v.Text); err != nil {
		return nil, &ValueError{v.From, err}
	}
	l.Options.Pool = name
	return l, l.Faults(l.Options.Faults())
}

// Knob returns a setting of a pool, nil being one that is not in the file.
func (c *Config) Knob(k Key[LeaseOptions], of *Pool) Value {
	var written Entry
	if of != nil {
		written = of.knobs[k.Name]
	}
	return c.Value(k.Name, written, k.Standard)
}

// Faults says of wrong options where each is from. It returns nil where err is nil.
func (l *Leasing) Faults(err error) error {
	var texts []string
	for _, err := range parts(err) {
		text := phrase.WithoutPackage(err.Error())
		var option *lease.OptionError
		if errors.As(err, &option) {
			text = Blame(l.From, option.Option, text)
		}
		texts = append(texts, text)
	}
	if texts == nil {
		return nil
	}
	return &OptionsError{err, texts}
}

// Blame says where the option is from that text, which begins with it, is about.
func Blame(from map[string]string, option, text string) string {
	switch at := from[option]; {
	case at == "" || at == Default:
		return text
	case strings.HasPrefix(at, "--"):
		return "--" + text
	default:
		return at + ": " + text
	}
}
