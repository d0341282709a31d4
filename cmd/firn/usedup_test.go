package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// midday is a zone where it is neither just before nor just after midnight, and its offset.
func midday() (zone string, offset time.Duration) {
	if time.Now().UTC().Hour() < 12 {
		return "Etc/GMT-6", 6 * time.Hour
	}
	return "Etc/GMT+6", -6 * time.Hour
}

// A document with a date that is used up for today continues by itself with the next date: the error says
// so, to a program and to a person. One without a date does not, nor does a call for more than a date has.
func TestUsedUpForToday(t *testing.T) {
	emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+t.TempDir()+"/ids.db")
	zone, offset := midday()
	tomorrow := time.Now().UTC().Add(offset).Truncate(24 * time.Hour).Add(24*time.Hour - offset)
	mustAll(t, "series create daily --pattern U{yyyyMMdd}-{1} --zone "+zone, "series create plain --pattern V{1}",
		"next daily -n 6", "next plain -n 9")
	for args, again := range map[string]bool{
		"next daily -n 5 --json": true, "next daily -n 10 --json": false, "next plain --json": false,
	} {
		_, errs, code := called(t, strings.Fields(args)...)
		var said struct {
			Type   string
			Retry  bool
			Starts time.Time `json:"starts_at"`
			Hints  []string
			Series string
		}
		if err := json.Unmarshal([]byte(errs), &said); err != nil || code != 1 || said.Type != "series-ended" {
			t.Fatalf("%s: exit code %d, %v: %s", args, code, err, errs)
		}
		hint := strings.Contains(strings.Join(said.Hints, "\n"), "continues with the next date, from "+tomorrow.Format("2006-01-02T15:04:05"))
		if said.Retry != again || hint != again || said.Starts.Equal(tomorrow) != again || said.Starts.IsZero() == again {
			t.Errorf("%s: %s", args, errs)
		}
	}
}
