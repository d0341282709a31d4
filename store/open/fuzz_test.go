package open

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

// Whatever stands for a URL, it is one or an error of its own, and neither the error
// nor what is shown of it has the password.
func FuzzURL(f *testing.F) {
	for scheme := range kinds {
		f.Add(scheme+"://u:", "@h/x")
		f.Add(scheme+"://u:", "@[::1]:70000/x?assume=durable")
		f.Add(scheme+"://h/x?password=", "&tls=1")
	}
	f.Add("sqlite:", "?x")
	f.Add("memory:", "")
	f.Add("postgres://u:", "%@h")
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "s3cr3t"
		text := before + secret + after
		open, err := parse(text)
		var wrong *URLError
		switch {
		case (err == nil) != (open != nil):
			t.Fatalf("%q: %v", text, err)
		case err != nil && (!errors.As(err, &wrong) || wrong.Reason == ""):
			t.Fatalf("%q: %T %v", text, err, err)
		}
		// What is a password for certain: behind the user, before the only @.
		scheme, user, ok := strings.Cut(before, "://")
		if _, known := kinds[scheme]; ok && known && len(user) > 1 && strings.IndexByte(user, ':') == len(user)-1 &&
			!strings.ContainsAny(user, "@/?#%,") && strings.HasPrefix(after, "@") && strings.Count(after, "@") == 1 {
			if shown := Redact(text); strings.Contains(shown, secret) || err != nil && strings.Contains(err.Error(), secret) {
				t.Fatalf("%q is shown as %q, %v", text, shown, err)
			}
		}
	})
}

// A password may have any character, escaped. It is the one that was meant, and no
// error shows it.
func FuzzPassword(f *testing.F) {
	f.Add("p@ss:word/?#&%", "/db")
	f.Add("x", "?nope=1")
	f.Fuzz(func(t *testing.T, password, rest string) {
		const secret = "s3cr3t"
		if strings.ContainsAny(rest, "@#") || strings.Contains(rest, secret) {
			return
		}
		password = secret + password
		for scheme, k := range kinds {
			authority := "//user:" + url.PathEscape(password) + "@h"
			a, err := k.address(scheme, authority+rest)
			if err == nil && a.password != password {
				t.Fatalf("%s: %q is read as %q", scheme, password, a.password)
			}
			if _, err = parse(scheme + ":" + authority + rest); err != nil && strings.Contains(err.Error(), secret) {
				t.Fatalf("%q: %v", authority+rest, err)
			}
		}
	})
}
