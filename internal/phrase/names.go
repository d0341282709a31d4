package phrase

import (
	"cmp"
	"strings"
)

// CompareNames orders names for people: digits in them by the number that they write, so that o-2 is before o-10.
func CompareNames(a, b string) int {
	for x, y := a, b; ; {
		i, j := digits(x), digits(y)
		if i > 0 && j > 0 {
			if c := compareDigits(x[:i], y[:j]); c != 0 {
				return c
			}
			x, y = x[i:], y[j:]
			continue
		}
		if x == "" || y == "" || x[0] != y[0] {
			return cmp.Or(strings.Compare(x, y), strings.Compare(a, b)) // 07 and 7 are two names
		}
		x, y = x[1:], y[1:]
	}
}

// digits is how many digits a text begins with.
func digits(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}

func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
