package open

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/nearest"
)

// An address is the URL of a store with servers, taken apart.
type address struct {
	scheme   string
	user     string
	password string
	known    bool     // a user or a password is given
	hosts    []string // HOST or HOST:PORT, as given; none is an error unless the kind says otherwise
	path     string   // what is behind the hosts, from its slash on
	options  map[string]string
	secrets  []string // as written and as meant, to be kept out of errors
}

// escapes says how a character is written that has a meaning in URLs.
const escapes = "in a user or a password %, /, ? and # are written %25, %2F, %3F and %23"

// parseAddress takes apart what follows "SCHEME:". Its errors show nothing that
// may be secret.
func parseAddress(scheme, rest string, k kind) (*address, error) {
	a := &address{scheme: scheme, options: map[string]string{}}
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return nil, fmt.Errorf("it is %s", k.form)
	}
	if strings.Contains(rest, "#") {
		return nil, fmt.Errorf("a URL of a store has no #; %s", escapes)
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if !strings.Contains(authority, "@") && strings.Contains(path+query, "@") || strings.Contains(path, "@") {
		return nil, fmt.Errorf("an @ is at a place where it cannot be; %s", escapes)
	}
	var err error
	if a.path, err = url.PathUnescape(path); err != nil {
		return nil, fmt.Errorf("a %% behind the hosts begins no escape")
	}
	if err := a.parseUser(&authority); err != nil {
		return nil, err
	}
	if err := a.parseHosts(authority); err != nil {
		return nil, err
	}
	return a, a.parseOptions(query, append(slices.Clone(k.options), "assume"))
}

// parseUser takes "USER:PASSWORD@" off the authority.
func (a *address) parseUser(authority *string) error {
	at := strings.LastIndexByte(*authority, '@')
	if at < 0 {
		return nil
	}
	user, password, _ := strings.Cut((*authority)[:at], ":")
	*authority, a.known = (*authority)[at+1:], true
	a.hide(password)
	var err, err2 error
	a.user, err = url.PathUnescape(user)
	a.password, err2 = url.PathUnescape(password)
	if err != nil || err2 != nil {
		return errors.New(escapes)
	}
	a.hide(a.password)
	return nil
}

// parseHosts reads "HOST:PORT,HOST".
func (a *address) parseHosts(text string) error {
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		host, port := part, ""
		if i := strings.LastIndexByte(part, ':'); i > strings.LastIndexByte(part, ']') {
			host, port = part[:i], part[i+1:]
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return errors.New("the port is no number from 1 to 65535; " + escapes)
			}
		}
		bare := host
		if strings.HasPrefix(host, "[") {
			bare = strings.TrimSuffix(host[1:], "]")
			if net.ParseIP(bare) == nil {
				return fmt.Errorf("%s is no IPv6 address", host)
			}
		} else if strings.ContainsAny(host, ":[] \t%") {
			return fmt.Errorf("host %q: an IPv6 address is in brackets, as in [::1]:1234", host)
		}
		if bare == "" {
			return errors.New("a host is missing")
		}
		a.hosts = append(a.hosts, part)
	}
	return nil
}

// parseOptions reads "NAME=VALUE&NAME=VALUE".
func (a *address) parseOptions(query string, known []string) error {
	if query == "" {
		return nil
	}
	secret := false // one came before
	for part := range strings.SplitSeq(query, "&") {
		name, value, ok := strings.Cut(part, "=")
		name, err := url.QueryUnescape(name)
		if !ok || err != nil {
			return errors.New("after the ? it is NAME=VALUE&NAME=VALUE; a & in a value is written %26")
		}
		if !slices.Contains(known, name) {
			if secret {
				return errors.New("an unknown option follows a secret; a & in a value is written %26")
			}
			if best := nearest.Name(name, known); best != "" {
				return fmt.Errorf("no option %q; is it %s?", name, best)
			}
			slices.Sort(known)
			return fmt.Errorf("no option %q; there are %s", name, strings.Join(known, ", "))
		}
		if _, ok := a.options[name]; ok {
			return fmt.Errorf("option %s is given twice", name)
		}
		if secretName.MatchString(name) {
			secret = true
			a.hide(value)
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return fmt.Errorf("option %s: a %% begins no escape", name)
		}
		if secretName.MatchString(name) {
			a.hide(value)
		}
		a.options[name] = value
	}
	return nil
}

// hide keeps a text out of errors.
func (a *address) hide(secret string) {
	if secret != "" {
		a.secrets = append(a.secrets, secret)
	}
}

// scrub is the text of a client's error without secrets.
func (a *address) scrub(err error) string {
	text := err.Error()
	for _, s := range a.secrets {
		text = strings.ReplaceAll(text, s, hidden)
	}
	return text
}

// take returns an option, and that it was given.
func (a *address) take(name string) (string, bool) {
	value, ok := a.options[name]
	delete(a.options, name)
	return value, ok
}

// duration returns an option that is a time such as 5s, or the default.
func (a *address) duration(name string, standard time.Duration) (time.Duration, error) {
	text, ok := a.take(name)
	if !ok {
		return standard, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("option %s: %q is no time such as 5s", name, text)
	}
	return d, nil
}

// number returns an option that is a whole number from least to most.
func (a *address) number(name string, standard, least, most int) (int, error) {
	text, ok := a.take(name)
	if !ok {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("option %s: %q is no number from %d to %d", name, text, least, most)
	}
	return n, nil
}

// flag returns an option that is true or false.
func (a *address) flag(name string) (bool, error) {
	switch text, ok := a.take(name); {
	case !ok || text == "false":
		return false, nil
	case text == "true":
		return true, nil
	default:
		return false, fmt.Errorf("option %s: %q is not true or false", name, text)
	}
}

// addresses are the hosts with ports.
func (a *address) addresses(port string) []string {
	var all []string
	for _, h := range a.hosts {
		if strings.LastIndexByte(h, ':') <= strings.LastIndexByte(h, ']') {
			h += ":" + port
		}
		all = append(all, h)
	}
	return all
}
