package config

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn"
)

// A Series is what the settings say of a series: what it takes to open it.
type Series struct {
	Name, Kind string
	URLs       []string // of its stores, several only of a sequence; "" is the implicit one
	Leasing    *Leasing // of a flake
	Options    CounterOptions
	Listed     bool              // it is in firn.yaml
	Others     []string          // of a counter: all series that firn.yaml lists
	Form       *Form             // in which ids are given; nil: as they are
	Reads      *Form             // in which a server reads ids that it gives as they are; nil: in none
	From       map[string]string // where each setting of a counter is from
}

// Across reports whether the series is a sequence over several stores, each of which serves alone.
func (s *Series) Across() bool { return s.Kind == Sequence && len(s.URLs) > 1 }

// Defined is the name under which a store has the definition of a counter: that of a template, for a name
// that belongs to it.
func (s *Series) Defined() string { return cmp.Or(s.Options.Document.Template, s.Name) }

// FirstNumber is what the series gives first if its counter begins now.
func (s *Series) FirstNumber() firn.ID { return max(s.Options.Sequence.First, 1) }

// A Counter is what a store has by the name of a series that counts. Nothing in a store says
// that a name is a flake: that is every name without a counter.
type Counter struct {
	Kind    string // sequence or document
	Stores  int    // over how many stores a sequence is spread
	Pattern string // of a document, as is zone
	Zone    string

	Template string // that the name belongs to; "": the counter has a definition of its own
}

// agrees returns an error if the store has a counter of that name and another kind.
func (c *Counter) agrees(name, kind, from string) error {
	if c == nil || c.Kind == kind {
		return nil
	}
	return &CounterError{from, name, kind, c.Kind}
}

// Chosen returns what the settings say of a series; of "" nobody says anything, so it is a
// flake. There is what the store has by that name; nil: nothing, or nobody has looked.
func (c *Config) Chosen(name string, there *Counter) (*Series, error) {
	s := &Series{Name: name, URLs: []string{c.StoreURL().Text}}
	var one *Written
	var err error
	if name != "" {
		if one, err = c.SeriesNamed(name); err != nil {
			return nil, err
		}
		s.Listed = one != nil
	}
	if s.Kind, err = c.Kind(name, there); err != nil {
		return nil, err
	}
	if s.Kind == Flake {
		s.Leasing, err = c.Leasing(name)
	} else {
		err = c.Counted(s, one, there)
	}
	if err != nil {
		return nil, err
	}
	if s.Form, err = c.Form(name); err != nil {
		return nil, err
	}
	if err := s.Options.checkForm(s.Kind, s.Form); err != nil {
		return nil, faulty("series %s: %w", name, err)
	}
	return s, nil
}

// Served returns what the file says of a series, for a server.
func (c *Config) Served(one *Written) (*Series, error) {
	s := &Series{Name: one.Name.Text, Kind: one.Kind.Text, URLs: []string{c.StoreURL().Text}, Listed: true}
	if one.Answers.Text == "public" {
		if err := c.File.KeysMissing(one); err != nil {
			return nil, &ValueError{fmt.Sprintf("%s:%d", c.File.Path, one.publicAt.Line), err}
		}
		s.Form = one.Public
	} else {
		s.Reads = one.Public
	}
	if s.Kind != Flake {
		return s, c.Counted(s, one, nil)
	}
	name, written, err := c.Pool(s.Name)
	if err != nil {
		return nil, err // the file was checked
	}
	if s.Leasing, err = c.LeasingFrom(name, written, one.shard); err != nil {
		return nil, err
	}
	s.Leasing.Serves = true
	return s, nil
}

// Kind is the kind of a series. It is that of the counter of that name in the store, if there
// is one; else what is said; else a flake.
func (c *Config) Kind(name string, there *Counter) (string, error) {
	one, err := c.SeriesNamed(name)
	if name == "" {
		one, err = nil, nil
	}
	if err != nil {
		return "", err
	}
	if said, ok := c.Said("kind"); ok {
		if err := checkKind(said.Text); err != nil {
			return "", &ValueError{said.From, err}
		}
		if one != nil && one.Kind.Text != said.Text {
			return "", faulty("%s %s: series %s is of kind %s, says %s:%d", said.From, said.Text, one.Name.Text, one.Kind.Text, c.File.Path, one.Kind.At.Line)
		}
		return said.Text, there.agrees(name, said.Text, said.From)
	}
	if one != nil {
		return one.Kind.Text, there.agrees(name, one.Kind.Text, fmt.Sprintf("%s:%d", c.File.Path, one.Kind.At.Line))
	}
	if said, ok := c.Said("pattern"); ok {
		return Document, there.agrees(name, Document, said.From)
	}
	if there != nil {
		return there.Kind, nil
	}
	return Flake, nil
}

// Counted fills in what there is to know of a series that is no flake.
func (c *Config) Counted(s *Series, one *Written, there *Counter) error {
	if s.Name == "" {
		return &NoNameError{s.Kind}
	}
	switch said, ok := c.Said("store"); {
	case one != nil && one.Across() && ok && strings.HasPrefix(said.From, "--"):
		return faulty("--store: the sequence %s has stores of its own, in firn.yaml", s.Name)
	case one != nil && one.Across():
		s.URLs = nil
		for _, url := range one.stores {
			s.URLs = append(s.URLs, url.Text)
		}
	case there != nil && there.Stores > 1:
		return faulty("the sequence %s is spread over %d stores, which firn.yaml has to name", s.Name, there.Stores).
			advise("series: { %s: { kind: sequence, stores: [URL, URL] } }, with the stores that it was created with", s.Name)
	}
	if one != nil {
		s.Options = one.options
	}
	switch {
	case one != nil && one.Name.Text != s.Name:
		s.Options.Document.Template = one.Name.Text
	case there != nil:
		s.Options.Document.Template = there.Template
	}
	if c.File != nil {
		for i := range c.File.Series {
			s.Others = append(s.Others, c.File.Series[i].Name.Text)
		}
	}
	s.From = map[string]string{}
	for _, k := range CounterKeys {
		if !k.Of(s.Kind) {
			continue
		}
		var written Entry
		if one != nil {
			written = one.keys[k.Name]
		}
		s.From[k.Name] = c.Value(k.flagName(), written, "").From
		if v, ok := c.Said(k.flagName()); ok {
			if err := k.Set(&s.Options, v.Text); err != nil {
				return &ValueError{v.From, err}
			}
		}
	}
	if there != nil && s.Kind == Document && s.Options.Document.Pattern == "" {
		s.Options.Document.Pattern, s.Options.Document.Zone = there.Pattern, there.Zone
	}
	if s.Kind == Document && s.Options.Document.Pattern == "" {
		return &NoPatternError{s.Name}
	}
	return s.Check()
}

// Check returns what the series would say of its options, with where they are from.
func (s *Series) Check() error {
	var texts []string
	var shown *PatternError
	for _, f := range s.Options.check(s.Name, s.Kind) {
		texts = append(texts, Blame(s.From, f.option, f.text))
		if f.syntax != nil {
			shown = &PatternError{s.From[f.option], f.syntax}
		}
	}
	switch {
	case texts == nil:
		return nil
	case shown != nil && len(texts) == 1:
		return shown
	}
	return &OptionsError{errors.New(strings.Join(texts, "\n")), texts}
}

// Resumes reports whether a series is a flake by somebody's word, and may continue from a
// grant file while the store is away.
func (c *Config) Resumes(name string) bool {
	one, err := c.SeriesNamed(name)
	said, _ := c.Said("kind")
	if err != nil || one == nil && said.Text != Flake {
		return false
	}
	l, err := c.Leasing(name)
	return err == nil && l.Options.GrantFile != ""
}

// KindSaid reports whether somebody says of which kind the series is.
func (c *Config) KindSaid() bool {
	_, kind := c.Said("kind")
	_, pattern := c.Said("pattern")
	return kind || pattern
}

// Key says all that a series is made of, but for the name of a flake: series of one key draw
// from one source.
func (s *Series) Key() string {
	if s.Kind == Flake {
		o := s.Leasing.Options
		o.Logger = nil
		return fmt.Sprintf("%q %q %+v", s.URLs, s.Leasing.Pool, o)
	}
	o := s.Options
	o.Sequence.Logger, o.Document.Logger = nil, nil
	return fmt.Sprintf("%q %s %q %+v", s.URLs, s.Kind, s.Name, o)
}

// Lost is what it means that the series could not be closed well.
func (s *Series) Lost() string {
	if s.Kind == Flake {
		return "the worker was not given back and falls free by itself"
	}
	return "numbers that were reserved and not printed are lost"
}
