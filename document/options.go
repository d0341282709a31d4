package document

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/template"
)

// Options of a series. Nil, or a zero field, means the default.
type Options struct {
	// Pattern says how the texts are made: see [ParsePattern]. Zero means the pattern that
	// the store has; [Create] needs one.
	Pattern string

	// Zone is the time zone of the date, by its IANA name, such as Asia/Ho_Chi_Minh. It is
	// needed together with a Pattern that has a date, and only then. Zero without a Pattern
	// means the zone that the store has. A program for systems without time zones imports
	// time/tzdata.
	Zone string

	// Cache is how many counts one write grants to this process. Zero means 1. More are fewer
	// writes, and gaps: counts in hand are lost when the process is killed, or when the date
	// changes.
	Cache int64

	// MayRepeat accepts a store that can lose a write that it acknowledged. Texts are then
	// unique at best effort: the series notices a write that is lost with a server by the
	// name of the server that answers instead, and stops, but may not notice before.
	// [Create] and each process that opens the series has to say so.
	MayRepeat bool

	// New claims that no series of this name ever existed. [Create] needs the claim, or After,
	// on a store that may have lost the series: it was recovered, or pool.Ensure created a pool there.
	New bool

	// After is the last text of today, or of the latest earlier date, that was given out. The
	// counter of its date begins above it where [Create] creates the series, and the counters of
	// all other dates begin at 1. So a text of a later date is refused: [Raise] continues that date.
	// Of a template it is the text with the highest count that any name of it gave out: each name
	// begins above that count in each date up to today's.
	After string

	// Template is the template that the series is a name of: bill:* of bill:42. All names of a
	// template have one pattern and zone, and each has counters of its own, so texts are unique
	// within a name. A template is created once, by [Create]; [Open] with Template begins a
	// name of it that is new. Zero means that the series is no name of a template.
	Template string

	// Names is how many names a template has at most, 1 to 100,000. [Create] and [Widen] write it
	// down, and nothing removes a name. Zero means 1000.
	Names int

	// MayEqual names series of this store whose texts may equal this one's, because the texts
	// of both never meet. It is written down when the series is created.
	MayEqual []string

	// Logger gets warnings. Nil means slog.Default().
	Logger *slog.Logger
}

// An OptionError says which option cannot be, and why. It may be one of several
// in what Open returns.
type OptionError struct {
	Option string // in lower case; "series" is the series' name
	Reason string // begins with the option
	Err    error  // a [*firn.SyntaxError] of the pattern
}

func (e *OptionError) Error() string { return "document: " + e.Reason }

// Retryable is false; see firn.Retryable.
func (*OptionError) Retryable() bool { return false }
func (e *OptionError) Unwrap() error { return e.Err }

// Check returns everything that is wrong with the options and the series' name: nil, or
// [*OptionError]s joined. Open and Create begin with it.
func (o *Options) Check(name string) error {
	var c Options
	if o != nil {
		c = *o
	}
	_, err := c.rules(name)
	return err
}

// rules are what a process is told about a series, and how its texts are made.
type rules struct {
	dated.Rules
	pattern *Pattern // nil: the options have none
}

// rules are what the options say.
func (o *Options) rules(name string) (rules, error) {
	r := rules{Rules: dated.Rules{Place: dated.Place{Name: name, Template: o.Template}, Step: max(o.Cache, 1), Lossy: o.MayRepeat}}
	var errs []error
	bad := func(option string, err error, format string, args ...any) {
		errs = append(errs, &OptionError{option, fmt.Sprintf(format, args...), err})
	}
	if reason := record.CheckName("series", name, dated.MaxName); reason != "" {
		bad("series", nil, "%s", reason)
	}
	if o.Template != "" && !template.Has(o.Template, name) {
		bad("template", nil, "template %q: it does not have the name %q: the template bill:* has names such as bill:42", o.Template, name)
	}
	if o.Names < 0 || o.Names > dated.MaxNames {
		bad("names", nil, "names %d: there can be 1 to %d", o.Names, dated.MaxNames)
	}
	if o.Names > 0 && !template.Is(r.Defined()) {
		bad("names", nil, "names %d: series %s is no template, such as bill:*, and has no other names", o.Names, name)
	}
	if o.Cache < 0 || o.Cache > maxCache {
		bad("cache", nil, "cache %d: there can be 1 to %d", o.Cache, maxCache)
	}
	var err error
	if o.Zone != "" {
		if r.Zone, err = loadZone(o.Zone); err != nil {
			bad("zone", nil, "%s", err)
		}
	}
	if o.Pattern == "" {
		return r, errors.Join(errs...)
	}
	var wrong *firn.SyntaxError
	if r.pattern, err = ParsePattern(o.Pattern); errors.As(err, &wrong) {
		bad("pattern", wrong, "pattern %q: column %d: %s", o.Pattern, wrong.Offset+1, wrong.Reason)
		return r, errors.Join(errs...)
	}
	r.Date, r.Max = r.pattern.date, r.pattern.max
	switch {
	case r.pattern.HasDate() && o.Zone == "":
		bad("zone", nil, "zone: a date needs a time zone, such as Asia/Ho_Chi_Minh or UTC: which day it is differs")
	case !r.pattern.HasDate() && o.Zone != "":
		bad("zone", nil, "zone %s: the pattern %s has no date", o.Zone, o.Pattern)
	}
	return r, errors.Join(errs...)
}

// maxCache is far above what a period's texts are worth losing.
const maxCache = 1_000_000

// zoneName is the zone's IANA name, "" where there is none.
func (r *rules) zoneName() string {
	if r.Zone == nil {
		return ""
	}
	return r.Zone.String()
}

func checkName(name string) error {
	if wrong := record.CheckName("series", name, dated.MaxName); wrong != "" {
		return &OptionError{"series", wrong, nil}
	}
	return nil
}
