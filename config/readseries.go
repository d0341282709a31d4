package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/pool"
)

// oneSeries reads a series. Which keys it can have depends on its kind, wherever
// that stands among them.
func (r *reader) oneSeries(name Entry, n *yaml.Node) Written {
	s := Written{Name: name, keys: map[string]Entry{}}
	what := "series." + name.Text
	before := len(r.faults)
	kind := kindIn(n)
	switch {
	case isTemplate(name.Text) && kind != "" && kind != Document:
		r.fault(name.At, "series %q: a template is of kind document, and this is a %s", name.Text, kind)
	case !isTemplate(name.Text) && strings.HasSuffix(name.Text, "*"):
		r.fault(name.At, "series %q: a template of documents has a name such as \"bill:*\": one of ':', '.', '-', '_' stands before the star", name.Text)
	case !isTemplate(name.Text) && !IsSeriesName(name.Text):
		r.fault(name.At, "series %q: %s", name.Text, SeriesNameRule)
	}
	r.mapping(what, n, func(key Entry, value *yaml.Node) {
		switch {
		case key.Text == "kind":
			if s.Kind = r.scalar(what+".kind", value); s.Kind.At.Line != 0 {
				if err := checkKind(kind); err != nil {
					r.fault(s.Kind.At, "%s: %s", what, err)
				}
			}
		case slices.Contains(Kinds, kind): // else it is not known which keys there are
			r.seriesKey(&s, what, kind, key, value)
		case kind == "" && (nearest.Name(key.Text, []string{"kind"}) != "" || key.Text == "type"):
			r.fault(key.At, "a series has no key %q; is it kind?", key.Text)
		}
	})
	if kind == "" && len(r.faults) == before {
		r.fault(name.At, "%s has no kind; there are %s", what, strings.Join(Kinds, ", "))
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
func (r *reader) seriesKey(s *Written, what, kind string, key Entry, value *yaml.Node) {
	if !slices.Contains(keysOf(kind), key.Text) {
		r.strangeKey(kind, key)
		return
	}
	what += "." + key.Text
	switch key.Text {
	case "stores":
		s.stores = r.stores(what, value)
	case "public":
		s.Public, s.publicAt = r.publicForm(what, s.Name.Text, value), placeOf(value)
	case "answers":
		if s.Answers = r.scalar(what, value); !slices.Contains([]string{"", "id", "public"}, s.Answers.Text) {
			r.fault(s.Answers.At, "%s: %q is neither id nor public", what, s.Answers.Text)
		}
	case "pool":
		s.pool = r.scalar(what, value)
	case "shard":
		s.shard = r.scalar(what, value)
		if _, err := parseNumber(s.shard.Text); err != nil && s.shard.At.Line != 0 {
			r.fault(s.shard.At, "%s: %s", what, err)
		}
	default:
		v := r.scalar(what, value)
		if v.At.Line == 0 {
			return
		}
		if err := KeyNamed(CounterKeys, key.Text).Set(&s.options, v.Text); err != nil {
			r.fault(v.At, "%s: %s", what, err)
			return
		}
		s.keys[key.Text] = v
	}
}

// strangeKey reports a key that series of this kind do not have.
func (r *reader) strangeKey(kind string, key Entry) {
	switch of := kindsOf(key.Text); {
	case len(of) > 0:
		r.fault(key.At, "%s is for series of kind %s, and this is a %s", key.Text, strings.Join(of, " and "), kind)
	case seriesSynonyms[key.Text] != "":
		r.fault(key.At, "a series has no key %q: %s", key.Text, seriesSynonyms[key.Text])
	default:
		r.unknown(key, "a "+kind, keysOf(kind))
	}
}

// stores reads the URLs of the stores of a sequence.
func (r *reader) stores(what string, n *yaml.Node) []Entry {
	at := placeOf(n)
	n = resolved(n)
	if n.Kind != yaml.SequenceNode {
		r.fault(at, "%s is a list of URLs, [A, B]", what)
		return nil
	}
	var all []Entry
	for i, item := range n.Content {
		one := fmt.Sprintf("%s[%d]", what, i)
		url := r.storeURL(one, item)
		if url.Text != "" && slices.ContainsFunc(all, func(e Entry) bool { return e.Text == url.Text }) {
			r.fault(url.At, "%s is there twice: each store has numbers of its own", one)
		}
		all = append(all, url)
	}
	if len(all) < 2 || len(all) > block.MaxStores {
		r.fault(at, "%s: a sequence is spread over 2 to %d stores, not %d", what, block.MaxStores, len(all))
	}
	return all
}

// wholeSeries reports what only shows in a series as a whole.
func (r *reader) wholeSeries(s *Written) {
	what := "series." + s.Name.Text
	if s.faulty {
		return
	}
	if s.Answers.Text == "public" && s.Public == nil {
		r.fault(s.Answers.At, "%s: answers is public, and it has no public form: public is missing", what)
	}
	if s.Kind.Text != Flake {
		r.wholeOptions(s, what)
		return
	}
	p, err := r.PoolOf(s)
	switch {
	case r.leavesDefault(s):
		r.fault(s.Name.At, "%s has no pool, and another series names one. Without pools in the file it draws from the pool %s. To keep that, write pool: %[2]s here, and %[2]s: {} under pools. Otherwise write pool: %[3]s", what, pool.Default, p.name.Text)
	case p != nil && p.faulty:
	case err != nil && s.pool.At.Line != 0:
		r.fault(s.pool.At, "%s: %s", what, err)
	case err != nil:
		r.fault(s.Name.At, "%s: %s", what, err)
	default:
		var o LeaseOptions
		if p != nil {
			o.Layout = p.Options.Layout
		}
		o.Shard, _ = parseNumber(s.shard.Text) // faulty otherwise
		r.check(what, Entry{Text: "any"}, o, map[string]Entry{"shard": s.shard})
	}
}

// leavesDefault reports whether a series would draw from another pool than the default one only because that pool
// was listed for another series.
func (r *reader) leavesDefault(s *Written) bool {
	return s.pool.Text == "" && len(r.Pools) == 1 && r.Pools[0].name.Text != pool.Default &&
		slices.ContainsFunc(r.Series, func(other Written) bool { return other.Kind.Text == Flake && other.pool.Text != "" })
}

// wholeOptions reports what the series would say of its options, each at its place.
func (r *reader) wholeOptions(s *Written, what string) {
	if order, ok := s.keys["order"]; ok && s.stores != nil {
		r.fault(order.At, "%s: order is for a sequence in one store, and this one has several", what)
	}
	if _, ok := s.keys["pattern"]; s.Kind.Text == Document && !ok {
		r.fault(s.Name.At, "%s has no pattern, such as INV-{yyyyMMdd}-{6}", what)
		return
	}
	faults := s.options.check(s.Name.Text, s.Kind.Text)
	for _, f := range faults {
		at := s.Name.At
		if said := s.keys[f.option]; said.At.Line != 0 {
			at = said.At
		}
		if f.syntax != nil {
			r.fault(at, "%s: pattern %q: column %d: %s", what, f.syntax.Text, f.syntax.Offset+1, f.syntax.Reason)
			continue
		}
		r.fault(at, "%s: %s", what, f.text)
	}
	if err := s.options.checkForm(s.Kind.Text, s.Public); err != nil && len(faults) == 0 {
		r.fault(s.publicAt, "%s.public: %s", what, err)
	}
}
