package template_test

import (
	"slices"
	"testing"

	"github.com/firn-id/firn/internal/template"
)

func TestIs(t *testing.T) {
	for name, want := range map[string]bool{
		"bill:*": true, "a.b-*": true, "user_*": true, "1:*": true,
		"": false, "*": false, ":*": false, "bill*": false, "bill:": false, "bill:42": false, "bill:*:": false, "b*:*": false, "-a:*": false,
	} {
		if got := template.Is(name); got != want {
			t.Errorf("Is(%q) = %t", name, got)
		}
	}
}

func TestOf(t *testing.T) {
	for name, want := range map[string][]string{
		"bill:42": {"bill:*"}, "a:b:c": {"a:b:*", "a:*"}, "bill:": nil, "bill": nil, ":a": nil, "a::": {"a:*"}, "bill:*": nil,
	} {
		got := template.Of(name)
		if !slices.Equal(got, want) {
			t.Errorf("Of(%q) = %q, want %q", name, got, want)
		}
		for _, one := range got {
			if !template.Has(one, name) {
				t.Errorf("%s does not have %s", one, name)
			}
		}
	}
}

func TestClash(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"bill:*", "bill:42", true},
		{"bill:*", "bill:a:*", true},
		{"bill:*", "bill:*", false}, // it is the same one
		{"bill:*", "bill", false},
		{"bill:*", "bill:", false}, // it has no name behind the prefix
		{"bill:*", "bills:*", false},
		{"bill:*", "billing", false},
		{"bill", "bill", false},
	} {
		if template.Clash(c.a, c.b) != c.want || template.Clash(c.b, c.a) != c.want {
			t.Errorf("Clash(%q, %q) is not %t", c.a, c.b, c.want)
		}
	}
}
