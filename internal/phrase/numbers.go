package phrase

import (
	"fmt"
	"math"
	"strconv"
)

// Count writes a number with commas.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural counts things whose plural ends in s: 1 pool, 2 pools.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Counted counts things, one being what is said of a single one: 1 line is, 1,000 lines are.
func Counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Rate writes ids per second: digits behind the point where few come.
func Rate(perSecond float64) string {
	if perSecond < 100 {
		return fmt.Sprintf("%.3g", perSecond)
	}
	return Count(int64(math.Round(perSecond)))
}

// Bytes is a number of bytes for people.
func Bytes(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1000, 0
	for f >= 999.5 && i < len(units)-1 {
		f, i = f/1000, i+1
	}
	return fmt.Sprintf("%.3g %cB", f, units[i])
}

// SlowRate is a rate with as many digits as a person reads.
func SlowRate(r float64) string {
	switch {
	case r < 0.005:
		return "0"
	case r < 10:
		return strconv.FormatFloat(r, 'f', 2, 64)
	}
	return strconv.FormatFloat(math.Round(r), 'f', 0, 64)
}
