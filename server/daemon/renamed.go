package daemon

import (
	"slices"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/countername"
)

// renamed returns a [*countername.RenamedError] where a series of the next plan, which its store lacks, may be a
// sequence of this plan under another name.
func (p *plan) renamed(next *plan, d *outlet) error {
	if d.Kind != config.Sequence {
		return nil
	}
	var before []string
	for _, had := range p.ever() {
		left := !slices.ContainsFunc(next.drawings(), func(d *outlet) bool { return d.source() == had.source() })
		if had.Kind == config.Sequence && had.storeText() == d.storeText() && left {
			before = append(before, had.Name)
		}
	}
	if len(before) == 0 {
		return nil
	}
	return &countername.RenamedError{Name: d.Name, Before: before}
}
