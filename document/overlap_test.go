package document

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/sqlite"
)

func TestOverlaps(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"INV-{yyyyMMdd}-{6}", "INV-{yyyyMMdd}-{6}", true},
		{"INV-{6}", "INV-{8+}", true}, // the first can be widened
		{"INV-{6}", "ORD-{6}", false},
		{"INV-{6}", "INV-{yyyy}-{6}", false},
		{"INV-{yyyyMMdd}-{6}", "INV-{yyyyMM}-{6}", false},
		{"INV-{yyyyMMdd}{6}", "INV-{yyyyMM}{6}", true},
		{"INV-{yyDDD}-{6}", "INV-{5}-{yyyy}", true},
		{"A{3}", "A7{3}", true},
		{"A7{3}", "A8{3}", false},
		{"{yyyy}{6}", "{6}", true},
		{"R{6}{luhn}", "R{6}", true},
		{"01{6}", "1{6}", true},    // as numbers
		{"01{6}x", "1{6}x", false}, // as texts
		{"№{6}", "№{6}", true},
		{"{6}/{yyyy}", "{6}-{yyyy}", false},
		{"A{yyyy-MM-dd}{6}", "A{yyyy-MM}-{3}", true},
		{"A{yyyy-MM-dd}/{6}", "A{yyyyMMdd}/{6}", false},
		{"A{yyMMdd}{HH}{4}", "A{yyMMddHH}{6}", true},
		{"A{yyyyMMdd}/{6}", "A{yyMMdd}{HH}/{6}", true},
		{"A{yyyyMMddHH}/{6}", "A{yyMMddHH}/{6}", false},
	} {
		for _, pair := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			if got := must(t, pair[0]).Overlaps(must(t, pair[1])); got != tt.want {
				t.Errorf("%s and %s: %t", pair[0], pair[1], got)
			}
		}
	}
}

// A text of one pattern that the other reads too: then the patterns overlap.
func TestOverlapsFindsEveryCommonText(t *testing.T) {
	patterns := []string{
		"INV-{6}", "INV-{yyyy}{2}", "{yyyyMMdd}{6}", "{yyyyMM}{8}", "{yyDDD}{4}", "{9}", "{1+}{luhn}", "1{5}", "A{1+}", "A{yyyy}{1+}", "A1{1+}{mod97}",
		"{yyMMdd}{6}", "{yyMMdd}{HH}{4}", "{yyyyMMddHH}{2}", "A{yyyy-MM-dd}{3}", "A{yyyy-MM}-{5}",
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		p, q := must(t, patterns[rng.IntN(len(patterns))]), must(t, patterns[rng.IntN(len(patterns))])
		period := ""
		if p.date != nil {
			r := dated.Rules{Date: p.date, Zone: time.UTC}
			period = r.Period(time.Date(2026, 11, 25, rng.IntN(24), 0, 0, 0, time.UTC))
		}
		text := p.number(period, 1+rng.Int64N(p.max)).Text
		if _, err := q.Parse(text); err == nil && !p.Overlaps(q) {
			t.Fatalf("%s and %s both have %s", p, q, text)
		}
	}
}

// A series that was renamed would begin again, and repeat every text of today.
func TestCreateRefusesTwins(t *testing.T) {
	ctx := t.Context()
	st := memory.New()
	pattern := &Options{Pattern: "INV-{yyyyMMdd}-{8}", Zone: "UTC"}
	if _, err := Create(ctx, st, "invoice", pattern); err != nil {
		t.Fatal(err)
	}
	_, err := Create(ctx, st, "invoices", pattern)
	var overlap *OverlapError
	if !errors.As(err, &overlap) || overlap.Others[0] != "invoice" {
		t.Fatal(err)
	}
	if _, err := Create(ctx, st, "receipt", &Options{Pattern: "R-{8}"}); err != nil {
		t.Error(err)
	}
	claimed := *pattern
	claimed.MayEqual = []string{"invoice"}
	if in, err := Create(ctx, st, "test", &claimed); err != nil || len(in.MayEqual) != 1 {
		t.Error(in, err)
	}
	if _, err := Widen(ctx, st, "test", &Options{Pattern: "INV-{yyyyMMdd}-{9}", Zone: "UTC"}); err != nil {
		t.Error(err)
	}
	if in, err := Show(ctx, st, "test"); err != nil || len(in.MayEqual) != 1 {
		t.Error(in, err)
	}
}

// A file creates a missing series when it is opened, but not one that repeats another's texts.
func TestOpenRefusesTwins(t *testing.T) {
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ids.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := Open(t.Context(), st, "invoice", &Options{Pattern: "INV-{6}"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(t.Context(), st, "invoices", &Options{Pattern: "INV-{6}"}); !errors.As(err, new(*OverlapError)) {
		t.Error(err)
	}
}
