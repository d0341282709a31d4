package config

import (
	"strings"
	"testing"
)

func TestTemplateFaults(t *testing.T) {
	for _, tt := range []struct{ series, want string }{
		{`"bill:*": { kind: document, pattern: "{1+}", names: 5 }`, ""},
		{`"bill:*": { kind: document, pattern: "{1+}" }, bill: { kind: sequence }, "bills:*": { kind: document, pattern: "{1+}" }`, ""},
		{`"bill:*": { kind: sequence }`, "a template is of kind document, and this is a sequence"},
		{`"bill*": { kind: document, pattern: "{1+}" }`, `a template of documents has a name such as "bill:*"`},
		{`"bill:*": { kind: document, pattern: "{1+}" }, "bill:42": { kind: sequence }`, "series bill:42 and bill:* could have one name"},
		{`"bill:42": { kind: flake }, "bill:*": { kind: document, pattern: "{1+}" }`, "series bill:* and bill:42 could have one name"},
		{`"bill:*": { kind: document, pattern: "{1+}" }, "bill:a:*": { kind: document, pattern: "{1+}" }`, "series bill:a:* and bill:* could have one name"},
		{`invoice: { kind: document, pattern: "{1+}", names: 5 }`, "names 5: series invoice is no template"},
		{`"bill:*": { kind: document, pattern: "{1+}", names: 100001 }`, "it is at most 100000"},
		{`orders: { kind: sequence, names: 5 }`, "names is for series of kind document"},
	} {
		f, err := Parse("firn.yaml", []byte("series: { "+tt.series+" }\n"))
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.series, err)
		case tt.want == "" && len(f.Twins()) > 0:
			t.Errorf("%s: %v", tt.series, f.Twins())
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %s", tt.series, err, tt.want)
		}
	}
}

// A right can be for all names that begin so.
func TestTemplateRights(t *testing.T) {
	const head = `series: { "bill:*": { kind: document, pattern: "{1+}" }, "order.a": { kind: sequence } }
tokens: { app: { hash: "sha256:0000000000000000000000000000000000000000000000000000000000000000", rights: { `
	for right, ok := range map[string]bool{`"bill:*"`: true, `"bill:42"`: true, `"order.*"`: true, `"bills:*"`: false, `"bill*"`: false, `"order.b"`: false} {
		if _, err := Parse("firn.yaml", []byte(head+right+": [issue] } } }\n")); (err == nil) != ok {
			t.Errorf("%s: %v", right, err)
		}
	}
}

// A name has the settings of its template.
func TestTemplateChosen(t *testing.T) {
	f, err := Parse("firn.yaml", []byte(`series: { "bill:*": { kind: document, pattern: "{yyyy}-{6}", zone: UTC, cache: 5, names: 7 } }`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(f, nil).Chosen("bill:42", nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := s.Options.Document; s.Name != "bill:42" || s.Defined() != "bill:*" || o.Template != "bill:*" || o.Pattern != "{yyyy}-{6}" || o.Zone != "UTC" || o.Cache != 5 || o.Names != 7 {
		t.Errorf("%+v", s)
	}
	if s, err = New(nil, nil).Chosen("bill:42", &Counter{Kind: Document, Pattern: "{6}", Template: "bill:*"}); err != nil || s.Defined() != "bill:*" {
		t.Errorf("%+v, %v", s, err)
	}
}
