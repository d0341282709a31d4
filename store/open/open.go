// Package open makes a store from a URL. It imports every driver; a program
// that knows its store imports that adapter instead.
package open

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/sqlite"
)

// supported names what URL opens, for errors.
const supported = "supported are sqlite:PATH and memory:"

// A Store owns the connection that was opened for it.
type Store struct {
	store.Store
	close func() error
}

// Close closes the connection. The Store must not be used afterwards.
func (s *Store) Close() error { return s.close() }

// URL opens the store that url names. ctx bounds the opening only.
//
//	sqlite:PATH      a file, relative to the working directory or absolute,
//	sqlite:///PATH   the same, absolute; see package sqlite
//	memory:          records that last as long as the Store; see package memory
//
// PATH is taken as it is: nothing in it is escaped. Errors show no passwords.
func URL(ctx context.Context, url string) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	open, err := parse(url)
	if err != nil {
		return nil, err
	}
	return open()
}

// Check returns what is wrong with a URL as such. It opens nothing.
func Check(url string) error {
	_, err := parse(url)
	return err
}

// parse returns what opens the store that url names.
func parse(url string) (open func() (*Store, error), err error) {
	scheme, rest, ok := strings.Cut(url, ":")
	if !ok {
		return nil, fmt.Errorf("store/open: %q is not a URL of a store; %s", Redact(url), supported)
	}
	switch scheme {
	case "sqlite":
		path, err := sqlitePath(rest)
		if err != nil {
			return nil, fmt.Errorf("store/open: %q: %w", url, err)
		}
		return func() (*Store, error) {
			s, err := sqlite.Open(path)
			if err != nil {
				return nil, err
			}
			return &Store{s, s.Close}, nil
		}, nil
	case "memory":
		if rest != "" {
			return nil, fmt.Errorf(`store/open: %q: it is "memory:" and nothing else`, url)
		}
		return func() (*Store, error) {
			return &Store{memory.New(), func() error { return nil }}, nil
		}, nil
	}
	return nil, fmt.Errorf("store/open: %q: no store is called %q; %s", Redact(url), scheme, supported)
}

// sqlitePath returns the path in what follows "sqlite:".
func sqlitePath(rest string) (string, error) {
	path, authority := strings.CutPrefix(rest, "//")
	switch {
	case path == "":
		return "", errors.New("no path; it is sqlite:PATH")
	case authority && !strings.HasPrefix(path, "/"):
		return "", fmt.Errorf("a path after // is absolute; for a relative one it is sqlite:%s", path)
	case strings.Contains(path, "?"):
		return "", errors.New("there are no options, and a path with a ? is not supported")
	}
	return path, nil
}

// hidden stands for what Redact takes out.
const hidden = "xxxxx"

// secretOption finds options of a URL that carry secrets, by their names.
var secretOption = regexp.MustCompile(`(?i)([?&][^=&]*(?:pass|pwd|secret|token|key)[^=&]*=)[^&]*`)

// Redact returns url without its password, and without the values of options
// that sound like secrets, for messages. Where an unescaped password leaves
// doubt about its end it hides too much.
func Redact(url string) string {
	if strings.HasPrefix(url, "sqlite:") || strings.HasPrefix(url, "memory:") {
		return url
	}
	// The password is what comes between the first colon behind the scheme and
	// the last @. Without "//" the word before that colon may be a user.
	rest := url
	scheme, authority, ok := strings.Cut(url, "://")
	if ok {
		scheme, rest = scheme+"://", authority
	} else {
		scheme = ""
	}
	if end := strings.LastIndexByte(rest, '@'); end >= 0 {
		if user, _, ok := strings.Cut(rest[:end], ":"); ok {
			rest = user + ":" + hidden + rest[end:]
		}
	}
	return scheme + secretOption.ReplaceAllString(rest, "${1}"+hidden)
}
