package phrase

import (
	"slices"
	"testing"
)

func TestCompareNames(t *testing.T) {
	want := []string{"", "9", "10", "99999999999999999999999", "Z", "a", "a2b1", "a2b10", "a10b2", "o-", "o-1", "o-01", "o-2", "o-02x", "o-10", "ob", "user:7", "user:07", "user:70"}
	slices.Sort(want[1:]) // begin with another order
	got := slices.Clone(want)
	slices.SortFunc(got, CompareNames)
	want = []string{"", "9", "10", "99999999999999999999999", "Z", "a", "a2b1", "a2b10", "a10b2", "o-", "o-01", "o-1", "o-2", "o-02x", "o-10", "ob", "user:07", "user:7", "user:70"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	for _, a := range want {
		for _, b := range want {
			if x, y := CompareNames(a, b), CompareNames(b, a); x != -y || (x == 0) != (a == b) {
				t.Errorf("%q and %q: %d and %d", a, b, x, y)
			}
		}
	}
}
