package document

import (
	"testing"
	"time"
)

// A period ends where the next one begins, also where midnight or a whole day is missing.
func TestNextAt(t *testing.T) {
	for _, y := range years {
		zone, err := loadZone(y.zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, date := range []string{"{yyyyMMdd}", "{yyyyMM}", "{yyyy}", "{yyDDD}"} {
			p, err := ParsePattern(date + "-{3}")
			if err != nil {
				t.Fatal(err)
			}
			r := rules{pattern: p, zone: zone}
			for day := range 400 {
				now := y.from.Add(time.Duration(day) * 24 * time.Hour)
				period := r.period(now)
				next := r.nextAt(period)
				if !next.After(now) || r.period(next) <= period || r.period(next.Add(-1)) != period {
					t.Errorf("%s %s: %s ends at %s", y.zone, date, period, next)
				}
			}
		}
	}
	if p, err := ParsePattern("{3}"); err != nil || !(&rules{pattern: p}).nextAt("").IsZero() {
		t.Error("without a date there is no next period")
	}
}
