package config

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
)

// Faults returns what is wrong with the options in themselves.
func (o *LeaseOptions) Faults() error {
	var errs []error
	bad := func(option, format string, args ...any) {
		errs = append(errs, &lease.OptionError{Option: option, Reason: option + " " + fmt.Sprintf(format, args...)})
	}
	if o.Ranged {
		if l := o.Layout; l.IsValid() && o.Workers.Last >= l.Workers() {
			bad("workers", "%s: layout %s has 0-%d", o.Workers, cmp.Or(l.Name(), l.String()), l.Workers()-1)
		}
		choice, _ := o.Choice.In(o.Layout) // Check says what is wrong
		if n, only := choice.Only(); only && !o.Workers.Has(n) {
			bad("worker", "%s: workers says %s", o.Layout.NameWorker(n), o.Workers)
		}
		if int64(o.Lanes) > o.Workers.Count() {
			bad("lanes", "%d: workers says %s, which are %d", o.Lanes, o.Workers, o.Workers.Count())
		}
	}
	return errors.Join(o.Check(), errors.Join(errs...))
}

// Creating are the options of a pool that is created by these settings.
func (o *LeaseOptions) Creating() *pool.Options {
	c := &pool.Options{Layout: o.Layout}
	if o.Outage > term.OutageDurable { // less is what a process asks for, and others may ask for more
		c.Outage = o.Outage
	}
	if o.Ranged {
		c.First, c.Workers = o.Workers.First, o.Workers.Count()
	}
	return c
}
