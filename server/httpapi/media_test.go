package httpapi

import "testing"

func TestChoose(t *testing.T) {
	const json, text, bytes = "application/json", "text/plain", "application/octet-stream"
	for _, tt := range []struct {
		accept []string
		want   string // "" is none
	}{
		{nil, json},
		{[]string{""}, json},
		{[]string{"*/*"}, json},
		{[]string{"application/json"}, json},
		{[]string{"Application/JSON; charset=utf-8"}, json},
		{[]string{"application/*"}, json},
		{[]string{"text/plain"}, text},
		{[]string{"text/*, application/json;q=0.9"}, text},
		{[]string{"text/plain;q=0.5, application/octet-stream;q=0.7"}, bytes},
		{[]string{"text/plain", "application/json"}, json}, // ours, of two as welcome
		{[]string{"*/*;q=0.1, text/plain"}, text},
		{[]string{"text/plain;q=0, */*"}, json},
		{[]string{"application/json;q=0, */*"}, text},
		{[]string{"application/json;q=0, */*, text/plain;q=0.1"}, bytes},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, json}, // a browser
		{[]string{"application/json;q=x"}, ""},
		{[]string{"image/png"}, ""},
		{[]string{",,;;"}, ""},
	} {
		got := ""
		if m := choose(tt.accept); m != nil {
			got = m.accept[0]
		}
		if got != tt.want {
			t.Errorf("Accept %q: %q, want %q", tt.accept, got, tt.want)
		}
	}
}
