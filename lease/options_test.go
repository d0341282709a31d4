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
	good := lease.Options{Layout: firn.JS53(), Choice: lease.Only(63)}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	if err := (*lease.Options)(nil).Check(); err != nil {
		t.Error(err)
	}
	bad := lease.Options{
		Pool: "a/b", Layout: firn.JS53(), Shard: 1, Choice: lease.Only(64), Lanes: 65,
		Outage: 1, TTL: 1, MaxAhead: time.Minute, Wait: -1, Name: string(make([]byte, 256)),
	}
	err := bad.Check()
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
	for _, option := range []string{"pool", "shard", "worker", "lanes", "outage", "ttl", "max-ahead", "name", "wait"} {
		if !seen[option] {
			t.Errorf("nothing about %s in %v", option, err)
		}
	}
}
