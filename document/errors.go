package document

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/template"
)

// An ExistsError says that a series cannot be created because it is there.
type ExistsError struct{ Info Info }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("document: series %q exists already, with pattern %s", e.Info.Name, e.Info.Pattern)
}

// Retryable is false; see firn.Retryable.
func (*ExistsError) Retryable() bool { return false }

// A LostError says that a series is not created, because the store may have lost a series of this
// name, whose texts would be given out again: the store was recovered, or pool.Ensure created a
// pool there. Set Options.After to the
// last text that was given out, or Options.New where no series of this name ever existed.
type LostError struct{ Series string }

func (e *LostError) Error() string {
	return fmt.Sprintf("document: the store may have lost a series %q, because it was recovered or a pool was created there by Ensure: say which text was the last (After), or that there never was one (New)", e.Series)
}

// Retryable is false; see firn.Retryable.
func (*LostError) Retryable() bool { return false }

// An AfterError says that a series is not created, because the date of Options.After is later than
// today's. The counters of today and of all other dates before it would begin at 1, and repeat
// their texts. Set Options.After to the last text of today or of an earlier date, and raise the
// later date by [Raise].
type AfterError struct {
	Series string
	After  string
	Period string // the date of After
	Today  string // in the zone of the series, by the store's clock
}

func (e *AfterError) Error() string {
	return fmt.Sprintf("document: series %q cannot begin after %s: its date %s is later than today's, which is %s, and the numbers of %[4]s and of all other dates before %[3]s would begin at 1 and repeat",
		e.Series, e.After, e.Period, e.Today)
}

// Retryable is false; see firn.Retryable.
func (*AfterError) Retryable() bool { return false }

// A MissingError says that the store has no series of that name: the name is mistyped, or
// there never was one, or the store has lost it.
type MissingError struct {
	Series    string
	Template  string   // the template that Series is a new name of, where the store has it: [Open] or [Raise] begins the name
	Names     []string // those that the store has; nil where nobody has looked
	Nearest   string   // that one of them which was probably meant; "" if none is like it
	MayBeLost bool     // the store was recovered, or pool.Ensure created a pool there: [Create] wants Options.New of a series that never existed
}

func (e *MissingError) Error() string {
	if e.Template != "" {
		return e.Reason() + "; Open and Raise begin it"
	}
	if e.Names == nil {
		return e.Reason()
	}
	create, last, flag := "firn series create "+shellWord(e.Series)+" --pattern PATTERN", "the last one given out", ""
	if template.Is(e.Series) {
		last = "the one with the highest count that any name gave out"
	}
	if e.MayBeLost {
		flag = " --new"
	}
	return fmt.Sprintf("%s%sif it existed, or the store was restored or lost: %s --after TEXT --store URL, with PATTERN that of its programs (and --zone ZONE, if it has a date) and TEXT %s; only if it never existed: %s%s --store URL",
		e.Reason(), otherStore(e.Nearest, len(e.Names)), create, last, create, flag)
}

// otherStore leads to what to do about a series that is missing: the likelier causes come first.
func otherStore(nearest string, names int) string {
	switch {
	case nearest != "":
		return " Otherwise, "
	case names == 0:
		return ": if your other programs use another store, open that one; "
	}
	return ": "
}

// shellWord quotes the name of a template for a shell.
func shellWord(name string) string {
	if template.Is(name) {
		return quoted(name)
	}
	return name
}

// quoted quotes a text for a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Reason is Error without what to do next.
func (e *MissingError) Reason() string {
	text := fmt.Sprintf("document: the store has no series %q", e.Series)
	if e.Template != "" {
		return text + fmt.Sprintf(", which would be a name of the template %s", e.Template)
	}
	if e.Nearest != "" {
		return text + fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	return text
}

// Retryable is false; see firn.Retryable.
func (*MissingError) Retryable() bool { return false }

// An EndError says that a period has not as many numbers left that fit the pattern
// as a call asks for. Nothing was used up by asking. With a date the same call succeeds in the next
// period, which begins at NextAt; "firn series set" gives the counter more digits.
type EndError struct {
	Series, Pattern string
	Period          string // "" where there are none
	Max             int64  // the last count there is room for
	Left            int64  // how many are left; 0: the period is used up

	// NextAt is when the next period begins, by the store's clock; zero without a date, and where no
	// period has room for as many numbers as the call asks for.
	NextAt time.Time
}

func (e *EndError) Error() string {
	in := ""
	if e.Period != "" {
		in = " of " + e.Period
	}
	if e.Left > 0 {
		return fmt.Sprintf("document: series %q has only %s left%s, not enough for this call: %s has room for %d", e.Series, counted(e.Left), in, e.Pattern, e.Max)
	}
	return fmt.Sprintf("document: series %q is used up: %s has room for %s%s", e.Series, e.Pattern, counted(e.Max), in)
}

// Retryable is false: NextAt may be months ahead; see firn.Retryable.
func (*EndError) Retryable() bool { return false }

// A DefinitionError says that the series has another pattern or zone in the
// store. Other texts under the same counters could repeat, and two zones give
// one instant two dates.
type DefinitionError struct {
	Series                string
	HavePattern, HaveZone string // in the store
	WantPattern, WantZone string // here
}

func (e *DefinitionError) Error() string {
	text := e.Reason() + ": leave Pattern and Zone out of the options to use the store's"
	if only, wider := e.OnlyWidth(); !only || wider {
		return text + ", or give other texts a series of another name"
	}
	set := ""
	if e.HavePattern != e.WantPattern {
		set += " --pattern " + quoted(e.WantPattern)
	}
	if e.HaveZone != e.WantZone {
		set += " --zone " + e.WantZone
	}
	return text + "; or, to change the series for all programs: firn series set " + shellWord(e.Series) + set + " --store URL"
}

// Reason is Error without what to do next.
func (e *DefinitionError) Reason() string {
	var differ []string
	if e.HavePattern != e.WantPattern {
		differ = append(differ, fmt.Sprintf("pattern %s, not %s", e.HavePattern, e.WantPattern))
	}
	if e.HaveZone != e.WantZone {
		differ = append(differ, fmt.Sprintf("zone %s, not %s", zoneName(e.HaveZone), zoneName(e.WantZone)))
	}
	return fmt.Sprintf("document: series %q has %s", e.Series, strings.Join(differ, " and "))
}

// Retryable is false; see firn.Retryable.
func (*DefinitionError) Retryable() bool { return false }

// OnlyWidth reports whether the patterns differ in nothing but the width of the counter, or
// not at all, so that one can be changed to the other; and whether the store has the wider one.
func (e *DefinitionError) OnlyWidth() (only, wider bool) {
	have, err := ParsePattern(e.HavePattern)
	want, err2 := ParsePattern(e.WantPattern)
	if err != nil || err2 != nil {
		return false, false
	}
	return have.differs(want) == "", have.max > want.max
}

func zoneName(zone string) string {
	if zone == "" {
		return "none"
	}
	return zone
}

// A LossyError says that the store may lose a write that it acknowledged, so that
// numbers could repeat, and nobody accepted that.
type LossyError struct {
	Series string
	Why    string // what was seen of the store
}

func (e *LossyError) Error() string {
	return fmt.Sprintf("document: series %q is refused: the store is lossy: it can lose a write that it acknowledged (%s), "+
		"and a counter that was set back gives out its numbers again", e.Series, e.Why)
}

// Retryable is false; see firn.Retryable.
func (*LossyError) Retryable() bool { return false }

// An InstanceError says that a store that is lossy, or was when the series was begun, is not
// the one that the series was begun with, or may have gone back: another server was promoted, or
// it was started again. Or the store became lossy after the series was begun. Nothing is given out until "firn store recover" has
// raised the counters.
type InstanceError struct {
	Series     string
	Have, Want string
}

func (e *InstanceError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("document: series %q has stopped: it was created while the store could not lose writes; the store can now, so it may have forgotten the last numbers (it is %q now)",
			e.Series, e.Have)
	}
	return fmt.Sprintf("document: series %q has stopped: the store can lose writes and was restarted or replaced, so it may have forgotten the last numbers (it is %q now, and was %q)",
		e.Series, e.Have, e.Want)
}

// Retryable is false; see firn.Retryable.
func (*InstanceError) Retryable() bool { return false }

// explain is an error of package dated as this package has it.
func (r *rules) explain(err error) error {
	var no *dated.Refusal
	if !errors.As(err, &no) {
		return err
	}
	switch no.Why {
	case dated.Ended:
		return &EndError{Series: r.Name, Pattern: r.pattern.text, Period: no.Period, Max: r.Max, Left: no.Left, NextAt: no.NextAt}
	case dated.WrongClock:
		return &ClockError{r.Name, no.Period}
	case dated.Lossy:
		return &LossyError{r.Name, no.Have}
	}
	return &InstanceError{r.Name, no.Have, no.Want}
}

// A ClockError says that the clock which gives the date is at a year that texts
// cannot have, or goes to and fro.
type ClockError struct {
	Series, Period string
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("document: series %q: the store's clock gives the date %q", e.Series, e.Period)
}

// counted counts numbers in words.
func counted(n int64) string {
	if n == 1 {
		return "1 number"
	}
	return fmt.Sprintf("%d numbers", n)
}
