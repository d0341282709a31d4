package document

import (
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/dated"
)

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
	return r.Period(read), nil
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
	r := dated.Rules{Date: p.date, Zone: west}
	return r.Period(read)
}
