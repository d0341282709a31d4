package term_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A fullDisk is an error that says what to do.
type fullDisk struct{}

func (fullDisk) Error() string      { return "the disk is full; free some space" }
func (fullDisk) SaysWhatToDo() bool { return true }

func TestErrorTexts(t *testing.T) {
	clock := time.Date(2026, 11, 25, 18, 34, 16, 0, time.UTC)
	for want, err := range map[string]error{
		`lease: pool "p" has layout a, not b: leave the layout out of the options to use the pool's, or name a pool of that layout`: &term.LayoutError{Pool: "p", Have: "a", Want: "b"},
		`lease: the store has no pool "p"; it has: a, b: set Options.Pool to one of these; if you need another pool that never existed, run once: firn pool create p --store URL, which says which workers it can have; if you are not sure: firn pool ensure p --store URL (add --outage if any process of the pool had an outage budget of more than 5 min)`: &term.MissingPoolError{
			Pool: "p", Pools: []string{"a", "b"},
		},
		`lease: none of the 4 workers of pool "p" is free; call again later, or set a longer Options.Wait; or give the pool more workers by "firn pool set"`: &term.FullError{Pool: "p", Workers: 4},
		`lease: the one worker of pool "p" that this process may take is not free; worker 0 is held by a and falls free in 250ms if that process died; call again later, or set a longer Options.Wait`: &term.FullError{
			Pool: "p", Workers: 1, Holders: []term.Holder{{Worker: 0, Name: "a", Free: 250400 * time.Microsecond}},
		},
		`store: this host's clock (2026-11-25T19:34:17Z) is 1h0m1s ahead of the store's (2026-11-25T18:34:16Z), and at most 5s is safe: one of the two is wrong; set the one that is wrong, and call again`: &term.ClockError{Host: clock.Add(time.Hour + 1400*time.Millisecond), Store: clock, Skew: 5 * time.Second},
		`lease: every request to the store failed for 5s: away; check that the store runs and that this host reaches it, and call again`:                                                                    &term.AwayError{Wait: 5 * time.Second, Err: errAway},
		`lease: every request to the store failed for 5s: the disk is full; free some space`:                                                                                                                &term.AwayError{Wait: 5 * time.Second, Err: fullDisk{}},
		`lease: worker 7 was not extended in time`: &term.LostError{Worker: 7, Late: true},
		`lease: worker 7 was taken away`:           &term.LostError{Worker: 7},
		`lease: worker 7 was taken by b`:           &term.LostError{Worker: 7, Name: "b"},
		`lease: worker 7 is lost: away`:            &term.LostError{Worker: 7, Err: errAway},
		`lease: each of the 4 workers of pool "p" was held before; none is fresh; leave out Options.Choice to take any free one, or give the pool more workers by "firn pool set"`: &term.FreshError{Pool: "p", Workers: 4},
		`store: record k: has a negative number`: &store.FormatError{Key: "k", Reason: "has a negative number"},
	} {
		if err.Error() != want {
			t.Errorf("%q\nwant %q", err, want)
		}
	}
	if got, want := (&term.AwayError{Err: errAway}).Unwrap(), errAway; got != want {
		t.Errorf("%v", got)
	}
	if got, want := (&term.LostError{Err: errAway}).Unwrap(), errAway; got != want {
		t.Errorf("%v", got)
	}
}

func TestReadPool(t *testing.T) {
	for outage, ok := range map[string]bool{"0": true, "300000": true, "-1": false, "300001": false} {
		rec := store.Record{Key: "k", Value: []byte(`{"v":1,"outage_ms":` + outage + `,"limit_ms":300000}`), Version: "v"}
		want := "store: record k: has an outage budget of " + outage + " ms, and a limit of 300000 ms"
		if _, err := term.ReadPool(rec); ok && err != nil || !ok && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v", outage, err)
		}
	}
	for _, limit := range []string{"-1", "9223372036854775807"} {
		rec := store.Record{Key: "k", Value: []byte(`{"v":1,"limit_ms":` + limit + `}`), Version: "v"}
		if _, err := term.ReadPool(rec); err == nil || err.Error() != "store: record k: has a limit of "+limit+" ms for outage budgets" {
			t.Errorf("%s: %v", limit, err)
		}
	}
}

func TestReadRecord(t *testing.T) {
	read := func(text string) error {
		_, err := term.ReadRecord(store.Record{Key: "k", Value: []byte(text), Version: "v"})
		return err
	}
	for text, want := range map[string]string{
		`{"v":1,"term":1,"horizon":-1}`:              "store: record k: has a negative number",
		`{"v":1,"term":1,"horizon":1,"ttl_ms":-1}`:   "store: record k: has a negative number",
		`{"v":2,"term":"x"}`:                         "store: record k: has format 2, written by a later firn; this one knows 1",
		`{"v":0}`:                                    "store: record k: has no format number",
		`{"v":1,"term":1.5,"horizon":1}`:             "store: record k: json: cannot unmarshal number 1.5 into Go struct field Record.term of type uint64",
		`{"v":1`:                                     "store: record k: unexpected end of JSON input",
		`{"v":1,"term":1,"horizon":1,"later":"new"}`: "",
	} {
		if err := read(text); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if r, err := term.ReadRecord(store.Record{Key: "k"}); err != nil || r != (term.Record{}) {
		t.Errorf("never written: %+v, %v", r, err)
	}
}
