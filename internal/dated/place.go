package dated

import (
	"cmp"
	"strings"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/store"
)

// Keys of the records. A document is one definition and its counters. A template is one definition, and
// for each name of it a record and counters: these have prefixes of their own, because servers read all
// of the definitions every few seconds.
//
//	serial/invoice              definition
//	serial/invoice/20261120     counter
//	serial/bill:*               definition of a template
//	names/bill:*                how many names it has
//	names/bill:*/42             says that bill:42 is one of them
//	name/bill:*/42/20261120     counter of bill:42
const (
	Keys     = "serial/" // prefix of definitions, and of the counters of documents that are no names
	NameKeys = "name/"   // prefix of the counters of names
	Listed   = "names/"  // prefix of the records of names
	Whole    = "all"     // the counter of a series without a date
)

// MaxName is the length of a series' name at most, so that every key fits. A name of a template fits too:
// its keys have a star and a slash more, and a prefix that is two bytes shorter.
const MaxName = store.MaxKey - len(Keys) - len("/-123456789-12-31")

// A Place says which records of a store are those of a series.
type Place struct {
	Name     string
	Template string // that Name is a name of; "": Name has a definition of its own
}

// Definition is the key of the definition.
func (p Place) Definition() string { return Keys + p.Defined() }

// Defined is the name that the definition has.
func (p Place) Defined() string { return cmp.Or(p.Template, p.Name) }

// rest is what a name has behind the prefix of its template.
func (p Place) rest() string { return strings.TrimPrefix(p.Name, template.Prefix(p.Template)) }

// Counters is the prefix of the keys of the counters.
func (p Place) Counters() string {
	if p.Template == "" {
		return Keys + p.Name + "/"
	}
	return CountersOf(p.Template) + p.rest() + "/"
}

// Counter is the key of the counter of a date; "" where the pattern has none.
func (p Place) Counter(period string) string { return p.Counters() + cmp.Or(period, Whole) }

// Record is the key of the record of a name.
func (p Place) Record() string { return NamesOf(p.Template) + p.rest() }

// CountersOf is the prefix of the keys of all counters of a template, and NamesOf that of the records of its names.
func CountersOf(template string) string { return NameKeys + template + "/" }
func NamesOf(template string) string    { return Listed + template + "/" }

// KeyCount is the key of the record that says how many names a template has.
func KeyCount(template string) string { return Listed + template }

// Split returns whose counter of which period has a key; false: the key is not that of a counter.
func Split(key string) (p Place, period string, ok bool) {
	rest, ofName := strings.CutPrefix(key, NameKeys)
	if ofName {
		if p.Template, rest, ok = strings.Cut(rest, "/"); !ok {
			return Place{}, "", false
		}
	} else if rest, ok = strings.CutPrefix(key, Keys); !ok {
		return Place{}, "", false
	}
	if p.Name, period, ok = strings.Cut(rest, "/"); !ok {
		return Place{}, "", false
	}
	if ofName {
		p.Name = template.Prefix(p.Template) + p.Name
	}
	if period == Whole {
		period = ""
	}
	return p, period, true
}

// A NameRecord says that a template has a name, or how many.
type NameRecord struct {
	V     int `json:"v"`
	Names int `json:"names,omitempty"`
}

func (n NameRecord) Version() int { return n.V }

// Fault says what of the record cannot be; "" if nothing.
func (n NameRecord) Fault() string {
	if n.Names < 0 {
		return "has a negative number of names"
	}
	return ""
}

// Check reports whether a record is one of this package, and returns the error of a record
// that cannot be read. A definition it returns, since it does not know patterns.
func Check(rec store.Record) (ours bool, def *Definition, err error) {
	if _, _, ok := Split(rec.Key); ok {
		_, err = ReadCounter(rec)
		return true, nil, err
	}
	if strings.HasPrefix(rec.Key, Listed) {
		_, err = record.Read[NameRecord](rec)
		return true, nil, err
	}
	if !strings.HasPrefix(rec.Key, Keys) {
		return false, nil, nil
	}
	read, err := record.Read[Definition](rec)
	return true, &read, err
}
