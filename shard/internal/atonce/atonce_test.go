package atonce_test

import (
	"errors"
	"testing"

	"github.com/firn-id/firn/shard/internal/atonce"
)

func TestEach(t *testing.T) {
	one, other := errors.New("one"), errors.New("other")
	for want, given := range map[string][]error{"": {nil, nil}, "one": {nil, one}, "one\nother": {one, nil, other}} {
		err := atonce.Each(given, func(i int, err error) error {
			if given[i] != err {
				t.Errorf("%v is called with %d", err, i)
			}
			return err
		})
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%q, not %q", err, want)
		}
		if want == "one" && err != one {
			t.Error("a single error is not as it was")
		}
	}
}
