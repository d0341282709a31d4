package main

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/nearest"
)

// oneSeries reads a series. Which keys it can have depends on its kind, wherever
// that stands among them.
func (r *configReader) oneSeries(name entry, n *yaml.Node) seriesConfig {
	s := seriesConfig{name: name, keys: map[string]entry{}}
	what := "series." + name.text
	before := len(r.faults)
	if !isSeriesName(name.text) {
		r.fault(name.at, "series %q: %s", name.text, seriesNameRule)
	}
	kind := kindIn(n)
	r.mapping(what, n, func(key entry, value *yaml.Node) {
		switch {
		case key.text == "kind":
			if s.kind = r.scalar(what+".kind", value); s.kind.at.line != 0 {
				if err := checkKind(kind); err != nil {
					r.fault(s.kind.at, "%s: %s", what, err)
				}
			}
		case slices.Contains(kinds, kind): // else it is not known which keys there are
			r.seriesKey(&s, what, kind, key, value)
		case kind == "" && (nearest.Name(key.text, []string{"kind"}) != "" || key.text == "type"):
			r.fault(key.at, "a series has no key %q; is it kind?", key.text)
		}
	})
	if kind == "" && len(r.faults) == before {
		r.fault(name.at, "%s has no kind; there are %s", what, strings.Join(kinds, ", "))
	}
	s.faulty = len(r.faults) > before
	return s
}

// kindIn is the kind that a series says it is of; "" if it does not say.
func kindIn(n *yaml.Node) string {
	n = resolved(n)
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if resolved(n.Content[i]).Value == "kind" {
				return resolved(n.Content[i+1]).Value
			}
		}
	}
	return ""
}

// seriesKey reads one key of a series.
func (r *configReader) seriesKey(s *seriesConfig, what, kind string, key entry, value *yaml.Node) {
	if !slices.Contains(keysOf(kind), key.text) {
		r.strangeKey(kind, key)
		return
	}
	what += "." + key.text
	switch key.text {
	case "stores":
		s.stores = r.stores(what, value)
	case "public":
		s.public, s.publicAt = r.publicForm(what, s.name.text, value), placeOf(value)
	case "answers":
		if s.answers = r.scalar(what, value); !slices.Contains([]string{"", "id", "public"}, s.answers.text) {
			r.fault(s.answers.at, "%s: %q is neither id nor public", what, s.answers.text)
		}
	case "pool":
		s.pool = r.scalar(what, value)
	case "shard":
		s.shard = r.scalar(what, value)
		if _, err := parseNumber(s.shard.text); err != nil && s.shard.at.line != 0 {
			r.fault(s.shard.at, "%s: %s", what, err)
		}
	default:
		v := r.scalar(what, value)
		if v.at.line == 0 {
			return
		}
		if err := seriesKeyNamed(key.text).set(new(seriesOptions), v.text); err != nil {
			r.fault(v.at, "%s: %s", what, err)
			return
		}
		s.keys[key.text] = v
	}
}

// strangeKey reports a key that series of this kind do not have.
func (r *configReader) strangeKey(kind string, key entry) {
	switch of := kindsOf(key.text); {
	case len(of) > 0:
		r.fault(key.at, "%s is for series of kind %s, and this is a %s", key.text, strings.Join(of, " and "), kind)
	case seriesSynonyms[key.text] != "":
		r.fault(key.at, "a series has no key %q: %s", key.text, seriesSynonyms[key.text])
	default:
		r.unknown(key, "a "+kind, keysOf(kind))
	}
}

// stores reads the URLs of a ticket's stores.
func (r *configReader) stores(what string, n *yaml.Node) []entry {
	at := placeOf(n)
	n = resolved(n)
	if n.Kind != yaml.SequenceNode {
		r.fault(at, "%s is a list of URLs, [A, B]", what)
		return nil
	}
	var all []entry
	for i, item := range n.Content {
		one := fmt.Sprintf("%s[%d]", what, i)
		url := r.storeURL(one, item)
		if url.text != "" && slices.ContainsFunc(all, func(e entry) bool { return e.text == url.text }) {
			r.fault(url.at, "%s is there twice: each store has numbers of its own", one)
		}
		all = append(all, url)
	}
	if len(all) < 2 || len(all) > block.MaxStores {
		r.fault(at, "%s: a ticket is spread over 2 to %d stores, not %d", what, block.MaxStores, len(all))
	}
	return all
}

// wholeSeries reports what only shows in a series as a whole.
func (r *configReader) wholeSeries(s *seriesConfig) {
	what := "series." + s.name.text
	if s.faulty {
		return
	}
	if s.answers.text == "public" && s.public == nil {
		r.fault(s.answers.at, "%s: answers is public, and it has no public form: public is missing", what)
	}
	if s.kind.text != kindFlake {
		r.wholeOptions(s, what)
		return
	}
	p, err := r.poolOf(s)
	switch {
	case p != nil && p.faulty:
	case err != nil && s.pool.at.line != 0:
		r.fault(s.pool.at, "%s: %s", what, err)
	case err != nil:
		r.fault(s.name.at, "%s: %s", what, err)
	default:
		var o poolOptions
		if p != nil {
			o.Layout = p.options().Layout
		}
		o.Shard, _ = parseNumber(s.shard.text) // faulty otherwise
		r.check(what, entry{text: "any"}, o, map[string]entry{"shard": s.shard})
	}
}

// wholeOptions reports what the series would say of its options, each at its place.
func (r *configReader) wholeOptions(s *seriesConfig, what string) {
	if s.kind.text == kindTicket && s.stores == nil {
		r.fault(s.name.at, "%s has no stores: a ticket is spread over several", what)
	}
	if _, ok := s.keys["pattern"]; s.kind.text == kindSerial && !ok {
		r.fault(s.name.at, "%s has no pattern, such as INV-{yyyyMMdd}-{6}", what)
		return
	}
	o := s.options()
	for _, f := range o.check(s.name.text, s.kind.text) {
		at := s.name.at
		if said := s.keys[f.option]; said.at.line != 0 {
			at = said.at
		}
		if f.syntax != nil {
			r.fault(at, "%s: pattern %q: column %d: %s", what, f.syntax.Text, f.syntax.Offset+1, f.syntax.Reason)
			continue
		}
		r.fault(at, "%s: %s", what, f.text)
	}
}

// options are what the file says of the series, and nothing else.
func (s *seriesConfig) options() seriesOptions {
	var o seriesOptions
	for _, k := range seriesKeys {
		if v, ok := s.keys[k.name]; ok {
			if err := k.set(&o, v.text); err != nil {
				panic(err) // it was set before
			}
		}
	}
	return o
}
