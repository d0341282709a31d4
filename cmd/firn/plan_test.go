package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

// An id of each layout that is proposed is above the one that was there.
func TestPlanAbove(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	for _, old := range []string{"twitter", "sonyflake", "js53", "uidgenerator;epoch=2020-01-01T00:00:00Z"} {
		last, errs, code := called(t, "encode", "--layout", old, "--time", "now", "--last")
		if code != 0 {
			t.Fatal(errs)
		}
		last = strings.TrimSpace(last)
		out, errs, code := called(t, "plan", "--rate", "100", "--workers", "4", "--years", "10", "--above", last, "--json")
		if code != 0 {
			t.Fatal(errs)
		}
		above, err := firn.ParseID(last)
		if err != nil {
			t.Fatal(err)
		}
		for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
			var p proposalLine
			if err := dec.Decode(&p); err != nil {
				t.Fatal(err)
			}
			next, errs, code := called(t, "next", "--layout", p.Spec, "--store", "sqlite:"+filepath.Join(t.TempDir(), "ids.db"))
			id, err := firn.ParseID(strings.TrimSpace(next))
			if code != 0 || err != nil || id <= above {
				t.Errorf("%s after %s: %s is not above %s: %s", p.Spec, old, next, last, errs)
			}
		}
	}
}
