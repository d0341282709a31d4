package document

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/dated"
)

// A datePart is what stands in braces of a date: all of it, or the hour behind it. The period of a
// text is the digits of its dateParts, one behind the other, without what separates them: 2026112013
// for {yyyy-MM-dd} and {HH}.
type datePart struct {
	text  string // yyyy-MM-dd
	units string // yyyyMMdd
	from  int    // where its digits begin in the period
}

// dateUnits are the units of dates, with the greatest digit at each place. A unit comes before those
// that it begins with.
var dateUnits = []struct{ name, most string }{
	{"yyyy", "9999"}, {"yy", "99"}, {"MM", "19"}, {"dd", "39"}, {"DDD", "399"}, {"HH", "29"},
}

// separators are what may stand between two units.
const separators = "-/._ "

const hourUnit = "HH"

// parseDate reads what stands in braces as a date or an hour; nil: it is neither.
func parseDate(text string) *datePart {
	d, rest := &datePart{text: text}, text
	for rest != "" {
		before := rest
		for _, u := range dateUnits {
			if after, ok := strings.CutPrefix(rest, u.name); ok {
				d.units, rest = d.units+u.name, after
				break
			}
		}
		if rest == before {
			return nil
		}
		if len(rest) > 1 && strings.IndexByte(separators, rest[0]) >= 0 {
			rest = rest[1:]
		}
	}
	return d
}

// placeDate takes a date into the pattern, or the hour of one, and says what keeps it from standing there.
func (p *Pattern) placeDate(d *datePart) string {
	switch form := dated.FormNamed(d.units); {
	case p.date != nil && d.units == hourUnit:
		d.from = len(p.date.Name)
		with := dated.FormNamed(p.date.Name + hourUnit)
		if with == nil {
			return fmt.Sprintf("{HH} comes once, behind a date with a day and no hour, and that is {%s}: else the texts of an hour would come up again", p.date.Name)
		}
		p.date = with
		return ""
	case p.date != nil:
		return "there is a date already"
	case d.units == hourUnit:
		return "{HH} comes behind a date: without one the texts of an hour would come up again each day"
	case form == nil && !strings.HasPrefix(d.units, "yy"):
		return fmt.Sprintf("a date begins with the year, yyyy or yy: without it the texts of {%s} would come up again", d.text)
	case form == nil:
		return fmt.Sprintf("{%s} is no date: behind the year come MM, MMdd, MMddHH or DDD", d.text)
	default:
		p.date = form
		return ""
	}
}

// append appends what a period has for it.
func (d *datePart) append(dst []byte, period string) []byte {
	at := d.from
	for i := range len(d.text) {
		if strings.IndexByte(separators, d.text[i]) >= 0 {
			dst = append(dst, d.text[i])
			continue
		}
		if at < len(period) {
			dst = append(dst, period[at])
		}
		at++
	}
	return dst
}

// digits returns what a text of it adds to the period, and whether there is such a date or hour.
func (d *datePart) digits(text string) (string, bool) {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(separators, d.text[i]) < 0 {
			b.WriteByte(text[i])
		} else if text[i] != d.text[i] {
			return "", false
		}
	}
	digits := b.String()
	if d.units == hourUnit {
		return digits, "00" <= digits && digits <= "23" && strings.Trim(digits, "0123456789") == ""
	}
	return digits, dated.FormNamed(d.units).Exists(digits)
}

// places are the greatest digit at each place, and what separates them.
func (d *datePart) places() []place {
	var all []place
	for rest := d.text; rest != ""; {
		if strings.IndexByte(separators, rest[0]) >= 0 {
			all, rest = append(all, place{least: rest[0], most: rest[0]}), rest[1:]
			continue
		}
		for _, u := range dateUnits {
			if after, ok := strings.CutPrefix(rest, u.name); ok {
				for _, c := range []byte(u.most) {
					all = append(all, place{least: '0', most: c})
				}
				rest = after
				break
			}
		}
	}
	return all
}

// Unit is what the counter begins again with: "date" or "hour"; "" where the texts have no date.
func (p *Pattern) Unit() string {
	switch {
	case p.date == nil:
		return ""
	case strings.HasSuffix(p.date.Name, hourUnit):
		return "hour"
	}
	return "date"
}
