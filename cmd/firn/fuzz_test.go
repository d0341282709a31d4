package main

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/ui"
)

// FuzzParseTime reads any time, date, age or number; the same text is the same instant.
func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"now", "-1h", "+2d", "-2147483647d", "2026-01-01", "2026-01-01T00:00:00.5+07:00", "1763769600000", "9223372036854775807", "--1h", "-9223372036854775808ns", "0000-01-01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := parseTime(text, guessedAt)
		if err != nil {
			var wrong *ui.Failure
			if !errors.As(err, &wrong) || !at.IsZero() {
				t.Fatalf("%q: %s, %v", text, at, err)
			}
			return
		}
		if again, err := parseTime(text, guessedAt); err != nil || !again.Equal(at) {
			t.Fatalf("%q: %s, and then %s, %v", text, at, again, err)
		}
		if exact := at.UTC().Format(time.RFC3339Nano); at.Year() > 0 && at.Year() < 10_000 && at.UTC().Year() > 0 && at.UTC().Year() < 10_000 {
			if again, err := parseTime(exact, guessedAt); err != nil || !again.Equal(at) {
				t.Fatalf("%q: %s is %s, %v", text, exact, again, err)
			}
		}
		firn.Default().Tick(at)
	})
}

// FuzzParseListen reads any address to listen on: it is written as it is read again.
func FuzzParseListen(f *testing.F) {
	for _, s := range []string{"off", "unix:/x", "unix:", ":6380", "127.0.0.1:0", "[::1%lo]:6380", "6380", "a:65536", "[a]:1", "a:00001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := config.ParseAddress(text)
		if err != nil {
			if a != (config.Address{}) || err.Error() == "" {
				t.Fatalf("%q: %+v, %v", text, a, err)
			}
			return
		}
		if again, err := config.ParseAddress(a.String()); err != nil || again != a {
			t.Fatalf("%q: %+v is written %s and read as %+v, %v", text, a, a, again, err)
		}
		a.Beyond()
		curlURL(a, true)
		redisFlags(a)
		if _, port, err := net.SplitHostPort(a.At); a.Network == "tcp" && (err != nil || port == "") {
			t.Fatalf("%q: %+v", text, a)
		}
	})
}

// FuzzFlags reads what names workers, shards, servers and forms. A key or a password is in no error.
func FuzzFlags(f *testing.F) {
	for _, s := range []string{
		"1024", "512-1023", "0-9223372036854775807", "5-4", "0-9,12", "1-2147483647", "a=postgres://u:s3cr3t@h/d", "a=postgres://u:s3cr3t@h:x/d b",
		"opaque:tok", "cipher:base58", "reversed:hex", "hashids:x", "opaque:firn-key-1:AAAA", "sha256:" + "00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var o config.LeaseOptions
		if config.SetWorkers(&o, text) == nil && (o.Workers.First < 0 || o.Workers.Count() < 1) {
			t.Fatalf("%q is %s", text, o.Workers)
		}
		var n, again shardNumbers
		if n.Set(text) == nil {
			if err := again.Set(n.String()); err != nil || again.String() != n.String() {
				t.Fatalf("%q: %s is read as %s, %v", text, &n, &again, err)
			}
		}
		if form, err := config.ParseForm(text, "photo"); err != nil {
			if strings.Contains(err.Error(), "firn-key-1:") {
				t.Fatalf("%q: %v", text, err)
			}
		} else if form.Kind == nil {
			t.Fatalf("%q is no form", text)
		} else {
			form.Check()
		}
		var s serverFlag
		if err := s.Set(text); err == nil && len(s.servers) == 0 {
			t.Fatalf("%q is no server", text)
		}
	})
}

// FuzzDecoder reads any line that somebody has for an id: there are lines about it, or
// an error, and not both.
func FuzzDecoder(f *testing.F) {
	for _, s := range []string{
		"250045206433366833", "1", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "C232AB00-9414-11EC-B3C8-9F6BDECED846", "507f1f77bcf86cd799439011", "tok_3mJr7AoUXx2Wqd4KJLmNpQr",
		"9223372036854775808", "0", "\x00", "ffffffff-ffff-ffff-ffff-ffffffffffff", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "18446744073709551615",
	} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, text string, asJSON bool) {
		d := newDecoder(io.Discard, io.Discard, guessedAt)
		d.json = asJSON
		err := d.decode([]byte(text))
		if (err == nil) != (len(d.line) > 0) {
			t.Fatalf("%q: %q, %v", text, d.line, err)
		}
		if err == nil && d.line[len(d.line)-1] != '\n' {
			t.Fatalf("%q: %q has no end", text, d.line)
		}
	})
}
