package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/configfile"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
)

// Settings are the values a command works with: each is that of its flag, else
// of its FIRN_ variable, else of firn.yaml, else the default.
type settings struct {
	cmd   *cobra.Command
	flags *pflag.FlagSet
	file  *config // nil: there is none

	noCounter bool           // the store was asked, and has no counter of the series' name
	counter   *counterSeries // that the store has by the name of the series; nil: none, or nobody has looked
}

// A value is what a setting is, and where that is from.
type value struct{ text, from string }

const byDefault = "default"

// loadSettings reads the config, if there is one.
func loadSettings(cmd *cobra.Command) (*settings, error) {
	s := &settings{cmd: cmd, flags: cmd.Flags()}
	place, err := findConfig(cmd)
	if err != nil || place.path == "" {
		return s, err
	}
	s.file, err = place.read()
	var wrong *configError
	if errors.As(err, &wrong) {
		return nil, (&ui.Failure{Code: ui.ExitUsage, Err: err}).Hint("firn config check %s", phrase.ShellWord(place.path))
	}
	return s, err
}

// A configPlace is where a config is.
type configPlace struct {
	path string // "": there is none
	here bool   // nobody named it: it lies in the working directory
}

// read reads the config. Nobody obeys one only because it lies in the working
// directory: who can write there could choose the store, and have one's password.
func (p configPlace) read() (*config, error) {
	if !p.here {
		data, err := os.ReadFile(p.path)
		if err != nil {
			return nil, ui.Failed("config: %w", err)
		}
		return parseConfig(p.path, data)
	}
	f, why, err := openOwn(p.path)
	if why != "" {
		return nil, ui.Bad("./%s is not read: %s", p.path, why).
			Hint("--config ./%s, if you trust it; or chown, and chmod go-w %s", p.path, p.path)
	}
	if err != nil {
		return nil, ui.Failed("config: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, ui.Failed("config: %w", err)
	}
	return parseConfig(p.path, data)
}

// findConfig finds the config that a command uses: the named one, or the first that
// is there.
func findConfig(cmd *cobra.Command) (configPlace, error) {
	if f := cmd.Flags().Lookup("config"); f != nil && f.Changed {
		path := f.Value.String()
		if _, err := os.Stat(path); err != nil {
			return configPlace{}, ui.Bad("%s: there is no config %s", origin(f), path).Hint("name a file that is there, or leave out %s", origin(f))
		}
		return configPlace{path: path}, nil
	}
	path, err := configfile.Find()
	if err != nil {
		return configPlace{}, ui.Failed("config: %w", err).Hint("--config FILE, if it is not that one")
	}
	return configPlace{path, path == configfile.Here}, nil
}

// origin says where the value of a flag is from.
func origin(f *pflag.Flag) string {
	if names := f.Annotations[fromVariable]; len(names) > 0 {
		return names[0]
	}
	return "--" + f.Name
}

// value returns the setting with a flag of this name, where the file has it as
// said.
func (s *settings) value(flag string, said entry, standard string) value {
	if f := s.flags.Lookup(flag); f != nil && f.Changed {
		return value{f.Value.String(), origin(f)}
	}
	if said.at.line != 0 {
		return value{said.text, fmt.Sprintf("%s:%d", s.file.path, said.at.line)}
	}
	return value{standard, byDefault}
}

// storeURL is the URL of the store; "" is the implicit one.
func (s *settings) storeURL() value {
	var said entry
	if s.file != nil {
		said = s.file.store
	}
	return s.value("store", said, "")
}

// pool returns the pool that a series draws from, or a command works on: that of --pool,
// of the series, of the file where it has one pool or one of that name, or else
// [pool.Default]. It is nil for one that is not in the file.
func (s *settings) pool(series string) (name string, said *poolConfig, err error) {
	if f := s.flags.Lookup("pool"); f != nil && f.Changed {
		name = f.Value.String()
	}
	switch {
	case s.file == nil:
		return cmp.Or(name, pool.Default), nil, nil
	case name != "" && len(s.file.pools) > 0:
		if said = s.file.pool(name); said == nil {
			return "", nil, s.unlisted(name)
		}
		return name, said, nil
	case name != "":
		return name, nil, nil
	case series != "" && len(s.file.series) > 0:
		one, err := s.file.seriesNamed(series)
		if err != nil {
			return "", nil, err
		}
		if said, err = s.file.poolOf(one); err != nil {
			return "", nil, err
		}
	default:
		if said, err = s.file.onlyPool(); err != nil {
			f := ui.Bad("which pool? %s has %s", s.file.path, strings.Join(s.file.poolNames(), ", "))
			if s.flags.Lookup("pool") == nil {
				return "", nil, f.Hint("in %s: series: { NAME: { kind: flake, pool: %s } }", s.file.path, s.file.pools[0].name.text)
			}
			return "", nil, f.Hint("--pool %s", s.file.pools[0].name.text)
		}
	}
	if said == nil {
		return pool.Default, nil, nil
	}
	return said.name.text, said, nil
}

// unlisted is the error for a pool that is asked for and that the file does not list. The
// store may have it.
func (s *settings) unlisted(name string) error {
	names := s.file.poolNames()
	lists := "it lists: " + strings.Join(names, ", ")
	if best := nearest.Name(name, names); best != "" {
		lists = "is it " + best + "?"
	}
	f := ui.Bad("%s: %s does not list pool %q; %s", origin(s.flags.Lookup("pool")), s.file.path, name, lists)
	if nearest.Name(name, []string{pool.Default}) != "" && name != pool.Default {
		return f.Hint("is it pool %s of the store? Then %s", pool.Default, s.file.listing(pool.Default))
	}
	return f.Hint("to use pool %s of the store, %s", name, s.file.listing(name))
}

// listing says how a pool is added to those of the file.
func (c *config) listing(name string) string {
	key := name
	if !isSeriesName(name) || strings.Contains(name, ":") {
		key = strconv.Quote(name)
	}
	return fmt.Sprintf("add it under pools of %s: pools: { %s: {} }", c.path, key)
}

// seriesNamed returns the series of that name. Without a file, and where it lists
// none, there is nothing that a name could be missing from: it returns nil.
func (s *settings) seriesNamed(name string) (*seriesConfig, error) {
	if s.file == nil || len(s.file.series) == 0 {
		return nil, nil
	}
	return s.file.seriesNamed(name)
}

// seriesNamed returns the series of that name, or an error with the nearest.
func (c *config) seriesNamed(name string) (*seriesConfig, error) {
	var names []string
	for i := range c.series {
		if c.series[i].name.text == name {
			return &c.series[i], nil
		}
		names = append(names, c.series[i].name.text)
	}
	f := ui.Bad("%s has no series %q", c.path, name)
	switch best := nearest.Name(name, names); {
	case best != "":
		return nil, f.Hint("is it %s?", best)
	case len(names) > 0:
		return nil, f.Hint("there are %s", strings.Join(names, ", "))
	}
	return nil, f.Hint("series: { %s: { kind: KIND } }, of %s", name, strings.Join(kinds, ", "))
}

// A leasing is what it takes to lease a worker.
type leasing struct {
	url     string  // "" is the implicit store
	file    *config // that lists pools; nil: there is none
	pool    string
	options poolOptions
	from    map[string]string // where each knob is from
	serves  bool              // it is that of a series of firn.yaml, for a server
}

// leasing returns what to lease for a series, or for none.
func (s *settings) leasing(series string) (*leasing, error) {
	name, pool, err := s.pool(series)
	if err != nil {
		return nil, err
	}
	var shard entry
	if series != "" {
		one, err := s.seriesNamed(series)
		if err != nil {
			return nil, err
		}
		if one != nil {
			shard = one.shard
		}
	}
	return s.leasingFrom(name, pool, shard)
}

// poolSaid is what the file says of a pool, nil where it says nothing.
func (s *settings) poolSaid(name string) *poolConfig {
	if s.file == nil {
		return nil
	}
	return s.file.pool(name)
}

// leasingFrom returns what to lease from a pool, said being what the file has of it.
func (s *settings) leasingFrom(name string, said *poolConfig, shard entry) (*leasing, error) {
	var o poolOptions
	l := &leasing{url: s.storeURL().text, pool: name, from: map[string]string{}}
	if s.file != nil && len(s.file.pools) > 0 {
		l.file = s.file
	}
	for _, k := range knobs {
		v := s.knob(k, said)
		l.from[k.name] = v.from
		if v.from == byDefault {
			continue
		}
		if err := k.set(&o, v.text); err != nil {
			return nil, valueError(v.from, err)
		}
	}
	v := s.value("shard", shard, "0")
	l.from["shard"] = v.from
	var err error
	if o.Shard, err = parseNumber(v.text); err != nil {
		return nil, valueError(v.from, err)
	}
	o.Pool = name
	l.options = o
	return l, l.check()
}

// knob returns a knob of a pool, nil being one that is not in the file.
func (s *settings) knob(k knob, of *poolConfig) value {
	var said entry
	if of != nil {
		said = of.knobs[k.name]
	}
	return s.value(k.name, said, k.standard)
}

// check returns what a lease would say of the options, with where they are from.
func (l *leasing) check() error {
	if f := l.faults(l.options.check()); f != nil {
		return f
	}
	return nil
}

// faults says of wrong options where each is from, or returns nil.
func (l *leasing) faults(err error) *ui.Failure {
	var texts []string
	for _, err := range parts(err) {
		text := ui.WithoutPackage(err.Error())
		var option *lease.OptionError
		if errors.As(err, &option) {
			text = l.blame(option.Option, text)
		}
		texts = append(texts, text)
	}
	if texts == nil {
		return nil
	}
	return ui.Bad("%s", strings.Join(texts, "\n"))
}

// blame says where the option is from that text, which begins with it, is about.
func (l *leasing) blame(option, text string) string {
	switch from := l.from[option]; {
	case from == "" || from == byDefault:
		return text
	case strings.HasPrefix(from, "--"):
		return "--" + text
	default:
		return from + ": " + text
	}
}
