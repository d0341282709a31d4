package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/ui"
)

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ text, want string }{
		{"now", "2026-03-01T12:00:00Z"},
		{"2026-01-02", "2026-01-02T00:00:00Z"},
		{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"},
		{"2026-01-02T03:04:05.678901+07:00", "2026-01-01T20:04:05.678901Z"},
		{"-1h", "2026-03-01T11:00:00Z"},
		{"+1h30m", "2026-03-01T13:30:00Z"},
		{"-2d", "2026-02-27T12:00:00Z"},
		{"+1d", "2026-03-02T12:00:00Z"},
		{"0", "1970-01-01T00:00:00Z"},
		{"1735689600123", "2025-01-01T00:00:00.123Z"},
		{"", ""},
		{"yesterday", ""},
		{"1h", ""},
		{"-5", ""},
		{"--1h", ""},
		{"2026-13-01", ""},
		{"2026-01-02 03:04:05", ""},
		{"-1.5d", ""},
		{"99999999999999999999", ""},
	} {
		got, err := parseTime(tt.text, now)
		switch {
		case tt.want == "":
			var f *ui.Failure
			if !errors.As(err, &f) || f.Code != ui.ExitUsage || len(f.Hints) == 0 {
				t.Errorf("%q: %v, %v; want an error with a hint", tt.text, got, err)
			}
		case err != nil || got.UTC().Format(time.RFC3339Nano) != tt.want:
			t.Errorf("%q: %v, %v; want %s", tt.text, got, err, tt.want)
		}
	}
}

// The ends of an instant are those that the library gives.
func TestEncodeBounds(t *testing.T) {
	now := time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)
	for name, l := range firn.Presets() {
		if l.Check(now) != nil {
			continue
		}
		first, last, err := l.Bounds(now, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			last bool
			want firn.ID
		}{{false, first}, {true, last}} {
			o := encodeOptions{layout: layoutFlag{l}, time: "now", last: tt.last}
			if got, err := o.encode(now); err != nil || got != tt.want {
				t.Errorf("%s, last %v: %d, %v; want %d", name, tt.last, got, err, tt.want)
			}
		}
	}
}

// A store that was restored may have forgotten an import, also one with a worker that
// is kept out of the pool. Its ids would be made again.
func TestBackfillAfterRestore(t *testing.T) {
	t.Chdir(t.TempDir())
	firn := func(wantCode int, stdin string, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		args = append(args, "--store", "sqlite:ids.db")
		if code := run(args, strings.NewReader(stdin), &out, &errs); code != wantCode {
			t.Errorf("firn %q: code %d, want %d\n%s", args, code, wantCode, errs.String())
		}
		return out.String() + errs.String()
	}
	const day = "2025-04-01\n"
	firn(0, "", "pool", "create", "--new")
	first := firn(0, day, "backfill", "-", "--worker", "1022")
	firn(0, "", "store", "recover", "--yes")
	if again := firn(0, day, "backfill", "-", "--worker", "1022"); again != first {
		t.Errorf("the same lines gave %s, and then %s", first, again)
	}
	if got := firn(1, day, "backfill", "-", "--worker", "1023"); !strings.Contains(got, "may have been held") || !strings.Contains(got, "hint: --store none") {
		t.Errorf("printed %s", got)
	}
}
