package open

import (
	"net/url"
	"regexp"
	"strings"
)

// hidden stands for what is taken out.
const hidden = "xxxxx"

// secretName finds options that carry secrets, by their names.
var secretName = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|auth`)

// Redact returns url without its password, and without the values of options
// that sound like secrets, for messages. It is given what people type: where it is
// no URL, or an unescaped password leaves doubt about its end, it hides too much.
func Redact(url string) string {
	if strings.HasPrefix(url, "sqlite:") || strings.HasPrefix(url, "memory:") {
		return url
	}
	// The password is what comes between the first colon behind the scheme and
	// the last @. Without "//" the word before that colon may be a user.
	rest := url
	scheme, authority, ok := strings.Cut(url, "://")
	if ok = ok && !strings.Contains(scheme, ":"); ok {
		scheme, rest = scheme+"://", authority
	} else {
		scheme = ""
	}
	if end := strings.LastIndexByte(rest, '@'); end >= 0 {
		user, password, ok := strings.Cut(rest[:end], ":")
		_, options, _ := strings.Cut(password, "?")
		switch {
		case strings.Contains(options, "="): // or the @ is a part of an option
			return scheme + user + ":" + hidden
		case ok:
			rest = user + ":" + hidden + rest[end:]
		}
	} else if ok {
		rest = redactHosts(rest)
	}
	before, query, ok := strings.Cut(rest, "?")
	if ok {
		query = "?" + redactOptions(query)
	}
	return scheme + redactPairs(before) + query
}

// redactHosts hides what stands in the place of a port and is none: the user and
// the password of a URL whose host was forgotten.
func redactHosts(rest string) string {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	hosts := strings.Split(rest[:end], ",")
	for i, h := range hosts {
		if j := strings.LastIndexByte(h, ':'); j > strings.LastIndexByte(h, ']') && strings.Trim(h[j+1:], "0123456789") != "" {
			hosts[i] = h[:j+1] + hidden
		}
	}
	return strings.Join(hosts, ",") + rest[end:]
}

// redactOptions hides the value of a secret option and what follows, which may be
// what is behind an unescaped & in it.
func redactOptions(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, _, _ := strings.Cut(part, "=")
		if meant, err := url.QueryUnescape(name); err != nil || secretName.MatchString(meant) {
			parts[i] = name + "=" + hidden
			return strings.Join(parts[:i+1], "&")
		}
	}
	return strings.Join(parts, "&")
}

// redactPairs hides the secrets in a text of "host=db password=s3", which some
// clients take.
func redactPairs(text string) string { return secretPair.ReplaceAllString(text, "${1}"+hidden) }

var secretPair = regexp.MustCompile(`(?i)([a-z_]*(?:pass|pwd|secret|token|key)[a-z_]*\s*=\s*)('(?:[^'\\]|\\.)*'?|[^\s]+)`)
