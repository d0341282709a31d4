package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		args      string
		code      int
		out, errs string // are in what is printed
	}{
		{"-n 30 -from 7", 0, "30  schedules in", ""},
		{"-n 30", 0, "0  repeats", ""},
		{"-seed 3", 0, "seed 3: store", ""},
		{"-names", 0, "like   the store is restored\n", ""},
		{"-like none", 2, "", `there is no situation "none"`},
		{"-wrong none", 2, "", `nobody does wrong "none"`},
		{"-n 0", 2, "", "at least 1"},
		{"-x", 2, "", "not defined"},
		{"all", 2, "", "no arguments"},
		{"-help", 0, "", "how many schedules"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			args := strings.Fields(tt.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "_", " ")
			}
			var out, errs bytes.Buffer
			code := run(args, &out, &errs)
			if code != tt.code || !strings.Contains(out.String(), tt.out) || !strings.Contains(errs.String(), tt.errs) {
				t.Errorf("%d: %.300s\n%s", code, out.String(), errs.String())
			}
		})
	}
}

// A repeat is found, and the command that is printed then shows it again.
func TestRepeatIsShownAgain(t *testing.T) {
	const wrong = "an operator says too small a loss of numbers"
	var out, errs bytes.Buffer
	if code := run([]string{"-n", "300", "-wrong", wrong}, &out, &errs); code != 1 {
		t.Fatalf("%d: %.300s\n%s", code, &out, &errs)
	}
	_, told, _ := strings.Cut(errs.String(), "to see it: go run ./internal/sim/run -seed ")
	seed, of, _ := strings.Cut(strings.TrimSpace(told), " ")
	if of != `-wrong "`+wrong+`"` {
		t.Fatalf("it says to run: %q", told)
	}
	out.Reset()
	errs.Reset()
	code := run([]string{"-seed", seed, "-wrong", wrong}, &out, &errs)
	if code != 1 || !strings.Contains(out.String(), "FAILED: repeated") || !strings.Contains(errs.String(), "seed "+seed+": repeated: ") {
		t.Errorf("%d: %.300s\n%s", code, &out, &errs)
	}
}
