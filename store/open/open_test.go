package open_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

func TestURL(t *testing.T) {
	dir := t.TempDir()
	put := func(url, key string) {
		t.Helper()
		s, err := open.URL(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), key, []byte("1"), store.Condition{}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	put("sqlite:"+filepath.Join(dir, "x.db"), "c")
	put("sqlite://"+filepath.Join(dir, "x.db"), "d")

	s, err := open.URL(t.Context(), "sqlite:"+filepath.Join(dir, "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 2 {
		t.Errorf("two URLs of one file: %v, %v", l, err)
	}
}

func TestURLErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for url, want := range map[string]string{
		"":                    "no store is named; if the URL is from a variable such as FIRN_STORE, the variable is empty or not set",
		"ids.db":              "not a URL of a store; a SQLite file is written sqlite:ids.db",
		"/tmp/x.db":           "not a URL of a store; a SQLite file is written sqlite:/tmp/x.db",
		"ids":                 "not a URL of a store; there are ",
		"sqlite":              "not a URL of a store",
		"sqlite:":             "no path",
		"sqlite://":           "no path",
		"sqlite:x.db?mode=ro": "no options",
		"sqlite:" + filepath.Join(t.TempDir(), "no/x.db"): "does not exist",
		"memory:":                   "two processes would make the same ids",
		"oracle://scott:tiger@db/x": `no store is called "oracle"; there are `,
		"sqllite:ids.db":            `no store is called "sqllite"; is it sqlite?`,
		"SQLITE:x.db":               "no store is called",
		"oracle:scott:tiger@db?a=":  "no store is called",
	} {
		s, err := open.URL(t.Context(), url)
		if err == nil {
			s.Close()
			t.Errorf("%s: opened", url)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "tiger") {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open.URL(ctx, "sqlite:"+filepath.Join(t.TempDir(), "x.db")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
