package document

import (
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/dated"
)

// A dateForm is a way to write a date. Its name is as long as what it writes.
type dateForm struct {
	name   string
	format string // for package time
	most   string // the greatest digit at each place
}

var dateForms = []dateForm{
	{"yyyyMMdd", "20060102", "99991939"},
	{"yyyyMM", "200601", "999919"},
	{"yyyy", "2006", "9999"},
	{"yyDDD", "06002", "99399"},
}

// exists reports whether text is a date in this form.
func (f *dateForm) exists(text string) bool {
	_, ok := f.read(text)
	return ok
}

// read returns the first day that a text stands for, and whether it is a date in this form.
func (f *dateForm) read(text string) (day time.Time, ok bool) {
	format := f.format
	if f.name == "yyDDD" {
		// Package time takes 69 to 99 for the last century.
		text, format = "20"+text, "2006002"
	}
	day, err := time.Parse(format, text)
	return day, err == nil && day.Year() >= 1000 && day.Format(format) == text
}

// next returns the first day of the date after the one that begins with day.
func (f *dateForm) next(day time.Time) time.Time {
	switch f.name {
	case "yyyy":
		return day.AddDate(1, 0, 0)
	case "yyyyMM":
		return day.AddDate(0, 1, 0)
	}
	return day.AddDate(0, 0, 1)
}

// loadZone finds a time zone by its name.
func loadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("zone Local differs from host to host; it is a name such as Asia/Ho_Chi_Minh, or UTC")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone %q: %s; it is an IANA name such as Asia/Ho_Chi_Minh, or UTC", name, strings.TrimPrefix(err.Error(), "time: "))
	}
	return zone, nil
}

// period is the date of an instant as the texts have it; "" without a date.
func (r *rules) period(t time.Time) string {
	if r.pattern.date == nil {
		return ""
	}
	return t.In(r.zone).Format(r.pattern.date.format)
}

// nextAt is when the period after this one begins; zero without a date. Midnight may be missing in a
// zone, as where daylight saving begins, and so may a whole day.
func (r *rules) nextAt(period string) time.Time {
	if r.pattern.date == nil {
		return time.Time{}
	}
	day, ok := r.pattern.date.read(period)
	if !ok {
		return time.Time{}
	}
	day = r.pattern.date.next(day)
	at := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, r.zone)
	for r.period(at) == period {
		at = at.Add(time.Minute)
	}
	return at
}

// today is the date of an instant that the store's clock gave, in the zone of the options; of this
// host's clock where the store has none.
func (o *Options) today(name string, read time.Time) (string, error) {
	r, err := o.rules(name)
	if err != nil {
		return "", err
	}
	if read.IsZero() {
		read = time.Now()
	}
	return r.period(read), nil
}

// west is the zone where each date ends last.
var west = time.FixedZone("", -12*60*60)

// earliestToday is today's date for a series whose definition was read at an instant of the store's clock.
// Where this host does not have the zone it is the earliest date that is today anywhere, so that
// no later date is taken for a past one; and "" where the pattern cannot be read.
func earliestToday(name string, def dated.Definition, read time.Time) string {
	today, err := (&Options{Pattern: def.Pattern, Zone: def.Zone}).today(name, read)
	if err == nil {
		return today
	}
	p, err := ParsePattern(def.Pattern)
	if err != nil {
		return ""
	}
	if read.IsZero() {
		read = time.Now()
	}
	r := rules{pattern: p, zone: west}
	return r.period(read)
}

// isPeriod reports whether a text is a period that texts can have: a clock may
// say that it is the year 10000.
func (r *rules) isPeriod(s string) bool {
	return r.pattern.date == nil && s == "" || r.pattern.date != nil && r.pattern.date.exists(s)
}

// skew is how far the clocks of a store's servers may differ.
const skew = 5 * time.Second

// east is the zone where each date begins first: the store may have forgotten, too,
// that the series had another zone, and what was counted there.
var east = time.FixedZone("", 14*60*60)

// through is the latest period that has begun in any zone.
func (r rules) through(now time.Time) string {
	r.zone = east
	return r.period(now.Add(skew))
}
