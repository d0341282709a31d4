package dated

import (
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/record"
)

// A Form is a way to write a date.
type Form struct {
	Name   string // as long as what it writes
	Most   string // the greatest digit at each place
	format string // for package time
}

// Forms are all there are.
var Forms = []Form{
	{"yyyyMMdd", "99991939", "20060102"},
	{"yyyyMM", "999919", "200601"},
	{"yyyy", "9999", "2006"},
	{"yyDDD", "99399", "06002"},
}

// Exists reports whether text is a date in this form.
func (f *Form) Exists(text string) bool {
	_, ok := f.read(text)
	return ok
}

// read returns the first day that a text stands for, and whether it is a date in this form.
func (f *Form) read(text string) (day time.Time, ok bool) {
	format := f.format
	if f.Name == "yyDDD" {
		// Package time takes 69 to 99 for the last century.
		text, format = "20"+text, "2006002"
	}
	day, err := time.Parse(format, text)
	return day, err == nil && day.Year() >= 1000 && day.Format(format) == text
}

// next returns the first day of the date after the one that begins with day.
func (f *Form) next(day time.Time) time.Time {
	switch f.Name {
	case "yyyy":
		return day.AddDate(1, 0, 0)
	case "yyyyMM":
		return day.AddDate(0, 1, 0)
	}
	return day.AddDate(0, 0, 1)
}

// Rules are what a process is told about a series.
type Rules struct {
	Name  string
	Date  *Form          // how texts have the date; nil: they have none
	Zone  *time.Location // of the date
	Max   int64          // the last count that a period has room for
	Step  int64          // counts granted by one write, at least
	Lossy bool           // use the series also on a store that can forget
}

// Period is the date of an instant as the texts have it; "" without a date.
func (r *Rules) Period(t time.Time) string {
	if r.Date == nil {
		return ""
	}
	return t.In(r.Zone).Format(r.Date.format)
}

// NextAt is when the period after this one begins; zero without a date. Midnight may be missing in a
// zone, as where daylight saving begins, and so may a whole day.
func (r *Rules) NextAt(period string) time.Time {
	if r.Date == nil {
		return time.Time{}
	}
	day, ok := r.Date.read(period)
	if !ok {
		return time.Time{}
	}
	day = r.Date.next(day)
	at := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, r.Zone)
	for r.Period(at) == period {
		at = at.Add(time.Minute)
	}
	return at
}

// isPeriod reports whether a text is a period that texts can have: a clock may
// say that it is the year 10000.
func (r *Rules) isPeriod(s string) bool {
	return r.Date == nil && s == "" || r.Date != nil && r.Date.Exists(s)
}

// skew is how far two clocks may differ, each of which is right within 5 s: those of a store's servers, or
// those of two hosts where the store has none.
const skew = 10 * time.Second

// east is the zone where each date begins first: the store may have forgotten, too,
// that the series had another zone, and what was counted there.
var east = time.FixedZone("", 14*60*60)

// Through is the latest period that has begun in any zone.
func (r Rules) Through(now time.Time) string {
	r.Zone = east
	return r.Period(now.Add(skew))
}

// CheckOther compares what the store says of itself with what the definition of a series says. Its
// error is a [*store.OtherStoreError].
func CheckOther(name, have, want string) error {
	return record.CheckOther(fmt.Sprintf("document %q", name), have, want)
}
