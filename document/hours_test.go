package document_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/store/memory"
)

const byHour = "{yyMMdd}{HH}{4}"

func hourly(zone string) document.Options { return document.Options{Zone: zone} }

// The counter begins again with each hour. One that comes twice is one period, and one that is left out
// never comes.
func TestHours(t *testing.T) {
	st, set := at(time.Date(2026, 11, 1, 5, 59, 0, 0, time.UTC)) // 1:59 in summer time
	s := opened(t, st, byHour, hourly("America/New_York"))
	wantNext(t, s, "261101010001", "261101010002")
	set(time.Date(2026, 11, 1, 6, 1, 0, 0, time.UTC)) // 1:01 again
	wantNext(t, s, "261101010003")
	set(time.Date(2026, 11, 1, 7, 0, 0, 0, time.UTC))
	wantNext(t, s, "261101020001")
	set(time.Date(2026, 11, 1, 5, 0, 0, 0, time.UTC)) // a clock that was wrong
	wantNext(t, s, "261101010004")
	set(time.Date(2027, 3, 14, 6, 59, 0, 0, time.UTC))
	wantNext(t, s, "270314010001")
	set(time.Date(2027, 3, 14, 7, 0, 0, 0, time.UTC))
	wantNext(t, s, "270314030001")
}

// Troll goes back by two hours at once: the two come again, and both continue.
func TestHoursThatComeAgain(t *testing.T) {
	st, set := at(time.Date(2026, 10, 25, 0, 59, 0, 0, time.UTC))
	anew := func() *document.Series { return opened(t, st, byHour, hourly("Antarctica/Troll")) }
	wantNext(t, anew(), "261025020001")
	set(time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC))
	wantNext(t, anew(), "261025010001")
	set(time.Date(2026, 10, 25, 2, 0, 0, 0, time.UTC))
	wantNext(t, anew(), "261025020002")
}

// An hour that is used up ends with the hour.
func TestHourUsedUp(t *testing.T) {
	st, set := at(time.Date(2026, 11, 1, 5, 10, 0, 0, time.UTC))
	s := opened(t, st, "{yyMMddHH}{1}", hourly("America/New_York"))
	all, err := s.Append(t.Context(), nil, 9)
	if err != nil || all[8].Text != "261101019" {
		t.Fatal(all, err)
	}
	var end *document.EndError
	if _, err := s.Next(t.Context()); !errors.As(err, &end) || end.Period != "26110101" || !end.NextAt.Equal(time.Date(2026, 11, 1, 7, 0, 0, 0, time.UTC)) {
		t.Fatalf("%v, %+v", err, end)
	}
	set(end.NextAt)
	wantNext(t, opened(t, st, "{yyMMddHH}{1}", hourly("America/New_York")), "261101021")
}

// A recovery raises every hour that may have been counted, of which the store may have forgotten the
// counter: also under another zone of before, where the hour has begun already.
func TestRecoverHours(t *testing.T) {
	st, set := at(time.Date(2026, 11, 20, 12, 30, 0, 0, time.UTC))
	s := opened(t, st, byHour, hourly("America/New_York"))
	wantNext(t, s, "261120070001")
	all, err := document.Recover(t.Context(), st, 100, nil)
	if err != nil || len(all) != 1 || all[0].Through != "26112102" || all[0].IsFull {
		t.Fatalf("%+v, %v", all, err)
	}
	again := opened(t, st, byHour, hourly("America/New_York"))
	wantNext(t, again, "261120070102")
	for hour := 8; hour < 30; hour++ { // it is 2 of the next day in UTC+14
		set(time.Date(2026, 11, 20, 5+hour, 30, 0, 0, time.UTC))
		n, err := again.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if raised := n.Period <= "26112102"; raised != (n.Count == 101) || !raised && n.Count != 1 {
			t.Errorf("%s: %s is raised: %v", n.Period, n.Text, raised)
		}
	}
}

// A number for which an hour has no room leaves none also to hours that have not begun here.
func TestRecoverHoursToTheEnd(t *testing.T) {
	st, _ := at(time.Date(2026, 11, 20, 12, 30, 0, 0, time.UTC))
	opened(t, st, byHour, hourly("America/New_York"))
	all, err := document.PlanRecovery(t.Context(), st, 9999, nil)
	if err != nil || !all[0].IsFull || all[0].Full != "26112102" {
		t.Errorf("%+v, %v", all, err)
	}
}

// Another system's last text of this hour, or of an hour before, begins a series; one of a later hour would
// have this hour begin at 1.
func TestAfterAnHour(t *testing.T) {
	for after, want := range map[string]string{"261120070041": "261120070042", "261120060041": "261120070001", "261120080041": "error"} {
		st := memory.NewClock(func() time.Time { return time.Date(2026, 11, 20, 12, 30, 0, 0, time.UTC) })
		_, err := document.Create(t.Context(), st, "invoice", &document.Options{Pattern: byHour, Zone: "America/New_York", After: after})
		var later *document.AfterError
		if want == "error" {
			if !errors.As(err, &later) || later.Period != "26112008" || later.Today != "26112007" {
				t.Errorf("after %s: %v", after, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		wantNext(t, opened(t, st, byHour, hourly("America/New_York")), want)
	}
}

// Show has the last text of this hour and of each later one, and Raise continues above them.
func TestShowHours(t *testing.T) {
	st, set := at(time.Date(2026, 11, 20, 12, 30, 0, 0, time.UTC))
	s := opened(t, st, byHour, hourly("America/New_York"))
	wantNext(t, s, "261120070001")
	set(time.Date(2026, 11, 20, 13, 30, 0, 0, time.UTC))
	wantNext(t, s, "261120080001")
	set(time.Date(2026, 11, 20, 12, 40, 0, 0, time.UTC))
	if _, err := document.Raise(t.Context(), st, "invoice", "261120070500"); err != nil {
		t.Fatal(err)
	}
	info, err := document.Show(t.Context(), st, "invoice")
	var texts []string
	for _, n := range info.Texts {
		texts = append(texts, n.Text)
	}
	if got := strings.Join(texts, " "); err != nil || got != "261120070500 261120080001" || info.Today != "26112007" {
		t.Errorf("%s, %s, %v", got, info.Today, err)
	}
}
