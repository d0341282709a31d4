package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
)

// Each fault is an OptionError that names its option, and all are there at once.
func TestCheck(t *testing.T) {
	good := lease.Options{Layout: firn.JS53, First: 32, Workers: 32, Choice: lease.Insist, Worker: 63}
	if err := good.Check("web"); err != nil {
		t.Error(err)
	}
	if err := (*lease.Options)(nil).Check("web"); err != nil {
		t.Error(err)
	}
	// A lease cannot hold more workers than there are to choose from.
	var few *lease.OptionError
	if err := (&lease.Options{Layout: firn.JS53, Workers: 2, Lanes: 3}).Check("web"); !errors.As(err, &few) || few.Option != "lanes" {
		t.Errorf("3 lanes of 2 workers: %v", err)
	}
	bad := lease.Options{
		Layout: firn.JS53, Shard: 1, First: 64, Choice: lease.Insist, Worker: 1, Lanes: 65,
		Outage: 1, TTL: 1, Borrow: time.Minute, Wait: -1, Name: string(make([]byte, 256)),
	}
	err := bad.Check("a/b")
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, err := range joined.Unwrap() {
		var o *lease.OptionError
		if !errors.As(err, &o) {
			t.Errorf("%T %v", err, err)
			continue
		}
		seen[o.Option] = true
	}
	for _, option := range []string{"pool", "shard", "workers", "worker", "lanes", "outage", "ttl", "borrow", "name", "wait"} {
		if !seen[option] {
			t.Errorf("nothing about %s in %v", option, err)
		}
	}
}

// A fault in the range of workers names what was set, and no number that nobody set.
func TestCheckNamesWhatWasSet(t *testing.T) {
	for _, c := range []struct {
		options lease.Options
		want    string
	}{
		{lease.Options{First: 5000}, "lease: workers begin at 5000: layout firn has 0 to 1023"},
		{lease.Options{First: 5}, "lease: workers begin at 5: say how many there are"},
		{lease.Options{Workers: -1}, "lease: workers are -1: their number is 0, for all, to 1024"},
		{lease.Options{First: 1000, Workers: 100}, "lease: workers 1000 to 1099: layout firn has 0 to 1023"},
	} {
		if err := c.options.Check("web"); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.options, err, c.want)
		}
	}
}
