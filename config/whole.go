package config

import (
	"errors"
	"maps"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/lease"
)

// whole reports what only shows in the file as a whole: of pools and series that
// are right in themselves, so that no fault has another for its cause.
func (r *reader) whole() {
	for i := range r.Pools {
		p := &r.Pools[i]
		if p.faulty {
			continue
		}
		o := p.Options
		said := maps.Clone(p.knobs)
		if _, ok := said["ttl"]; !ok {
			said["ttl"] = said["renew"] // the other end of the rule about both
		}
		r.check("pools."+p.name.Text, p.name, o, said)
	}
	for i := range r.Series {
		r.wholeSeries(&r.Series[i])
		r.belongs(i)
	}
	r.wholeServe()
}

// check reports what a lease would say of the options, each at its own place.
func (r *reader) check(what string, pool Entry, o LeaseOptions, said map[string]Entry) {
	o.Pool = pool.Text
	for _, err := range parts(o.Faults()) {
		at := pool.At
		var option *lease.OptionError
		if errors.As(err, &option) && said[option.Option].At.Line != 0 {
			at = said[option.Option].At
		}
		r.fault(at, "%s: %s", what, phrase.WithoutPackage(err.Error()))
	}
}

// belongs reports that a series and one before it could have one name: one is a template that the other
// belongs to, and the counters of that name would begin again.
func (r *reader) belongs(i int) {
	name := r.Series[i].Name
	for j := range i {
		if before := r.Series[j].Name.Text; template.Clash(before, name.Text) {
			r.fault(name.At, "series %s and %s could have one name, and a name stands for one counter: the names of a template are its own", name.Text, before)
		}
	}
}
