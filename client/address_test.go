package client

import (
	"slices"
	"strings"
	"testing"
)

func TestAddress(t *testing.T) {
	for text, want := range map[string]address{
		"redis://127.0.0.1:6380":               {hosts: []string{"127.0.0.1:6380"}},
		"redis://a:1,b:2/":                     {hosts: []string{"a:1", "b:2"}},
		"rediss://:s3cr%40t@[::1]:6380/0":      {hosts: []string{"[::1]:6380"}, token: "s3cr@t", tls: true},
		"redis://default:s3cr3t@a.example:1":   {hosts: []string{"a.example:1"}, token: "s3cr3t"},
		"redis://:a%2Cb@a.example:1":           {hosts: []string{"a.example:1"}, token: "a,b"},
		"redis://:a:b@c@a.example:1":           {hosts: []string{"a.example:1"}, token: "a:b@c"},
		"rediss://:t@a.example:1,b.example:22": {hosts: []string{"a.example:1", "b.example:22"}, token: "t", tls: true},
		"unix:/run/firn/resp":                  {hosts: []string{"/run/firn/resp"}, unix: true},
		"unix:/run/a@b":                        {hosts: []string{"/run/a@b"}, unix: true},
		"unix:///run/firn/resp":                {hosts: []string{"/run/firn/resp"}, unix: true},
		"unix://:s3cr%40t@/run/firn/resp":      {hosts: []string{"/run/firn/resp"}, token: "s3cr@t", unix: true},
	} {
		a, err := parseAddress(text)
		if err != nil || !slices.Equal(a.hosts, want.hosts) || a.token != want.token || a.tls != want.tls || a.unix != want.unix {
			t.Errorf("%s: %v, %v", text, a, err)
		}
	}
	for text, says := range map[string]string{
		"":                      "begins with",
		"127.0.0.1:6380":        "begins with",
		"http://127.0.0.1:6380": "begins with",
		"redis://":              "server 1 of 1 is no HOST:PORT",
		"redis://localhost":     "server 1 of 1 is no HOST:PORT",
		"redis://:6380":         "server 1 of 1 is no HOST:PORT",
		"redis://a:1,,b:2":      "server 2 of 3 is no HOST:PORT",
		"redis://a:1/1":         "one database",
		"redis://a:1/photo":     "one database",
		"redis://a:1?tls=1":     "no HOST:PORT",
		"redis://s3cr3t@a:1":    "a colon and a token",
		"redis://:@a:1":         "a colon and a token",
		"redis://:%zz@a:1":      "a colon and a token",
		"redis://me:s3cr3t@a:1": "no users",

		"unix:run/firn/resp":           "not absolute",
		"unix:":                        "not absolute",
		"unix://:s3cr3t@run/firn/resp": "not absolute",
		"unix://s3cr3t@/run":           "not absolute",
		"unix://:@/run":                "a colon and a token",

		"redis://:s3cr3t@a:1,:s3cr3t@b:2":               "the token is given once",
		"redis://:s3cr3t,@a:1":                          "the token is given once",
		"redis://:s3cr3t%40a:1":                         "no HOST:PORT",
		"redis://:s3cr3t/a:1":                           "one database",
		"redis://" + strings.Repeat("a:1,", 64) + "a:1": "64 at most",
	} {
		_, err := parseAddress(text)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		} else if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("the token is in %v", err)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{MaxBlock: -1}, {MaxBlock: maxBlock + 1}, {Prefetch: -1}, {Prefetch: 11, MaxBlock: 10}, {Wait: -1}, {Timeout: -1},
	} {
		if _, err := Open(t.Context(), "redis://127.0.0.1:1", "photo", &o); err == nil || !strings.HasPrefix(err.Error(), "client: ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, series := range []string{"", "a\r\nPING"} {
		if _, err := Open(t.Context(), "redis://127.0.0.1:1", series, nil); err == nil {
			t.Errorf("series %q", series)
		}
	}
}
