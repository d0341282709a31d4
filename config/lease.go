package config

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
)

// LeaseOptions are the options of a pool's lease, as the settings say them.
type LeaseOptions struct {
	lease.Options
	Hostname bool       // the worker is the number that the host's name ends in
	Workers  term.Range // that the pool is to have
	Ranged   bool       // workers was said
}

// LeaseKeys are the settings of a pool, and of a lease of one of its workers.
var LeaseKeys = []Key[LeaseOptions]{
	{
		Name: "layout", Value: "LAYOUT", Standard: "the pool's", Set: setLayout,
		Usage: "the layout that the pool has to have: a preset or a spec; firn layout ls",
	},
	{
		Name: "workers", Value: "N|A-B", Standard: "the pool's", Set: SetWorkers, InRecord: true,
		Usage: "which workers the pool has, such as 512-1023, or how many",
	},
	{
		Name: "worker", Value: "WORKER", Standard: "recycle", Set: setWorker,
		Usage: "recycle: any free worker; fresh: one never used before; N: only this one, 3/7 where the layout has a datacenter and a worker; hostname: the pool's first worker + the number at the end of the host name",
	},
	{
		Name: "lanes", Value: "N", Standard: "1", Set: setLanes,
		Usage: "how many workers to hold and draw from",
	},
	{
		Name: "renew", Value: "DURATION", Standard: phrase.Duration(term.Renew),
		Set:   positive(func(o *LeaseOptions) *time.Duration { return &o.Renew }),
		Usage: "how often the lease is extended, at least",
	},
	{
		Name: "ttl", Value: "DURATION", Standard: phrase.Duration(term.TTL),
		Set:   positive(func(o *LeaseOptions) *time.Duration { return &o.TTL }),
		Usage: "after how long without a word others may take the worker",
	},
	{
		Name: "outage", Value: "DURATION",
		Standard: phrase.Duration(term.OutageDurable) + ", on a lossy store " + phrase.Duration(term.OutageLossy),
		Set:      positive(func(o *LeaseOptions) *time.Duration { return &o.Outage }),
		Usage:    "how long ids continue while the store is away",
	},
	{
		Name: "max-ahead", Value: "DURATION", Standard: phrase.Duration(firn.DefaultBorrow), Set: setBorrow,
		Usage: "how far ids may run ahead of the clock",
	},
	{
		Name: "wait", Value: "DURATION", Standard: phrase.Duration(term.Wait), Set: setWait,
		Usage: "how long to wait for a worker to fall free, and for the start of a pool; a lossy store makes each start wait besides",
	},
	{
		Name: "grant-file", Value: "PATH", Standard: "none", path: true,
		Set:   text(func(o *LeaseOptions) *string { return &o.GrantFile }),
		Usage: "a grant file: a process that was killed continues from it",
	},
}

func setLayout(o *LeaseOptions, text string) (err error) {
	o.Layout, err = firn.ParseLayout(text)
	return err
}

// SetWorkers reads a number of workers, or a range.
func SetWorkers(o *LeaseOptions, text string) (err error) {
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		n, err := parseNumber(text)
		if err == nil && n == 0 {
			return fmt.Errorf("%q: there is at least 1", text)
		}
		o.Workers, o.Ranged = term.Range{Last: n - 1}, true
		return err
	}
	first, err := parseNumber(low)
	last, err2 := parseNumber(high)
	if err == nil && err2 == nil && last < first {
		return fmt.Errorf("%q: the range goes down; the lower number comes first: %d-%d", text, last, first)
	}
	if err != nil || err2 != nil || last-first+1 < 1 { // the largest of all overflows
		return fmt.Errorf("%q is neither a number nor a range such as 512-1023", text)
	}
	o.Workers, o.Ranged = term.Range{First: first, Last: last}, true
	return nil
}

// setWorker reads which worker to take.
func setWorker(o *LeaseOptions, text string) (err error) {
	o.Choice, o.Hostname = lease.Choice{}, false
	switch text {
	case "recycle":
	case "fresh":
		o.Choice = lease.Fresh()
	case "hostname":
		o.Choice, o.Hostname = lease.Prefer(0), true // or which the hostname says
	default:
		values, err := ParseWorker(text)
		if err != nil {
			return fmt.Errorf("%q is none of recycle, fresh, hostname and a number, or several such as 3/7", text)
		}
		o.Choice = lease.Only(values[0], values[1:]...)
	}
	return nil
}

// ParseWorker reads the number of a worker, or the values of its fields, such as 3/7.
func ParseWorker(text string) (values []int64, err error) {
	for part := range strings.SplitSeq(text, "/") {
		n, err := parseNumber(part)
		if err != nil {
			return nil, err
		}
		values = append(values, n)
	}
	return values, nil
}

func setLanes(o *LeaseOptions, text string) error {
	n, err := parseNumber(text)
	if err == nil && (n < 1 || n > math.MaxInt32) {
		return fmt.Errorf("%q: there is at least 1", text)
	}
	o.Lanes = int(n)
	return err
}

func setBorrow(o *LeaseOptions, text string) (err error) {
	o.MaxAhead, err = parseDuration(text)
	if o.MaxAhead == 0 {
		o.MaxAhead = -1 // none; zero would be the default
	}
	return err
}

func setWait(o *LeaseOptions, text string) (err error) {
	o.Wait, err = parseDuration(text)
	o.Wait = max(o.Wait, 1) // zero would be the default
	return err
}
