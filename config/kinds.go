package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
)

// The kinds of series.
const (
	Flake    = "flake"    // ids with a time, from a leased worker
	Sequence = "sequence" // dense numbers, reserved in blocks, in one store or over several
	Document = "document" // texts: prefix, date, counter
)

// Kinds are all kinds of series.
var Kinds = []string{Flake, Sequence, Document}

// CounterOptions are the options of a series that is no flake.
type CounterOptions struct {
	Sequence sequence.Options
	Document document.Options
}

var (
	counted = []string{Sequence}
	dense   = []string{Sequence, Document}
)

// CounterKeys are the settings of series that count.
var CounterKeys = []Key[CounterOptions]{
	{
		Name: "pattern", Kinds: []string{Document}, Value: "PATTERN", Standard: "none",
		Usage: "of a document: text with {6} or {1+}, {yyyyMMdd}, {luhn}; docs/guides/documents.md",
		Set:   func(o *CounterOptions, text string) error { o.Document.Pattern = text; return nil },
	},
	{
		Name: "zone", Kinds: []string{Document}, Value: "ZONE", Standard: "none",
		Usage: "of a document with a date: the time zone, such as Asia/Ho_Chi_Minh",
		Set:   func(o *CounterOptions, text string) error { o.Document.Zone = text; return nil },
	},
	{
		Name: "names", Kinds: []string{Document}, Standard: strconv.Itoa(dated.DefaultNames),
		Usage: "of a template, such as bill:*: how many names it has at most",
		Set:   upTo(dated.MaxNames, func(o *CounterOptions) *int { return &o.Document.Names }),
	},
	{
		Name: "first", Kinds: counted, Standard: "1",
		Set: positiveID(func(o *CounterOptions) *firn.ID { return &o.Sequence.First }),
	},
	{
		Name: "max", Kinds: counted, Standard: "9223372036854775807",
		Set: positiveID(func(o *CounterOptions) *firn.ID { return &o.Sequence.Max }),
	},
	{
		Name: "increment", Kinds: counted, Standard: "1",
		Set: func(o *CounterOptions, text string) (err error) {
			o.Sequence.Increment, err = ParsePositive(text)
			return err
		},
	},
	{
		Name: "cache", Kinds: dense, Value: "N", Set: setCache,
		Usage:    "how many numbers to reserve by one write",
		Standard: strconv.Itoa(block.DefaultCache),
	},
	{Name: "order", Kinds: []string{Sequence}, Standard: "free", Set: setOrder},
	{
		Name: "cache-for", Kinds: counted, Standard: phrase.Duration(block.DefaultCacheFor),
		Set: func(o *CounterOptions, text string) (err error) {
			if o.Sequence.CacheFor, err = parseDuration(text); err == nil && o.Sequence.CacheFor < time.Millisecond {
				return fmt.Errorf("%q: it is 1ms at least", text)
			}
			return err
		},
	},
	{
		Name: "max-unused", Kinds: counted, Standard: strconv.Itoa(block.DefaultMaxUnused),
		Set: func(o *CounterOptions, text string) error {
			n, err := parseCount(text)
			o.Sequence.MaxUnused = n
			return err
		},
	},
	{
		Name: "on-lossy-store", Kinds: dense, Value: "may-repeat", Standard: "refuse",
		Usage: "may-repeat: accept a store that can lose writes, where numbers may repeat; each program that draws has to say so",
		Set: func(o *CounterOptions, text string) error {
			if text != "may-repeat" {
				return fmt.Errorf("%q: it can only be may-repeat", text)
			}
			o.Sequence.MayRepeat, o.Document.MayRepeat = true, true
			return nil
		},
	},
}

// Other names of keys: what people know them as.
var seriesSynonyms = map[string]string{
	"start": "it is first", "min": "it is first", "minvalue": "it is first", "maxvalue": "it is max", "step": "it is cache", "block": "it is cache", "lasts": "it is cache-for", "waste": "it is max-unused", "lossy": "it is on-lossy-store",
	"timezone": "it is zone", "prefix": "it stands in pattern, or in public", "type": "it is kind", "layout": "it is the pool's",
	"cycle": "to begin again would repeat every number; a series ends at max", "store": "it is the config's; a sequence over several has stores",
}

// keysOf are the names of all keys of a kind.
func keysOf(kind string) []string {
	names := []string{"kind"}
	switch kind {
	case Flake:
		names = append(names, "pool", "shard", "public", "answers")
	case Sequence:
		names = append(names, "stores", "public", "answers")
	case Document:
		names = append(names, "public", "answers")
	}
	for _, k := range CounterKeys {
		if k.Of(kind) {
			names = append(names, k.Name)
		}
	}
	return names
}

// kindsOf are the kinds that have a key.
func kindsOf(key string) []string {
	var of []string
	for _, kind := range Kinds {
		if slices.Contains(keysOf(kind), key) {
			of = append(of, kind)
		}
	}
	return of
}

// checkKind explains what is wrong with a kind.
func checkKind(kind string) error {
	if slices.Contains(Kinds, kind) {
		return nil
	}
	if kind == "ticket" {
		return errors.New("there is no kind ticket: it is a sequence over several stores; in firn.yaml: kind: sequence, stores: [URL, URL]")
	}
	if best := nearest.Name(kind, Kinds); best != "" {
		return fmt.Errorf("there is no kind %q; is it %s?", kind, best)
	}
	return fmt.Errorf("there is no kind %q; there are %s", kind, strings.Join(Kinds, ", "))
}

// check returns what the series itself would say of its options: one error for
// each, with the option it is about, if it is about one.
func (o *CounterOptions) check(name, kind string) []optionFault {
	var err error
	if kind == Document {
		err = o.Document.Check(name)
	} else {
		err = o.Sequence.Check(name)
	}
	var all []optionFault
	for _, err := range parts(err) {
		f := optionFault{text: phrase.WithoutPackage(err.Error())}
		var ofSequence *sequence.OptionError
		var ofDocument *document.OptionError
		switch {
		case errors.As(err, &ofSequence):
			f.option = ofSequence.Option
		case errors.As(err, &ofDocument):
			f.option = ofDocument.Option
			if ofDocument.Err != nil {
				errors.As(ofDocument.Err, &f.syntax)
			}
		}
		all = append(all, f)
	}
	return all
}

// An optionFault is one thing that is wrong with a series.
type optionFault struct {
	option string // its key; empty: none
	text   string
	syntax *firn.SyntaxError // of a pattern; else nil
}

func setOrder(o *CounterOptions, text string) error {
	switch text {
	case "free", "strict":
		o.Sequence.Strict = text == "strict"
		return nil
	}
	return fmt.Errorf("%q is neither free nor strict", text)
}

func setCache(o *CounterOptions, text string) error {
	n, err := parseCount(text)
	o.Sequence.Cache, o.Document.Cache = n, int64(n)
	return err
}

// parseCount reads how many numbers are taken at a time.
func parseCount(text string) (int, error) {
	n, err := ParsePositive(text)
	if err == nil && n > block.MaxCache {
		return 0, fmt.Errorf("%q: it is at most %d", text, block.MaxCache)
	}
	return int(n), err
}

func positiveID(field func(*CounterOptions) *firn.ID) func(*CounterOptions, string) error {
	return func(o *CounterOptions, text string) error {
		n, err := ParsePositive(text)
		*field(o) = firn.ID(n)
		return err
	}
}

// standardOf is what a key of a series of that kind is where nobody says.
func standardOf(k *Key[CounterOptions], kind string) string {
	if k.Name == "cache" && kind == Document {
		return "1"
	}
	return k.Standard
}

// SeriesNameRule says which names [IsSeriesName] takes.
const SeriesNameRule = "a name has up to 64 of A-Z, a-z, 0-9, '_', '.', '-', ':', and begins with a letter or digit"

// IsSeriesName reports whether a text can be the name of a series, by the server's
// rule: what INCR can draw from has a name everywhere.
func IsSeriesName(text string) bool { return server.CheckName(text) == nil }

// isTemplate reports whether a text can be the name of a template of documents: a name that ends with
// one of '_', '.', '-', ':' and a star, such as bill:*.
func isTemplate(text string) bool {
	return template.Is(text) && IsSeriesName(template.Prefix(text)+"0")
}
