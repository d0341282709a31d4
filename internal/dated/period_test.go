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

// A process whose clock is 5 s ahead, of a host whose operator's is 5 s behind, may have come to the next date.
func TestThrough(t *testing.T) {
	r := Rules{Date: &Forms[0], Zone: time.UTC}
	for ahead, want := range map[time.Duration]string{11 * time.Second: "20260301", 10 * time.Second: "20260302", 0: "20260302"} {
		midnight := time.Date(2026, 3, 2, 0, 0, 0, 0, time.FixedZone("", 14*60*60))
		if got := r.Through(midnight.Add(-ahead)); got != want {
			t.Errorf("%s before midnight where it comes first: %s, want %s", ahead, got, want)
		}
	}
}
