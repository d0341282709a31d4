package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
)

// TestOpenDefault: where programs and the command meet that name no store.
func TestOpenDefault(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "LocalAppData"} {
		t.Setenv(name, dir)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if sign := hostSigns().container(dir); sign != "" {
		t.Skipf("there is no default file here: %s", sign)
	}
	for _, created := range []bool{true, false} {
		s, err := OpenDefault(t.Context())
		must(t, err)
		if s.Created() != created {
			t.Errorf("Created() = %v", s.Created())
		}
		if created {
			_, err = s.Put(t.Context(), "k", []byte("1"), store.Condition{})
			must(t, err)
		}
		must(t, s.Close())
	}
	path, err := DefaultPath()
	must(t, err)
	if !strings.HasPrefix(path, dir) || filepath.Base(path) != "ids.db" {
		t.Errorf("the file is %s", path)
	}
	fi, err := os.Stat(filepath.Dir(path))
	must(t, err)
	if fi.Mode().Perm()&0o077 != 0 {
		t.Errorf("the directory has mode %v", fi.Mode())
	}
	s := mustOpen(t, path)
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 1 || s.Created() {
		t.Errorf("opened by its path: %v, %v, created %v", l, err, s.Created())
	}
}

// TestNoDefault: in a container the file would be a private one of each replica.
func TestNoDefault(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "LocalAppData"} {
		t.Setenv(name, dir)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	_, err := OpenDefault(t.Context())
	var none *NoDefaultError
	if !errors.As(err, &none) || none.Container != "KUBERNETES_SERVICE_HOST is set" || !strings.Contains(err.Error(), none.Path) ||
		!strings.Contains(err.Error(), "use a store that is a server") {
		t.Errorf("in a pod: %v", err)
	}
	expectFiles(t, dir)

	nobody := signs{getenv: func(string) string { return "" }}
	if _, err := defaultPath(nobody, "linux", ""); !errors.As(err, &none) || none.Path != "" || !strings.Contains(err.Error(), "no home directory") {
		t.Errorf("without a home: %v", err)
	}
}

// The command obeys FIRN_STORE: a program that took the default file beside it would make
// the same ids.
func TestOpenDefaultBesideFirnStore(t *testing.T) {
	for _, url := range []string{"", "postgres://app@db/app"} {
		t.Setenv("FIRN_STORE", url)
		if s, err := OpenDefault(t.Context()); err == nil || !strings.Contains(err.Error(), "FIRN_STORE") {
			t.Errorf("FIRN_STORE=%s: %v, %v", url, s, err)
		}
	}
}
