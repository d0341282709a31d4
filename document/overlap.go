package document

import (
	"context"
	"fmt"
	"slices"

	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/store"
)

// An OverlapError says that a new series could give out texts that another series of the
// store has given out: the patterns have the same fixed parts, or texts that can be equal.
// Options.MayEqual claims that this does no harm.
type OverlapError struct {
	Series, Pattern string   // the new series
	Others          []string // the series that the store has, by name
	OtherPattern    string   // of the first of them
}

func (e *OverlapError) Error() string {
	text := fmt.Sprintf("document: a new series %q with pattern %s could repeat texts of series %q, whose pattern is %s", e.Series, e.Pattern, e.Others[0], e.OtherPattern)
	if len(e.Others) > 1 {
		text += fmt.Sprintf(", and of %q", e.Others[1:])
	}
	return text
}

// Retryable is false; see firn.Retryable.
func (*OverlapError) Retryable() bool { return false }

// CheckNew returns an [*OverlapError] where the store has another series whose texts could equal
// those of a new one: [Create] and [Open] refuse to create it. Texts of templates are not compared: names of
// one template have equal texts, so a program keeps the name beside a text. It returns an [*OptionError] where a
// name could belong to the new series and to another one. It writes nothing. Two processes that create two
// such series at the same moment both succeed: this finds a series that was renamed or mistyped, not a race.
func CheckNew(ctx context.Context, st store.Store, name string, o *Options) error {
	p, err := ParsePattern(o.Pattern)
	if err != nil {
		return err
	}
	all, err := List(ctx, st)
	if err != nil {
		return err
	}
	if err := checkBelongs(name, all); err != nil || template.Is(name) {
		return err
	}
	var found *OverlapError
	for _, in := range all {
		q, err := ParsePattern(in.Pattern)
		switch {
		case in.Name == name || template.Is(in.Name) || slices.Contains(o.MayEqual, in.Name) || slices.Contains(in.MayEqual, name):
		case err != nil:
			return fmt.Errorf("document: series %q: %w", in.Name, err)
		case p.Overlaps(q):
			if found == nil {
				found = &OverlapError{Series: name, Pattern: o.Pattern, OtherPattern: in.Pattern}
			}
			found.Others = append(found.Others, in.Name)
		}
	}
	if found == nil {
		return nil
	}
	return found
}

// Overlaps reports whether some text could be one of both patterns. Because [Widen] can
// change the width of a counter, each counter counts as having any number of digits. A date
// counts as any digits that can stand there. Texts of digits only are numbers too, so zeros
// in front do not count where both patterns have digits only.
func (p *Pattern) Overlaps(q *Pattern) bool {
	zeros := p.ints && q.ints
	return meet(p.places(zeros), q.places(zeros))
}

// A place is where one byte of a text stands, or several of a kind.
type place struct {
	least, most byte // the byte is between them
	again       bool // any number of further bytes of the kind may follow
	optional    bool // there may be no byte at all
}

// places returns the places of a pattern's texts. With zeros any number of zeros may stand
// in front.
func (p *Pattern) places(zeros bool) []place {
	var all []place
	if zeros {
		all = append(all, place{'0', '0', true, true})
	}
	for _, q := range p.parts {
		switch {
		case q.width > 0:
			all = append(all, place{least: '0', most: '9', again: true})
		case q.date != nil:
			all = append(all, q.date.places()...)
		case q.check != nil:
			all = append(all, slices.Repeat([]place{{least: '0', most: '9'}}, q.check.width)...)
		default:
			for _, c := range []byte(q.literal) {
				all = append(all, place{least: c, most: c})
			}
		}
	}
	return all
}

// meet reports whether one text fits the places of both.
func meet(a, b []place) bool {
	type at struct{ a, b int }
	seen := map[at]bool{}
	next := []at{{}}
	for len(next) > 0 {
		now := next[len(next)-1]
		next = next[:len(next)-1]
		if seen[now] {
			continue
		}
		seen[now] = true
		if now.a == len(a) && now.b == len(b) {
			return true
		}
		if now.a < len(a) && a[now.a].optional {
			next = append(next, at{now.a + 1, now.b})
		}
		if now.b < len(b) && b[now.b].optional {
			next = append(next, at{now.a, now.b + 1})
		}
		if now.a == len(a) || now.b == len(b) {
			continue
		}
		x, y := a[now.a], b[now.b]
		if max(x.least, y.least) > min(x.most, y.most) {
			continue
		}
		next = append(next, at{now.a + 1, now.b + 1})
		if x.again {
			next = append(next, at{now.a, now.b + 1})
		}
		if y.again {
			next = append(next, at{now.a + 1, now.b})
		}
	}
	return false
}
