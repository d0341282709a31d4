package storetest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// A recorder is a testing.TB of which a check may fail.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	errors []string
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.errors) > 0
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// failures returns what a check finds wrong with a store that has a bug.
func failures(t *testing.T, name, bug string) []string {
	t.Helper()
	for _, c := range checks {
		if c.name != name {
			continue
		}
		b := (&broken{bug: bug}).backend()
		if c.skip != nil && c.skip(b) != "" {
			return []string{"skipped: " + c.skip(b)}
		}
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() { // Fatalf ends its goroutine
			defer close(done)
			c.run(&check{TB: r, backend: b})
		}()
		<-done
		return r.errors
	}
	t.Fatalf("there is no check %q", name)
	return nil
}

// bugs are planted one by one; each of the checks named must find it.
var bugs = map[string][]string{
	"version ignored":              {"wrong version", "old version", "create only once", "contention", "created at once", "linearizable"},
	"version ignored if zero":      {"create only once", "created at once"},
	"version without case":         {"wrong version"},
	"version without spaces":       {"wrong version"},
	"version counts the record":    {"versions differ", "rolled back"},
	"version counts the store":     {"rolled back"},
	"version of the value":         {"versions differ", "old version", "rolled back"},
	"conflicts write":              {"wrong version", "create only once"},
	"conflicts are silent":         {"wrong version", "create only once", "created at once"},
	"conflicts by chance":          {"linearizable"},
	"late success is a conflict":   {"cancelled during", "shaky", "linearizable"},
	"late success tried another":   {"cancelled during", "shaky", "linearizable"},
	"late success is forgotten":    {"cancelled during", "shaky", "linearizable"},
	"late success comes again":     {"linearizable"},
	"late success is undone":       {"linearizable"},
	"lost replies are resent":      {"shaky", "linearizable"},
	"shaky loses nothing":          {"shaky"},
	"shaky loses requests only":    {"shaky"},
	"reads lag":                    {"linearizable", "handles agree"},
	"reads what is not written":    {"linearizable"},
	"list lags":                    {"list while writing", "handles agree"},
	"list misses what is written":  {"list while writing"},
	"list mixes writes":            {"list while writing"},
	"ctx ignored":                  {"cancelled before"},
	"cancelled is a conflict":      {"cancelled before"},
	"cancelled breaks the handle":  {"cancelled before"},
	"acknowledged before written":  {"create", "replace", "handles agree", "contention", "linearizable"},
	"checked before locked":        {"contention", "created at once", "linearizable"},
	"reads are cached":             {"handles agree", "replace"},
	"returns no value":             {"create"},
	"returns the old record":       {"replace"},
	"returns what it was given":    {"values owned"},
	"never written is an error":    {"never written"},
	"keys without case":            {"keys apart", "never written"},
	"keys as paths":                {"keys apart", "never written"},
	"keys cut":                     {"keys apart"},
	"any key":                      {"bad keys"},
	"bad key is a conflict":        {"bad keys"},
	"values of any size":           {"value sizes"},
	"values below 64 KiB":          {"value sizes"},
	"values tidied":                {"values exact"},
	"values parsed":                {"values exact"},
	"values kept":                  {"values owned"},
	"values handed out":            {"values owned"},
	"prefix without case":          {"list"},
	"prefix is LIKE":               {"list"},
	"prefix is a path":             {"list"},
	"list sorted without case":     {"list order"},
	"list backwards":               {"list order", "list"},
	"list cut":                     {"list many"},
	"list of keys":                 {"list", "list many", "create"},
	"times in seconds":             {"times"},
	"times of another zone":        {"times"},
	"time stands still":            {"times"},
	"time runs fast":               {"times"},
	"written when created":         {"times", "within"},
	"within ignored":               {"within", "within is the store's"},
	"within negative is none":      {"within"},
	"within for ever on creation":  {"within"},
	"within by our clock":          {"within is the store's"},
	"no clock but judges":          {"no clock"},
	"no clock but times":           {"no clock"},
	"update holds nothing":         {"update"},
	"update of who gave up":        {"update"},
	"update of what was refused":   {"update"},
	"update calls twice":           {"update"},
	"update forgets what it tried": {"update"},
	"promises less":                {"durability"},
	"promises without a reason":    {"durability"},
	"promises another's clock":     {"durability"},
	"promises to notice nothing":   {"durability"},
	"removed starts anew":          {"removed"},
	"removed is told once":         {"removed"},
	"removed is an outage":         {"removed"},
}

func TestChecksFindBugs(t *testing.T) {
	able := make(map[string]bool)
	for bug, names := range bugs {
		for _, name := range names {
			able[name] = true
			t.Run(bug+"/"+name, func(t *testing.T) {
				t.Parallel()
				var found []string
				for range 5 { // some bugs show only when callers meet
					if found = failures(t, name, bug); len(found) > 0 {
						break
					}
				}
				if len(found) == 0 {
					t.Errorf("%q finds nothing wrong", name)
					return
				}
				t.Logf("%.200s", found[0])
			})
		}
	}
	for _, c := range checks {
		if !able[c.name] {
			t.Errorf("no bug is planted for %q", c.name)
		}
	}
}

func TestChecksPass(t *testing.T) {
	for _, bug := range []string{"", "no clock"} {
		t.Run("bug "+bug, func(t *testing.T) {
			Run(t, func(testing.TB) Backend { return (&broken{bug: bug}).backend() })
		})
	}
}

// TestChecksAllow: a Put of unknown outcome may be carried out between any two
// calls of a check, of which a single run meets but a few.
func TestChecksAllow(t *testing.T) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for range 10 {
				b := (&broken{bug: rightly}).backend()
				if c.skip == nil || c.skip(b) == "" {
					c.run(&check{TB: t, backend: b})
				}
			}
		})
	}
}

func TestCheckNames(t *testing.T) {
	var names []string
	for _, c := range checks {
		if slices.Contains(names, c.name) {
			t.Errorf("two checks are called %q", c.name)
		}
		names = append(names, c.name)
	}
}
