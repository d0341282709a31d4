package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
)

// A knob is a setting of a pool. It is a flag, a FIRN_ variable and a key of
// firn.yaml, all of one name and with one set of values.
type knob struct {
	name     string
	value    string // what its value is called in help
	usage    string
	standard string // what it is where nobody says
	set      func(o *poolOptions, text string) error
	inFile   bool // it is no flag of a command that leases: the store's record of the pool has it
}

// poolOptions are the options of a pool's lease, as the knobs say them.
type poolOptions struct {
	lease.Options
	hostname bool       // the worker is the number that the host's name ends in
	workers  term.Range // that the pool is to have
	ranged   bool       // workers was said
}

var knobs = []knob{
	{
		name: "layout", value: "LAYOUT", standard: "the pool's", set: setLayout,
		usage: "the layout that the pool has to have: a preset or a spec; firn layouts",
	},
	{
		name: "workers", value: "N|A-B", standard: "the pool's", set: setWorkers, inFile: true,
		usage: "which workers the pool has, such as 512-1023, or how many",
	},
	{
		name: "worker", value: "WORKER", standard: "recycle", set: setWorker,
		usage: "recycle: any free worker; fresh: one never used before; N: only this one; hostname: the pool's first worker + the number at the end of the host name",
	},
	{
		name: "lanes", value: "N", standard: "1", set: setLanes,
		usage: "how many workers to hold and draw from",
	},
	{
		name: "renew", value: "DURATION", standard: phrase.Duration(term.Renew),
		set:   positive(func(o *poolOptions) *time.Duration { return &o.Renew }),
		usage: "how often the lease is extended, at least",
	},
	{
		name: "ttl", value: "DURATION", standard: phrase.Duration(term.TTL),
		set:   positive(func(o *poolOptions) *time.Duration { return &o.TTL }),
		usage: "after how long without a word others may take the worker",
	},
	{
		name: "outage", value: "DURATION",
		standard: phrase.Duration(term.OutageDurable) + ", on a store that can forget " + phrase.Duration(term.OutageLossy),
		set:      positive(func(o *poolOptions) *time.Duration { return &o.Outage }),
		usage:    "how long ids go on while the store is away",
	},
	{
		name: "borrow", value: "DURATION", standard: phrase.Duration(firn.DefaultBorrow), set: setBorrow,
		usage: "how far ids may run ahead of the clock",
	},
	{
		name: "wait", value: "DURATION", standard: phrase.Duration(term.Wait), set: setWait,
		usage: "how long to wait for a worker to fall free, and for the start of a pool; a store that can lose writes makes each start wait besides",
	},
	{
		name: "file", value: "PATH", standard: "none", set: setFile,
		usage: "a grant file, from which a process that was killed goes on",
	},
}

// knobNames are the names of all knobs.
func knobNames() []string {
	names := make([]string, len(knobs))
	for i, k := range knobs {
		names[i] = k.name
	}
	return names
}

// A knobFlag is a knob as a flag. It keeps the text, so that it can be said
// where each value is from.
type knobFlag struct {
	*knob
	text string
}

func (f *knobFlag) String() string { return f.text }
func (f *knobFlag) Type() string   { return f.value }

func (f *knobFlag) Set(text string) error {
	f.text = text
	return f.set(new(poolOptions), text)
}

// addPool adds --pool and the knobs of a pool.
func addPool(cmd *cobra.Command) {
	addPoolName(cmd)
	for i := range knobs {
		k := &knobs[i]
		if k.inFile {
			continue
		}
		cmd.Flags().Var(&knobFlag{knob: k}, k.name, k.usage+" ("+k.standard+")")
	}
	if err := cmd.RegisterFlagCompletionFunc("layout", completeLayouts); err != nil {
		panic(err) // the flag is not there
	}
}

// addPoolName adds --pool.
func addPoolName(cmd *cobra.Command) {
	cmd.Flags().String("pool", "", "the pool of workers (the only one of firn.yaml, or "+pool.Default+")")
}

func setLayout(o *poolOptions, text string) (err error) {
	o.Layout, err = firn.ParseLayout(text)
	return err
}

// setWorkers reads a number of workers, or a range.
func setWorkers(o *poolOptions, text string) (err error) {
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		n, err := parseNumber(text)
		if err == nil && n == 0 {
			return fmt.Errorf("%q: there is at least 1", text)
		}
		o.workers, o.ranged = term.Range{Last: n - 1}, true
		return err
	}
	first, err := parseNumber(low)
	last, err2 := parseNumber(high)
	if err != nil || err2 != nil || last-first+1 < 1 { // the largest of all overflows
		return fmt.Errorf("%q is neither a number nor a range such as 512-1023", text)
	}
	o.workers, o.ranged = term.Range{First: first, Last: last}, true
	return nil
}

// setWorker reads which worker to take.
func setWorker(o *poolOptions, text string) (err error) {
	o.Choice, o.hostname = lease.Choice{}, false
	switch text {
	case "recycle":
	case "fresh":
		o.Choice = lease.Fresh()
	case "hostname":
		o.Choice, o.hostname = lease.Prefer(0), true // or which the hostname says
	default:
		n, err := parseNumber(text)
		if err != nil {
			return fmt.Errorf("%q is none of recycle, fresh, hostname and a number", text)
		}
		o.Choice = lease.Only(n)
	}
	return nil
}

func setLanes(o *poolOptions, text string) error {
	n, err := parseNumber(text)
	if err == nil && (n < 1 || n > math.MaxInt32) {
		return fmt.Errorf("%q: there is at least 1", text)
	}
	o.Lanes = int(n)
	return err
}

func setBorrow(o *poolOptions, text string) (err error) {
	o.MaxAhead, err = parseDuration(text)
	if o.MaxAhead == 0 {
		o.MaxAhead = -1 // none; zero would be the default
	}
	return err
}

func setWait(o *poolOptions, text string) (err error) {
	o.Wait, err = parseDuration(text)
	o.Wait = max(o.Wait, 1) // zero would be the default
	return err
}

func setFile(o *poolOptions, text string) error {
	if text == "" {
		return errors.New("it is empty: leave it out, or name a file")
	}
	o.GrantFile = text
	return nil
}

// ordinal is the number that a host's name ends in: 7 for web-7, as the pods of
// a StatefulSet are called.
func ordinal(host string) (int64, error) {
	host, _, _ = strings.Cut(host, ".")
	digits := host[len(strings.TrimRight(host, "0123456789")):]
	n, err := strconv.ParseInt(digits, 10, 62) // with a first worker added it is still a number
	if err != nil {
		return 0, fmt.Errorf("the host's name is %q, which does not end in a number", host)
	}
	return n, nil
}

// positive sets a duration that is more than nothing.
func positive(field func(*poolOptions) *time.Duration) func(*poolOptions, string) error {
	return func(o *poolOptions, text string) error {
		d, err := parseDuration(text)
		if err == nil && d == 0 {
			return fmt.Errorf("%q: it is more than 0", text)
		}
		*field(o) = d
		return err
	}
}

// parseDuration reads a duration that is not negative.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err == nil && d >= 0:
		return d, nil
	case err == nil:
		return 0, fmt.Errorf("%q is negative", text)
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, fmt.Errorf("%q has no unit: is it %ss?", text, text)
	}
	return 0, fmt.Errorf("%q is not a duration such as 500ms, 10s or 5m", text)
}

// parseNumber reads a number without sign.
func parseNumber(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number from 0 on", text)
	}
	return int64(n), nil
}
