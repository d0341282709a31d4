package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/public/hashids"
	"github.com/firn-id/firn/server"
)

// patternOf are the options of a document.
func patternOf(t *testing.T, pattern string, form public.Form) *server.SeriesOptions {
	t.Helper()
	p, err := document.ParsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return &server.SeriesOptions{Pattern: p, Form: form, FormName: "hashids"}
}

// A document is read by its pattern, before any guess, and says its series.
func TestDecodeDocument(t *testing.T) {
	form, err := hashids.New(&hashids.Options{Salt: "this is my salt"})
	if err != nil {
		t.Fatal(err)
	}
	photo := server.Numbers("photo", nil, &server.SeriesOptions{Layout: firn.Default()})
	orders := server.Numbers("orders", nil, nil)
	bill := server.Texts("bill", nil, patternOf(t, "{yyyyMMdd}{6}", nil))
	link := server.Texts("bill", nil, patternOf(t, "{yyyyMMdd}{6}", form))
	short := server.Texts("short", nil, patternOf(t, "{6}", nil))
	checked := server.Texts("checked", nil, patternOf(t, "{yyyyMMdd}{4}{luhn}", nil))
	invoice := server.Texts("invoice", nil, patternOf(t, "INV-{yyyyMMdd}-{6}{luhn}", nil))
	tokens := []server.Token{{Name: "photo", Hash: server.HashToken("1"), Rights: map[string]server.Right{"photo": server.Decode}}}
	const flake = "175928847299117063"
	const flakeJSON = `{"id":"175928847299117063","layout":"firn","time":"2026-05-01T11:18:25.796Z","unix_ms":1777634305796,"worker":32,"seq":7}`
	const billJSON = `{"text":"20261123000001","kind":"document","period":"20261123","count":"1","id":"20261123000001","series":"bill"}`
	for _, tt := range []struct {
		name   string
		series []*server.Series
		token  string
		text   string
		want   string // the JSON of all readings, or what the error has
	}{
		{"before a guess", []*server.Series{bill, orders}, "", "20261123000001", billJSON},
		{"before an id that it cannot well be", []*server.Series{photo, bill}, "", "20261123000001", billJSON},
		{"an id", []*server.Series{photo, bill}, "", flake, flakeJSON},
		{
			"an id before a count that is too far",
			[]*server.Series{photo, server.Texts("any", nil, patternOf(t, "{1+}", nil))},
			"", flake,
			flakeJSON + `{"text":"` + flake + `","kind":"document","count":"` + flake + `","id":"` + flake + `","series":"any"}`,
		},
		{"both", []*server.Series{photo, short, invoice}, "", "999999", `{"text":"999999","kind":"document","count":"999999","id":"999999","series":"short"}`},
		{"two series", []*server.Series{server.Texts("b", nil, patternOf(t, "{yyyyMMdd}{6}", nil)), bill}, "", "20261123000001", strings.Replace(billJSON, "bill", "b", 1) + billJSON},
		{"in a form", []*server.Series{photo, link}, "", "NVmXnNQxVJ", `{"text":"NVmXnNQxVJ","kind":"document","period":"20261123","count":"1","id":"20261123000001","form":"hashids","series":"bill"}`},
		{"what the form hides", []*server.Series{photo, link}, "", "20261123000001", billJSON},
		{"a number of the form that is no document", []*server.Series{link}, "", "NV", `{"id":"1","form":"hashids","text":"NV"}`},
		{"a number without its zeros", []*server.Series{photo, short}, "", "42", `{"text":"42","kind":"document","count":"42","id":"42","series":"short"}`},
		{"a text", []*server.Series{photo, invoice}, "", "INV-20261120-0000420", `{"text":"INV-20261120-0000420","kind":"document","period":"20261120","count":"42","series":"invoice"}`},
		{"a wrong check", []*server.Series{photo, invoice}, "", "INV-20261120-0000421", "column 20: the check {luhn} is wrong: something was mistyped"},
		{"a wrong date", []*server.Series{photo, invoice}, "", "INV-20261320-0000420", `"20261320" is no date {yyyyMMdd}`},
		{"too short", []*server.Series{photo, invoice}, "", "INV-20261120-42", "it is too short for INV-{yyyyMMdd}-{6}{luhn}"},
		{"a number with a wrong check", []*server.Series{photo, checked}, "", "2026112000421", "the check {luhn} is wrong"},
		{"no document", []*server.Series{photo, invoice}, "", "hello", `"h" is not a digit`},
		{"of a series that one may not decode", []*server.Series{photo, invoice}, "1", "INV-20261120-0000420", `"I" is not a digit`},
	} {
		var o server.Options
		if tt.token != "" {
			o.Tokens = tokens
		}
		found, err := enter(t, newServer(t, &o, tt.series...), tt.token).Decode(tt.text)
		var got strings.Builder
		for _, d := range found {
			b, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			got.Write(b)
		}
		if err == nil && got.String() != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s says %s, %v; want %s", tt.name, tt.text, &got, err, tt.want)
		}
	}
}
