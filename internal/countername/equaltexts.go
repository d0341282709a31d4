package countername

import (
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/template"
)

// EqualTexts returns the first of these series that is a document and could give a text of an earlier one of the same
// store, and that earlier one; nil where there are no two such documents. A store does not have the series yet, so
// package document cannot refuse the second one.
func EqualTexts(all []*config.Series, storeOf func(*config.Series) string) (second, first *config.Series) {
	for i, d := range all {
		for _, before := range all[:i] {
			if d.Kind != config.Document || before.Kind != config.Document || template.Is(d.Name) || template.Is(before.Name) || storeOf(d) != storeOf(before) {
				continue
			}
			p, err := document.ParsePattern(d.Options.Document.Pattern)
			q, err2 := document.ParsePattern(before.Options.Document.Pattern)
			if err == nil && err2 == nil && p.Overlaps(q) {
				return d, before
			}
		}
	}
	return nil, nil
}
