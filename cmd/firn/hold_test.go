package main

import (
	"bytes"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

func TestWorkerVariables(t *testing.T) {
	for layout, want := range map[string]map[string]string{
		"firn":       {"FIRN_WORKER": "37"},
		"classic":    {"FIRN_DATACENTER": "1", "FIRN_WORKER": "5"},
		"discord":    {"FIRN_WORKER": "1", "FIRN_PROCESS": "5"},
		"sonyflake":  {"FIRN_WORKER": "37"},
		"sid-single": {"FIRN_WORKER": "1"},
		"instagram":  {"FIRN_WORKER": "0"},
		"time:41@1ms,shard:4,a:2,b:3,seq:6,c:1;epoch=2025-01-01T00:00:00Z": {"FIRN_WORKER": "37", "FIRN_A": "2", "FIRN_B": "2", "FIRN_C": "1"},
	} {
		l := firn.MustLayout(layout)
		worker := 37 % l.Workers()
		got := workerVariables(l, worker)
		if !maps.Equal(got, want) {
			t.Errorf("%s, worker %d: %v, want %v", layout, worker, got, want)
		}
	}
}

// The variables are what an id of that worker is made of.
func TestWorkerVariablesAreFields(t *testing.T) {
	for name, l := range firn.Presets() {
		for worker := range min(l.Workers(), 2048) {
			id, err := l.Encode(firn.Parts{Tick: 1, Worker: worker})
			if err != nil {
				t.Fatal(err)
			}
			for variable, value := range workerVariables(l, worker) {
				f, ok := l.Field(strings.ToLower(strings.TrimPrefix(variable, "FIRN_")))
				if got := strconv.FormatInt(f.Of(id), 10); ok && got != value {
					t.Fatalf("%s, worker %d: %s is %s, and the field %s", name, worker, variable, value, got)
				}
			}
		}
	}
}

func TestMostGrace(t *testing.T) {
	for outage, want := range map[time.Duration]time.Duration{
		term.OutageDurable: 4500 * time.Millisecond,
		term.OutageLossy:   time.Second,
		2 * time.Second:    500 * time.Millisecond,
		time.Second:        0,
	} {
		if got := mostGrace(outage); got != want {
			t.Errorf("%s: %s, want %s", outage, got, want)
		}
	}
}

// A program has its grace before it is killed where what it issues meanwhile is
// covered by the grant, and none where it is not.
func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		name  string
		err   error
		left  time.Duration // of the grant
		grace time.Duration // that it gets
		text  string
	}{
		{"outage", &lease.OutageError{Err: errors.New("no route")}, time.Minute, 2 * time.Second, "no route"},
		{"lost", &lease.LostError{Worker: 7, Name: "b:1"}, time.Minute, 2 * time.Second, "app has to stop: worker 7 was taken by b:1\nfirn: hint: to see who has it: firn worker ls"},
		{"lost late", &lease.LostError{Worker: 7}, time.Second, 750 * time.Millisecond, "worker 7 was taken away"},
		{"at the horizon", &lease.OutageError{}, 100 * time.Millisecond, 0, "the store does not answer"},
		{"beyond it", &lease.OutageError{}, -time.Minute, 0, "the store does not answer"},
		{"forgotten", &store.ForgotError{Store: "sqlite:ids.db"}, time.Minute, 0, "\nfirn: hint: if there is a backup: stop all processes that use the store, put the backup back, then: firn store recover"},
		{"clock", &lease.StepError{Offset: time.Hour}, time.Minute, 0, "the system's clock has stepped by 1h0m0s\n"},
		{"late", &lease.LateError{}, time.Minute, 2 * time.Second, "it was not extended in time, because this process or its host was paused, or the store is slow\n"},
	} {
		synctest.Test(t, func(t *testing.T) { // in which no time passes
			h := &holding{args: []string{"app", "-x"}, grace: 2 * time.Second, horizon: time.Now().Add(tt.left)}
			f, grace := h.verdict(tt.err)
			if grace != tt.grace {
				t.Errorf("%s: it is killed in %s, want %s", tt.name, grace, tt.grace)
			}
			var errs bytes.Buffer
			report(&errs, nil, f)
			if !strings.HasPrefix(errs.String(), "firn: error: app has to stop: ") || !strings.Contains(errs.String(), tt.text) {
				t.Errorf("%s: %s", tt.name, errs.String())
			}
		})
	}
}
