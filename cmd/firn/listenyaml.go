package main

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
)

// This file reads what firn.yaml says of the server: listen, tls, limits, tokens.

// A serveKey is a setting of the server: a key of firn.yaml and, for some, a flag
// of firn serve and a FIRN_ variable.
type serveKey struct {
	section, name string
	flag          string // empty: it is none
	usage         string // of the flag
	standard      string // what it is where nobody says
	path          bool   // a file, which is meant from the config's own directory
	list          bool   // firn.yaml may have a list, which is the same as with commas between
	set           func(o *serveOptions, text string) error
}

// key is how the setting is called in firn.yaml.
func (k *serveKey) key() string { return k.section + "." + k.name }

// serveOptions are the settings of the server, but for its series.
type serveOptions struct {
	resp, http, admin address
	strings           bool     // for every client, see resp.Options
	foreign           bool     // the routes of Leaf and tinyid
	hosts             []string // that the server is called, see httpapi.Options

	cert, key, clientCA string

	batch, ranges, names, connections int
	idle                              time.Duration

	tokens []server.Token
}

var serveKeys = []serveKey{
	{
		section: "listen", name: "resp", flag: "resp", standard: "127.0.0.1:6380",
		usage: "where to listen for the Redis protocol: HOST:PORT, unix:PATH or off",
		set:   listenAt(func(o *serveOptions) *address { return &o.resp }),
	},
	{
		section: "listen", name: "http", flag: "http", standard: "127.0.0.1:6381",
		usage: "where to listen for HTTP: HOST:PORT, unix:PATH or off",
		set:   listenAt(func(o *serveOptions) *address { return &o.http }),
	},
	{
		section: "listen", name: "admin", flag: "admin", standard: "off",
		usage: "where the console, the metrics and the probes are, instead of with HTTP: HOST:PORT or unix:PATH",
		set:   listenAt(func(o *serveOptions) *address { return &o.admin }),
	},
	{
		section: "listen", name: "names", flag: "names", standard: "none", list: true,
		usage: "names that clients and proxies call this server by, with commas between them: only these, localhost and IP addresses are answered where no token guards HTTP",
		set:   func(o *serveOptions, text string) (err error) { o.hosts, err = parseHosts(text); return err },
	},
	{
		section: "listen", name: "strings", standard: "false",
		set: truth(func(o *serveOptions) *bool { return &o.strings }),
	},
	{
		section: "listen", name: "foreign", standard: "false",
		set: truth(func(o *serveOptions) *bool { return &o.foreign }),
	},
	{
		section: "tls", name: "cert", standard: "none", path: true,
		set: func(o *serveOptions, text string) error { o.cert = text; return nil },
	},
	{
		section: "tls", name: "key", standard: "none", path: true,
		set: func(o *serveOptions, text string) error { o.key = text; return nil },
	},
	{
		section: "tls", name: "client-ca", standard: "none", path: true,
		set: func(o *serveOptions, text string) error { o.clientCA = text; return nil },
	},
	{
		section: "limits", name: "batch", standard: strconv.Itoa(server.DefaultMaxBatch),
		set: upTo(1_000_000, func(o *serveOptions) *int { return &o.batch }),
	},
	{
		section: "limits", name: "range", standard: strconv.Itoa(server.DefaultMaxRange),
		set: upTo(1_000_000_000, func(o *serveOptions) *int { return &o.ranges }),
	},
	{
		section: "limits", name: "names", standard: strconv.Itoa(server.DefaultMaxNames),
		set: upTo(10_000, func(o *serveOptions) *int { return &o.names }),
	},
	{
		section: "limits", name: "connections", standard: strconv.Itoa(resp.DefaultMaxConns),
		set: upTo(1_000_000, func(o *serveOptions) *int { return &o.connections }),
	},
	{
		section: "limits", name: "idle", standard: phrase.Duration(resp.DefaultIdle),
		set: func(o *serveOptions, text string) (err error) {
			if o.idle, err = parseDuration(text); err == nil && o.idle < time.Second {
				return fmt.Errorf("%q: it is 1s at least", text)
			}
			return err
		},
	},
}

// addListen adds --resp, --http and --admin.
func addListen(cmd *cobra.Command) {
	for i := range serveKeys {
		if k := &serveKeys[i]; k.flag != "" {
			standard := k.standard
			if standard == "none" {
				standard = "" // it is not shown then
			}
			cmd.Flags().String(k.flag, standard, k.usage)
		}
	}
}

// serveSections are the keys of firn.yaml that hold serveKeys.
var serveSections = []string{"listen", "tls", "limits"}

func listenAt(field func(*serveOptions) *address) func(*serveOptions, string) error {
	return func(o *serveOptions, text string) (err error) {
		*field(o), err = parseAddress(text)
		return err
	}
}

func truth(field func(*serveOptions) *bool) func(*serveOptions, string) error {
	return func(o *serveOptions, text string) error {
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*field(o) = text == "true"
		return nil
	}
}

func upTo(most int64, field func(*serveOptions) *int) func(*serveOptions, string) error {
	return func(o *serveOptions, text string) error {
		n, err := parsePositive(text)
		if err == nil && n > most {
			return fmt.Errorf("%q: it is at most %d", text, most)
		}
		*field(o) = int(n)
		return err
	}
}

// A serveConfig is what a firn.yaml says of the server.
type serveConfig struct {
	keys   map[string]entry // by serveKey.key
	at     map[string]place // of the sections
	tokens []tokenConfig    // in the order of the file
}

type tokenConfig struct {
	name, hash entry
	rights     []rightConfig
}

type rightConfig struct {
	series entry
	right  server.Right
}

// serveSection reads listen, tls or limits.
func (r *configReader) serveSection(section entry, n *yaml.Node) {
	if r.serve.keys == nil {
		r.serve.keys, r.serve.at = map[string]entry{}, map[string]place{}
	}
	r.serve.at[section.text] = section.at
	var names []string
	for _, k := range serveKeys {
		if k.section == section.text {
			names = append(names, k.name)
		}
	}
	r.mapping(section.text, n, func(key entry, value *yaml.Node) {
		what := section.text + "." + key.text
		i := slices.IndexFunc(serveKeys, func(k serveKey) bool { return k.key() == what })
		if i < 0 {
			r.unknown(key, section.text, names)
			return
		}
		k := &serveKeys[i]
		v := r.oneOrMore(what, value, k.list)
		if v.at.line == 0 {
			return
		}
		if k.path {
			v.text = r.fromHere(v.text)
		}
		if err := k.set(new(serveOptions), v.text); err != nil {
			r.fault(v.at, "%s: %s", what, err)
			return
		}
		if path, ok := strings.CutPrefix(v.text, "unix:"); ok && section.text == "listen" {
			v.text = "unix:" + r.fromHere(path)
		}
		r.serve.keys[what] = v
	})
}

// oneOrMore reads a value, or of a key that takes a list, its values with commas between
// them.
func (r *configReader) oneOrMore(what string, n *yaml.Node, list bool) entry {
	items := resolved(n)
	if !list || items.Kind != yaml.SequenceNode || len(items.Content) == 0 {
		return r.scalar(what, n)
	}
	var all []string
	for _, item := range items.Content {
		v := r.scalar(what, item)
		if v.at.line == 0 {
			return v
		}
		all = append(all, v.text)
	}
	return entry{strings.Join(all, ","), placeOf(n)}
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
func (r *configReader) tokens(n *yaml.Node) {
	hashes := map[string]string{}
	r.mapping("tokens", n, func(name entry, n *yaml.Node) {
		what := "tokens." + name.text
		before := len(r.faults)
		t := tokenConfig{name: name}
		if !isSeriesName(name.text) {
			r.fault(name.at, "token %q: %s", name.text, seriesNameRule)
		}
		r.mapping(what, n, func(key entry, value *yaml.Node) {
			switch key.text {
			case "hash":
				if t.hash = r.scalar(what+".hash", value); t.hash.at.line == 0 {
					return
				}
				if _, err := parseHash(t.hash.text); err != nil {
					r.fault(t.hash.at, "%s.hash: %s", what, err)
				}
			case "rights":
				t.rights = r.rights(what+".rights", value)
			case "token":
				r.fault(key.at, "%s has its token in the file; write its hash instead: firn serve token makes both", what)
			default:
				r.unknown(key, "a token", []string{"hash", "rights"})
			}
		})
		if len(r.faults) > before {
			return
		}
		switch first := hashes[t.hash.text]; {
		case t.hash.text == "":
			r.fault(name.at, "%s has no hash: firn serve token --name %s makes one", what, name.text)
		case t.rights == nil:
			r.fault(name.at, "%s has no rights, such as { \"*\": [issue, decode] }", what)
		case first != "":
			r.fault(t.hash.at, "%s.hash is that of tokens.%s", what, first)
		}
		hashes[t.hash.text] = name.text
		r.serve.tokens = append(r.serve.tokens, t)
	})
}

// rights reads what a token may do with which series.
func (r *configReader) rights(what string, n *yaml.Node) []rightConfig {
	var all []rightConfig
	r.mapping(what, n, func(series entry, n *yaml.Node) {
		if series.text != "*" && !isSeriesName(series.text) {
			r.fault(series.at, "%s: series %q: %s; or \"*\", any", what, series.text, seriesNameRule)
			return
		}
		items := []*yaml.Node{n}
		if list := resolved(n); list.Kind == yaml.SequenceNode {
			items = list.Content
		}
		one := rightConfig{series: series}
		for _, item := range items {
			v := r.scalar(what+"."+series.text, item)
			if v.at.line == 0 {
				return
			}
			right, err := server.ParseRight(v.text)
			if err != nil {
				r.fault(v.at, "%s.%s: %s", what, series.text, ui.WithoutPackage(err.Error()))
			}
			one.right |= right
		}
		all = append(all, one)
	})
	return all
}

const hashPrefix = "sha256:"

// parseHash reads the hash of a token.
func parseHash(text string) (hash [32]byte, err error) {
	digits, ok := strings.CutPrefix(text, hashPrefix)
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) != len(hash) {
		return hash, fmt.Errorf("it is %s and 64 hexadecimal digits; firn serve token prints one", hashPrefix)
	}
	return [32]byte(b), nil
}

// wholeServe reports what only shows in the server's settings as a whole.
func (r *configReader) wholeServe() {
	said := func(key string) bool { return r.serve.keys[key].at.line != 0 }
	if at, ok := r.serve.at["tls"]; ok {
		for _, key := range []string{"tls.cert", "tls.key"} {
			if !said(key) {
				r.fault(at, "tls has no %s", strings.TrimPrefix(key, "tls."))
			}
		}
	}
	for _, t := range r.serve.tokens {
		for _, right := range t.rights {
			if right.series.text == "*" || len(r.series) == 0 {
				continue
			}
			if _, err := r.seriesNamed(right.series.text); err != nil {
				r.fault(right.series.at, "tokens.%s.rights: %s", t.name.text, oneLine(err))
			}
		}
	}
}
