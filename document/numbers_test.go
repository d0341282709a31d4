package document

import (
	"errors"
	"fmt"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/memory"
)

// A document of digits only is a source of numbers.
func TestSource(t *testing.T) {
	st := memory.New()
	open := func(name, pattern string) *Series {
		t.Helper()
		if _, err := Create(t.Context(), st, name, &Options{Pattern: pattern}); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), st, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	src, err := open("bill", "7{4}").Source()
	if err != nil {
		t.Fatal(err)
	}
	one, err := src.Next(t.Context())
	all, err2 := src.Append(t.Context(), nil, 2)
	if got := fmt.Sprint(one, all); got != "70001 [70002 70003]" || err != nil || err2 != nil {
		t.Errorf("%s, %v, %v", got, err, err2)
	}
	if all, err := src.Append(t.Context(), all, 10_000); err == nil || len(all) != 2 {
		t.Errorf("more than there is room for: %v, %v", all, err)
	}
	var no *OptionError
	if _, err := open("invoice", "I{4}").Source(); !errors.As(err, &no) || no.Option != "pattern" {
		t.Errorf("texts with a letter are a source: %v", err)
	}
}

// A number is read though it has lost its zeros, and a text that was mistyped is known by what is right in it.
func TestParseID(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		id      int64
		want    string
	}{
		{"{yyyyMMdd}{6}", 20261123000001, "20261123000001 20261123 1"},
		{"{6}", 42, "000042  42"},
		{"{6+}", 42, "000042  42"},
		{"{1+}", 1000000, "1000000  1000000"},
		{"{yyDDD}{4}", 50010007, "050010007 05001 7"},
		{"{yyyyMMdd}{6}", 20261323000001, "error"},
		{"{yyyyMMdd}{6}", 42, "error"},
		{"I{6}", 42, "error"},
	} {
		p := must(t, tt.pattern)
		n, err := p.ParseID(firn.ID(tt.id))
		got := fmt.Sprint(n.Text, " ", n.Period, " ", n.Count)
		if err != nil {
			got = "error"
		}
		if got != tt.want || err == nil && int64(n.ID) != tt.id {
			t.Errorf("%s: %d is %s, %v; want %s", tt.pattern, tt.id, got, err, tt.want)
		}
	}
}

func TestClaims(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"INV-{yyyy}-{6}{luhn}", "INV-2026-0000425", true},
		{"INV-{yyyy}-{6}{luhn}", "INV-2026-0000424", true},
		{"INV-{yyyy}-{6}{luhn}", "INV-2026-00042", true},
		{"INV-{yyyy}-{6}{luhn}", "hello", false},
		{"{yyyy}-{6}{luhn}", "2026-0000424", true}, // all is right but the check
		{"{yyyy}-{6}{luhn}", "2026-00004240", false},
		{"{yyyy}-{6}", "2026-00042", false},
		{"7{4}{luhn}", "700010", true},
		{"7{4}{luhn}", "70001", false},
		{"{1+}{luhn}-X", "123456-X", true},
		{"{1+}{luhn}-X", "123456-Y", false},
	} {
		if got := must(t, tt.pattern).Claims(tt.text); got != tt.want {
			t.Errorf("%s claims %s: %v", tt.pattern, tt.text, got)
		}
	}
}
