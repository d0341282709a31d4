package dated

import (
	"testing"
	"time"
)

// Zones with and without daylight saving: that which changes at 2:00, at midnight, and one in which
// a day is missing. Each has the first noon of the year.
var zones = map[string]time.Time{
	"America/New_York":  time.Date(2026, 1, 1, 17, 0, 0, 0, time.UTC),
	"Asia/Ho_Chi_Minh":  time.Date(2026, 1, 1, 5, 0, 0, 0, time.UTC),
	"America/Sao_Paulo": time.Date(2018, 1, 1, 14, 0, 0, 0, time.UTC),
	"Africa/Cairo":      time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC),
	"Pacific/Apia":      time.Date(2011, 1, 1, 22, 0, 0, 0, time.UTC),
}

// A period ends where the next one begins, also where midnight or a whole day is missing.
func TestNextAt(t *testing.T) {
	for name, from := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range Forms {
			r := Rules{Date: &Forms[i], Zone: zone}
			for day := range 400 {
				now := from.Add(time.Duration(day) * 24 * time.Hour)
				period := r.Period(now)
				next := r.NextAt(period)
				if !next.After(now) || r.Period(next) <= period || r.Period(next.Add(-1)) != period {
					t.Errorf("%s %s: %s ends at %s", name, r.Date.Name, period, next)
				}
			}
		}
	}
	if !(&Rules{}).NextAt("").IsZero() {
		t.Error("without a date there is no next period")
	}
}
