package inspect

import (
	"strconv"
	"time"
)

// ParseTime reads a time as people and tables write it: RFC 3339, a date (in UTC), or
// milliseconds since 1970.
func ParseTime(text string) (time.Time, bool) {
	if ms, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.UnixMilli(int64(ms)), true
	}
	for _, form := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
