package dated

import (
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/record"
)

// A Form is a way to write a period, a date or an hour of it, in digits.
type Form struct {
	Name   string // as long as what it writes
	format string // for package time
}

// Forms are all there are. In each, of two periods the later one has the greater text, but where the
// century is not written.
var Forms = []Form{
	{"yyyyMMdd", "20060102"},
	{"yyyyMM", "200601"},
	{"yyyy", "2006"},
	{"yyDDD", "06002"},
	{"yyMMdd", "060102"},
	{"yyMM", "0601"},
	{"yyyyMMddHH", "2006010215"},
	{"yyMMddHH", "06010215"},
	{"yyDDDHH", "0600215"},
}

// FormNamed returns the form with a name, or nil if no form has it.
func FormNamed(name string) *Form {
	for i := range Forms {
		if Forms[i].Name == name {
			return &Forms[i]
		}
	}
	return nil
}

// Exists reports whether text is a date in this form.
func (f *Form) Exists(text string) bool {
	_, ok := f.read(text)
	return ok
}

// read returns the first day or hour that a text stands for, as if in UTC, and whether it is a date in this form.
func (f *Form) read(text string) (day time.Time, ok bool) {
	format := f.format
	if !strings.HasPrefix(f.Name, "yyyy") {
		// Package time takes 69 to 99 for the last century.
		text, format = "20"+text, "20"+format
	}
	day, err := time.Parse(format, text)
	return day, err == nil && day.Year() >= 1000 && day.Format(format) == text
}

// next returns the first day or hour of the period after the one that begins with day.
func (f *Form) next(day time.Time) time.Time {
	switch {
	case f.hours():
		return day.Add(time.Hour)
	case f.Name == "yyyy":
		return day.AddDate(1, 0, 0)
	case strings.HasSuffix(f.Name, "MM"):
		return day.AddDate(0, 1, 0)
	}
	return day.AddDate(0, 0, 1)
}

// hours reports whether each hour is a period.
func (f *Form) hours() bool { return strings.HasSuffix(f.Name, "HH") }

// Shortest is less than the shortest period: of two instants that are so far apart, none has a
// whole period between them. Where daylight saving begins, half an hour of one can be missing.
func (r *Rules) Shortest() time.Duration {
	if r.Date != nil && r.Date.hours() {
		return 10 * time.Minute
	}
	return 12 * time.Hour
}

// Rules are what a process is told about a series.
type Rules struct {
	Place
	Date  *Form          // how texts have the date; nil: they have none
	Zone  *time.Location // of the date
	Max   int64          // the last count that a period has room for
	Step  int64          // counts granted by one write, at least
	Lossy bool           // use the series also on a lossy store
}

// Period is the date of an instant as the texts have it; "" without a date.
func (r *Rules) Period(t time.Time) string {
	if r.Date == nil {
		return ""
	}
	return t.In(r.Zone).Format(r.Date.format)
}

// NextAt is when the period after this one begins; zero without a date. Midnight may be missing in a
// zone, as where daylight saving begins, and so may a whole day or hour. An hour that comes twice is one
// period. Where another comes between, as in Antarctica/Troll, NextAt is the end of its first run.
func (r *Rules) NextAt(period string) time.Time {
	if r.Date == nil {
		return time.Time{}
	}
	day, ok := r.Date.read(period)
	if !ok {
		return time.Time{}
	}
	next := r.Date.next(day)
	at := time.Date(next.Year(), next.Month(), next.Day(), 0, 0, 0, 0, r.Zone)
	if r.Date.hours() { // package time does not say which run of an hour it takes
		at = time.Date(day.Year(), day.Month(), day.Day(), day.Hour(), 0, 0, 0, r.Zone).Add(-4 * time.Hour)
		for end := at.Add(8 * time.Hour); r.Period(at) != period && at.Before(end); {
			at = at.Add(time.Minute)
		}
	}
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

// Through is the latest period that has begun in any zone. Every text that was given out by a right
// clock has a period at most as late: the local time of a zone at an instant, in digits, is at most
// that of the zone furthest east at the same instant or a later one, and digits of one form sort as what
// they stand for. That is true of hours as of days, and whatever daylight saving does to a zone. So a
// recovery that raises all periods up to Through raises every counter that may have been lost; of
// hours also up to 26 that have not begun in the zone of the series, which then leave out numbers.
func (r Rules) Through(now time.Time) string {
	r.Zone = east
	return r.Period(now.Add(skew))
}

// CheckOther compares what the store says of itself with what the definition of a series says. Its
// error is a [*store.OtherStoreError].
func CheckOther(name, have, want string) error {
	return record.CheckOther(fmt.Sprintf("document %q", name), have, want)
}
