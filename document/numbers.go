package document

import (
	"context"
	"fmt"
	"strconv"

	"github.com/firn-id/firn"
)

// Source returns the series as a source of numbers: those that its texts are. It is open as long
// as the series is. The error is an [*OptionError] where the texts are no numbers: see
// [Pattern.IsNumeric].
func (s *Series) Source() (firn.Source, error) {
	if p := s.rules.pattern; !p.IsNumeric() {
		return nil, &OptionError{"pattern", fmt.Sprintf("pattern %s: its texts are no numbers; those of a pattern of digits only are, such as {yyyyMMdd}{6}", p), nil}
	}
	return numbers{s}, nil
}

// numbers are a series as a source.
type numbers struct{ series *Series }

// Next returns the next number. It is [Series.Next] but for the text.
func (n numbers) Next(ctx context.Context) (firn.ID, error) {
	one, err := n.series.Next(ctx)
	return one.ID, err
}

// Append appends count numbers to dst, or none. It is [Series.Append] but for the texts.
func (n numbers) Append(ctx context.Context, dst []firn.ID, count int) ([]firn.ID, error) {
	all, err := n.series.Append(ctx, nil, count)
	for _, one := range all {
		dst = append(dst, one.ID)
	}
	return dst, err
}

// ParseID reads a number of a pattern of digits only, which has lost the zeros that its text
// begins with. The error is a [*firn.SyntaxError].
func (p *Pattern) ParseID(id firn.ID) (Number, error) {
	text := strconv.FormatInt(int64(id), 10)
	if !p.ints {
		return Number{}, &firn.SyntaxError{Kind: "document", Text: text, Reason: fmt.Sprintf("the texts of %s are no numbers", p)}
	}
	return p.Parse(string(appendPadded(nil, int64(id), p.shortest())))
}

// shortest is how long a text is at least, in bytes.
func (p *Pattern) shortest() int {
	n := 0
	for i := range p.parts {
		n += p.parts[i].length()
	}
	return n
}
