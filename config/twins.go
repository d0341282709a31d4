package config

import (
	"fmt"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/template"
)

// Twins returns a warning for each document of the file that could give texts of another one in
// it. They are no faults, because whoever created the second of them may have said that the two
// never meet, and only the store knows that. Texts of templates are not compared: see document.CheckNew.
func (c *File) Twins() []Fault {
	var all []Fault
	for i := range c.Series {
		one := &c.Series[i]
		pattern := one.keys["pattern"]
		p, err := document.ParsePattern(pattern.Text)
		if one.Kind.Text != Document || err != nil || template.Is(one.Name.Text) {
			continue
		}
		for j := range c.Series[:i] {
			other := &c.Series[j]
			q, err := document.ParsePattern(other.keys["pattern"].Text)
			if other.Kind.Text != Document || err != nil || template.Is(other.Name.Text) || !p.Overlaps(q) {
				continue
			}
			all = append(all, Fault{Place: pattern.At, Text: fmt.Sprintf("series %s could give texts of series %s, whose pattern is %s. firn series create refuses the second of them, unless --may-repeat says that they never meet in one table, queue or cache",
				one.Name.Text, other.Name.Text, other.keys["pattern"].Text)})
		}
	}
	return all
}
