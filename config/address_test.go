package config

import (
	"testing"
)

func TestParseAddress(t *testing.T) {
	for _, tt := range []struct {
		text, want string // want is "" for an error
		beyond     bool
	}{
		{"off", "off", false},
		{"127.0.0.1:6380", "127.0.0.1:6380", false},
		{"127.8.8.8:1", "127.8.8.8:1", false},
		{"localhost:0", "localhost:0", false},
		{"[::1]:6380", "[::1]:6380", false},
		{"unix:/run/firn/sock", "unix:/run/firn/sock", false},
		{":6380", ":6380", true},
		{"0.0.0.0:6380", "0.0.0.0:6380", true},
		{"[::]:6380", "[::]:6380", true},
		{"10.0.0.1:6380", "10.0.0.1:6380", true},
		{"[::ffff:10.0.0.1]:6380", "[::ffff:10.0.0.1]:6380", true},
		{"localhost.example.org:6380", "localhost.example.org:6380", true},
		{"", "", false},
		{"on", "", false},
		{"6380", "", false},
		{"host:", "", false},
		{"host:65536", "", false},
		{"host:-1", "", false},
		{"::1:6380", "", false},
		{"unix:", "", false},
	} {
		a, err := ParseAddress(tt.text)
		switch {
		case (err != nil) != (tt.want == ""):
			t.Errorf("%q: %v", tt.text, err)
		case err == nil && (a.String() != tt.want || a.Beyond() != tt.beyond):
			t.Errorf("%q is %s, beyond this host %v", tt.text, a, a.Beyond())
		}
	}
}
