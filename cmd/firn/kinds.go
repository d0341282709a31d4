package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
)

// The kinds of series.
const (
	kindFlake   = "flake"   // ids with a time, from a leased worker
	kindSegment = "segment" // dense numbers, reserved in blocks
	kindTicket  = "ticket"  // the same over several stores
	kindSerial  = "serial"  // texts: prefix, date, counter
)

var kinds = []string{kindFlake, kindSegment, kindTicket, kindSerial}

// seriesOptions are the options of a series that is no flake.
type seriesOptions struct {
	segment sequence.Options // of a ticket, too
	serial  document.Options
}

// A seriesKey is an option of a series: a key of firn.yaml and, for some, a flag
// of the commands that open a series, and a FIRN_ variable, of the same name.
type seriesKey struct {
	name  string
	kinds []string
	flag  string // what its value is called in help; empty: it is none
	usage string // of the flag
	set   func(o *seriesOptions, text string) error
	// standard is what it is where nobody says.
	standard func(kind string) string
}

var (
	counted = []string{kindSegment, kindTicket}
	dense   = []string{kindSegment, kindTicket, kindSerial}
)

func always(text string) func(string) string { return func(string) string { return text } }

var seriesKeys = []seriesKey{
	{
		name: "pattern", kinds: []string{kindSerial}, flag: "PATTERN", standard: always("none"),
		usage: "of a serial: text with {6} or {1+}, {yyyyMMdd}, {luhn}; docs/serials.md",
		set:   func(o *seriesOptions, text string) error { o.serial.Pattern = text; return nil },
	},
	{
		name: "zone", kinds: []string{kindSerial}, flag: "ZONE", standard: always("none"),
		usage: "of a serial with a date: the time zone, such as Asia/Ho_Chi_Minh",
		set:   func(o *seriesOptions, text string) error { o.serial.Zone = text; return nil },
	},
	{
		name: "first", kinds: counted, standard: always("1"),
		set: positiveID(func(o *seriesOptions) *firn.ID { return &o.segment.First }),
	},
	{
		name: "max", kinds: counted, standard: always("9223372036854775807"),
		set: positiveID(func(o *seriesOptions) *firn.ID { return &o.segment.Max }),
	},
	{
		name: "increment", kinds: counted, standard: always("1"),
		set: func(o *seriesOptions, text string) (err error) {
			o.segment.Increment, err = parsePositive(text)
			return err
		},
	},
	{
		name: "cache", kinds: dense, flag: "N", set: setCache,
		usage: "how many numbers to reserve by one write",
		standard: func(kind string) string {
			if kind == kindSerial {
				return "1"
			}
			return strconv.Itoa(block.DefaultCache)
		},
	},
	{name: "order", kinds: []string{kindSegment}, standard: always("free"), set: setOrder},
	{
		name: "cache-for", kinds: counted, standard: always(phrase.Duration(block.DefaultCacheFor)),
		set: func(o *seriesOptions, text string) (err error) {
			if o.segment.CacheFor, err = parseDuration(text); err == nil && o.segment.CacheFor < time.Millisecond {
				return fmt.Errorf("%q: it is 1ms at least", text)
			}
			return err
		},
	},
	{
		name: "max-unused", kinds: counted, standard: always(strconv.Itoa(block.DefaultMaxUnused)),
		set: func(o *seriesOptions, text string) error {
			n, err := parseCount(text)
			o.segment.MaxUnused = n
			return err
		},
	},
	{
		name: "on-lossy-store", kinds: dense, flag: "may-repeat", standard: always("refuse"),
		usage: "may-repeat: accept a store that can lose writes, where numbers may repeat",
		set: func(o *seriesOptions, text string) error {
			if text != "may-repeat" {
				return fmt.Errorf("%q: it can only be may-repeat", text)
			}
			o.segment.MayRepeat, o.serial.MayRepeat = true, true
			return nil
		},
	},
}

// Other names of keys: what people know them as.
var seriesSynonyms = map[string]string{
	"start": "it is first", "min": "it is first", "minvalue": "it is first", "maxvalue": "it is max", "step": "it is cache", "block": "it is cache", "lasts": "it is cache-for", "waste": "it is max-unused", "lossy": "it is on-lossy-store",
	"timezone": "it is zone", "prefix": "it stands in pattern, or in public", "type": "it is kind", "layout": "it is the pool's",
	"cycle": "to begin again would repeat every number; a series ends at max", "store": "it is the config's; a ticket has stores",
}

// seriesKeyNamed returns the key of that name, or nil.
func seriesKeyNamed(name string) *seriesKey {
	i := slices.IndexFunc(seriesKeys, func(k seriesKey) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	return &seriesKeys[i]
}

// of reports whether series of that kind have the key.
func (k *seriesKey) of(kind string) bool { return slices.Contains(k.kinds, kind) }

// flagName is the name of its flag; "" if it has none.
func (k *seriesKey) flagName() string {
	if k.flag == "" {
		return ""
	}
	return k.name
}

// keysOf are the names of all keys of a kind.
func keysOf(kind string) []string {
	names := []string{"kind"}
	switch kind {
	case kindFlake:
		names = append(names, "pool", "shard", "public", "answers")
	case kindTicket:
		names = append(names, "stores", "public", "answers")
	case kindSegment:
		names = append(names, "public", "answers")
	}
	for _, k := range seriesKeys {
		if k.of(kind) {
			names = append(names, k.name)
		}
	}
	return names
}

// kindsOf are the kinds that have a key.
func kindsOf(key string) []string {
	var of []string
	for _, kind := range kinds {
		if slices.Contains(keysOf(kind), key) {
			of = append(of, kind)
		}
	}
	return of
}

// A seriesFlag is a key of a series as a flag. It keeps the text, so that it can
// be said where each value is from.
type seriesFlag struct {
	*seriesKey
	text string
}

func (f *seriesFlag) String() string { return f.text }
func (f *seriesFlag) Type() string   { return f.flag }

func (f *seriesFlag) Set(text string) error {
	f.text = text
	return f.set(new(seriesOptions), text)
}

// addSeries adds the flags of series of the kinds besides flake.
func addSeries(cmd *cobra.Command, kinds ...string) {
	for i := range seriesKeys {
		k := &seriesKeys[i]
		if k.flag != "" && slices.ContainsFunc(kinds, k.of) {
			cmd.Flags().Var(&seriesFlag{seriesKey: k}, k.name, k.usage)
		}
	}
}

// checkKind explains what is wrong with a kind.
func checkKind(kind string) error {
	if slices.Contains(kinds, kind) {
		return nil
	}
	if best := nearest.Name(kind, kinds); best != "" {
		return fmt.Errorf("there is no kind %q; is it %s?", kind, best)
	}
	return fmt.Errorf("there is no kind %q; there are %s", kind, strings.Join(kinds, ", "))
}

// check returns what the series itself would say of its options: one error for
// each, with the option it is about, if it is about one.
func (o *seriesOptions) check(name, kind string) []optionFault {
	var err error
	if kind == kindSerial {
		err = o.serial.Check(name)
	} else {
		err = o.segment.Check(name)
	}
	var all []optionFault
	for _, err := range parts(err) {
		f := optionFault{text: ui.WithoutPackage(err.Error())}
		var ofSegment *sequence.OptionError
		var ofSerial *document.OptionError
		switch {
		case errors.As(err, &ofSegment):
			f.option = ofSegment.Option
		case errors.As(err, &ofSerial):
			f.option = ofSerial.Option
			if ofSerial.Err != nil {
				errors.As(ofSerial.Err, &f.syntax)
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

func setOrder(o *seriesOptions, text string) error {
	switch text {
	case "free", "strict":
		o.segment.Strict = text == "strict"
		return nil
	}
	return fmt.Errorf("%q is neither free nor strict", text)
}

func setCache(o *seriesOptions, text string) error {
	n, err := parseCount(text)
	o.segment.Cache, o.serial.Cache = n, int64(n)
	return err
}

// parseCount reads how many numbers are taken at a time.
func parseCount(text string) (int, error) {
	n, err := parsePositive(text)
	if err == nil && n > block.MaxCache {
		return 0, fmt.Errorf("%q: it is at most %d", text, block.MaxCache)
	}
	return int(n), err
}

// parsePositive reads a number from 1 on.
func parsePositive(text string) (int64, error) {
	n, err := parseNumber(text)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a number from 1 on", text)
	}
	return n, nil
}

func positiveID(field func(*seriesOptions) *firn.ID) func(*seriesOptions, string) error {
	return func(o *seriesOptions, text string) error {
		n, err := parsePositive(text)
		*field(o) = firn.ID(n)
		return err
	}
}
