package config

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/server"
)

// This file reads what firn.yaml says of the server: listen, tls, limits, tokens.

// serveSections are the keys of firn.yaml that hold serveKeys.
var serveSections = []string{"listen", "tls", "limits"}

type token struct {
	name, hash Entry
	rights     []right
	sum        [32]byte // what hash says
}

type right struct {
	series Entry
	right  server.Right
}

// serveSection reads listen, tls or limits.
func (r *reader) serveSection(section Entry, n *yaml.Node) {
	r.serve.at[section.Text] = section.At
	var names []string
	for _, k := range ServerKeys {
		if k.section == section.Text {
			names = append(names, k.Name)
		}
	}
	r.mapping(section.Text, n, func(key Entry, value *yaml.Node) {
		what := section.Text + "." + key.Text
		k := KeyNamed(ServerKeys, what)
		if k == nil {
			r.unknown(key, section.Text, names)
			return
		}
		v := r.oneOrMore(what, value, k.list)
		if v.At.Line == 0 {
			return
		}
		if k.path {
			v.Text = r.fromHere(v.Text)
		}
		if path, ok := strings.CutPrefix(v.Text, "unix:"); ok && section.Text == "listen" && path != "" {
			v.Text = "unix:" + r.fromHere(path)
		}
		if err := k.Set(&r.serve.options, v.Text); err != nil {
			r.fault(v.At, "%s: %s", what, err)
			return
		}
		r.serve.keys[what] = v
	})
}

// oneOrMore reads a value, or of a key that takes a list, its values with commas between
// them.
func (r *reader) oneOrMore(what string, n *yaml.Node, list bool) Entry {
	items := resolved(n)
	if !list || items.Kind != yaml.SequenceNode || len(items.Content) == 0 {
		return r.scalar(what, n)
	}
	var all []string
	for _, item := range items.Content {
		v := r.scalar(what, item)
		if v.At.Line == 0 {
			return v
		}
		all = append(all, v.Text)
	}
	return Entry{strings.Join(all, ","), placeOf(n)}
}

// hostName is the name of a host: labels with dots between them, and no port.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?$`)

// parseHosts reads names of hosts, with commas between them.
func parseHosts(text string) ([]string, error) {
	var all []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if len(name) > 253 || !hostName.MatchString(name) {
			return nil, fmt.Errorf("%.100q is not the name of a host, such as ids.example.com", name)
		}
		all = append(all, name)
	}
	return all, nil
}

// tokens reads who may do what.
func (r *reader) tokens(n *yaml.Node) {
	hashes := map[string]string{}
	r.mapping("tokens", n, func(name Entry, n *yaml.Node) {
		what := "tokens." + name.Text
		before := len(r.faults)
		t := token{name: name}
		if !IsSeriesName(name.Text) {
			r.fault(name.At, "token %q: %s", name.Text, SeriesNameRule)
		}
		r.mapping(what, n, func(key Entry, value *yaml.Node) {
			switch key.Text {
			case "hash":
				if t.hash = r.scalar(what+".hash", value); t.hash.At.Line == 0 {
					return
				}
				var err error
				if t.sum, err = parseHash(t.hash.Text); err != nil {
					r.fault(t.hash.At, "%s.hash: %s", what, err)
				}
			case "rights":
				t.rights = r.rights(what+".rights", value)
			case "token":
				r.fault(key.At, "%s has its token in the file; write its hash instead: firn token create makes both", what)
			default:
				r.unknown(key, "a token", []string{"hash", "rights"})
			}
		})
		if len(r.faults) > before {
			return
		}
		switch first := hashes[t.hash.Text]; {
		case t.hash.Text == "":
			r.fault(name.At, "%s has no hash: firn token create %s makes one", what, name.Text)
		case t.rights == nil:
			r.fault(name.At, "%s has no rights, such as { \"*\": [issue, decode] }", what)
		case first != "":
			r.fault(t.hash.At, "%s.hash is that of tokens.%s", what, first)
		}
		hashes[t.hash.Text] = name.Text
		r.serve.tokens = append(r.serve.tokens, t)
	})
}

// rights reads what a token may do with which series.
func (r *reader) rights(what string, n *yaml.Node) []right {
	var all []right
	r.mapping(what, n, func(series Entry, n *yaml.Node) {
		if series.Text != "*" && !isTemplate(series.Text) && !IsSeriesName(series.Text) {
			r.fault(series.At, "%s: series %q: %s; or \"bill:*\", all that begin so; or \"*\", any", what, series.Text, SeriesNameRule)
			return
		}
		items := []*yaml.Node{n}
		if list := resolved(n); list.Kind == yaml.SequenceNode {
			items = list.Content
		}
		one := right{series: series}
		for _, item := range items {
			v := r.scalar(what+"."+series.Text, item)
			if v.At.Line == 0 {
				return
			}
			right, err := server.ParseRight(v.Text)
			if err != nil {
				r.fault(v.At, "%s.%s: %s", what, series.Text, phrase.WithoutPackage(err.Error()))
			}
			one.right |= right
		}
		all = append(all, one)
	})
	return all
}

// HashPrefix begins the hash of a token.
const HashPrefix = "sha256:"

// parseHash reads the hash of a token.
func parseHash(text string) (hash [32]byte, err error) {
	digits, ok := strings.CutPrefix(text, HashPrefix)
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) != len(hash) {
		return hash, fmt.Errorf("it is %s and 64 hexadecimal digits; firn token create prints one", HashPrefix)
	}
	return [32]byte(b), nil
}

// wholeServe reports what only shows in the server's settings as a whole.
func (r *reader) wholeServe() {
	said := func(key string) bool { return r.serve.keys[key].At.Line != 0 }
	if at, ok := r.serve.at["tls"]; ok {
		for _, key := range []string{"tls.cert", "tls.key"} {
			if !said(key) {
				r.fault(at, "tls has no %s", strings.TrimPrefix(key, "tls."))
			}
		}
	}
	for _, t := range r.serve.tokens {
		for _, right := range t.rights {
			if right.series.Text == "*" || len(r.Series) == 0 || r.hasNames(right.series.Text) {
				continue
			}
			if _, err := r.SeriesNamed(right.series.Text); err != nil {
				r.fault(right.series.At, "tokens.%s.rights: %s", t.name.Text, oneLine(err))
			}
		}
	}
}

// hasNames reports whether the file has a series whose name begins as those that a prefix stands for.
func (c *File) hasNames(prefix string) bool {
	return slices.ContainsFunc(c.Series, func(s Written) bool { return template.Clash(prefix, s.Name.Text) })
}

// Server are the settings of the server, but for its series.
func (c *Config) Server() (ServerOptions, error) {
	o := serveDefaults()
	if c.File != nil {
		o = c.File.serve.options
	}
	for _, k := range ServerKeys {
		if v, ok := c.Said(k.flagName()); ok {
			if err := k.Set(&o, v.Text); err != nil {
				return o, &ValueError{v.From, err}
			}
		}
	}
	if c.File != nil {
		for _, t := range c.File.serve.tokens {
			o.Tokens = append(o.Tokens, t.token())
		}
	}
	if len(o.Listeners()) == 0 {
		return o, faulty("there is nowhere to listen: resp, http and admin are off")
	}
	return o, nil
}

// serveValue returns a setting of the server.
func (c *Config) serveValue(k *Key[ServerOptions]) Value {
	var said Entry
	if c.File != nil {
		said = c.File.serve.keys[k.whole()]
	}
	return c.Value(k.flagName(), said, k.Standard)
}

// token is what the file says of a token.
func (t *token) token() server.Token {
	rights := map[string]server.Right{}
	for _, r := range t.rights {
		rights[r.series.Text] = r.right
	}
	return server.Token{Name: t.name.Text, Hash: t.sum, Rights: rights}
}

// A Listening is a listener that is asked for.
type Listening struct {
	Flag string
	At   Address
}
