package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/store/open"
)

// This file reads firn.yaml. It walks the nodes of the document by itself: so
// every fault is reported at once, with its line and column, an unknown key with
// the nearest known one, and each value knows where it stands.

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
			if tab := tabAt(data, at.Line); tab > 0 {
				r.fault(Place{at.Line, tab}, "a tab; YAML indents with spaces")
				return nil
			}
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

// tabAt returns the column of the first tab in the indentation of a line, from 1 on, or 0 if it has no tab.
func tabAt(data []byte, line int) int {
	lines := bytes.Split(data, []byte("\n"))
	if line > len(lines) {
		return 0
	}
	text := lines[line-1]
	indent := len(text) - len(bytes.TrimLeft(text, " \t"))
	return bytes.IndexByte(text[:indent], '\t') + 1
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
