package dated

import (
	"strings"
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

	"Australia/Lord_Howe": time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC),
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
			for _, now := range instants(r, from) {
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

// instants are one of each day for 400 days; of hours two of each, where the zone changes its clock within a day.
func instants(r Rules, from time.Time) (all []time.Time) {
	for day := range 400 {
		now := from.Add(time.Duration(day) * 24 * time.Hour)
		_, before := now.Add(-26 * time.Hour).In(r.Zone).Zone()
		_, after := now.Add(26 * time.Hour).In(r.Zone).Zone()
		all = append(all, now)
		for half := 1; r.Date.hours() && before != after && half < 48; half++ {
			all = append(all, now.Add(time.Duration(half)*30*time.Minute))
		}
	}
	return all
}

// An hour that comes twice is one period, one that does not exist never comes, and no period is
// shorter than Shortest.
func TestHours(t *testing.T) {
	for _, tt := range []struct {
		zone string
		from time.Time
		want string // the hours from then on, each as long as it lasts
	}{
		{"America/New_York", time.Date(2026, 3, 8, 5, 0, 0, 0, time.UTC), "00 1h0m0s, 01 1h0m0s, 03 1h0m0s, 04 1h0m0s"},
		{"America/New_York", time.Date(2026, 11, 1, 4, 0, 0, 0, time.UTC), "00 1h0m0s, 01 2h0m0s, 02 1h0m0s"},
		{"Australia/Lord_Howe", time.Date(2026, 4, 4, 13, 0, 0, 0, time.UTC), "00 1h0m0s, 01 1h30m0s, 02 1h0m0s"},
		{"Australia/Lord_Howe", time.Date(2026, 10, 3, 13, 30, 0, 0, time.UTC), "00 1h0m0s, 01 1h0m0s, 02 30m0s, 03 1h0m0s"},
		{"Antarctica/Troll", time.Date(2026, 10, 24, 23, 0, 0, 0, time.UTC), "01 1h0m0s, 02 1h0m0s, 01 1h0m0s, 02 1h0m0s, 03 1h0m0s"},
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		r := Rules{Date: FormNamed("yyyyMMddHH"), Zone: zone}
		var got []string
		for at, n := tt.from, strings.Count(tt.want, ",")+1; n > 0; n-- {
			period := r.Period(at)
			end := at
			for r.Period(end) == period {
				end = end.Add(time.Minute)
			}
			got = append(got, period[8:]+" "+end.Sub(at).String())
			if end.Sub(at) <= r.Shortest() {
				t.Errorf("%s: %s lasts %s only", tt.zone, period, end.Sub(at))
			}
			if next := r.NextAt(period); !next.Equal(end) && tt.zone != "Antarctica/Troll" {
				t.Errorf("%s: %s ends at %s, and not at %s", tt.zone, period, end, next)
			}
			at = end
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("%s: %s, want %s", tt.zone, text, tt.want)
		}
	}
}

// What was given out has a period up to Through, in each zone and also in an hour that comes again.
func TestThroughOfHours(t *testing.T) {
	for name, from := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range Forms {
			r := Rules{Date: &Forms[i], Zone: zone}
			latest := ""
			for _, now := range instants(r, from)[:100] {
				if period := r.Period(now); period > latest {
					latest = period
				}
				if through := r.Through(now); through < latest {
					t.Errorf("%s %s: %s was given out by %s, and only %s are raised", name, r.Date.Name, latest, now, through)
				}
			}
		}
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
