package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/variable"
	"github.com/firn-id/firn/store"
)

// TestOpenDefault: where programs and the command meet that name no store.
func TestOpenDefault(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "LocalAppData", "AppData"} {
		t.Setenv(name, dir)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Chdir(dir)
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
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "LocalAppData", "AppData"} {
		t.Setenv(name, dir)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	_, err := OpenDefault(t.Context())
	var none *NoDefaultError
	if !errors.As(err, &none) || none.Container != "KUBERNETES_SERVICE_HOST is set" || strings.Contains(err.Error(), dir) || // a private file of each container
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

// The command refuses a variable that may name a store and is not FIRN_STORE.
func TestOpenDefaultBesideAMistypedVariable(t *testing.T) {
	t.Setenv(variable.Name("store-url"), "postgres://app@db/app")
	if s, err := OpenDefault(t.Context()); err == nil || !strings.Contains(err.Error(), "FIRN_STORE_URL is set, which firn does not read") {
		t.Errorf("%v, %v", s, err)
	}
}

// The command obeys the first firn.yaml that is there: a program that took the default file
// beside one that names a store would make the same ids.
func TestOpenDefaultBesideConfig(t *testing.T) {
	const named = "store: sqlite:other.db\n"
	for _, tt := range []struct {
		name    string
		env     string // FIRN_CONFIG
		files   map[string]string
		refused string // the file of the error; empty: the default file is opened
	}{
		{"none", "", nil, ""},
		{"here", "", map[string]string{"firn.yaml": named}, "firn.yaml"},
		{"of the user", "", map[string]string{"cfg/firn/firn.yaml": named}, "cfg/firn/firn.yaml"},
		{"named", "other.yaml", map[string]string{"other.yaml": named, "firn.yaml": "pools: {}\n"}, "other.yaml"},
		{"named, and not there", "other.yaml", map[string]string{"firn.yaml": "pools: {}\n"}, "other.yaml"},
		{"without a store", "", map[string]string{"firn.yaml": "pools: { default: {} }\n", "cfg/firn/firn.yaml": named}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			for _, name := range []string{"HOME", "LocalAppData"} {
				t.Setenv(name, dir)
			}
			for _, name := range []string{"XDG_CONFIG_HOME", "AppData"} {
				t.Setenv(name, filepath.Join(dir, "cfg"))
			}
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			if tt.env != "" {
				t.Setenv("FIRN_CONFIG", tt.env)
			}
			if sign := hostSigns().container(dir); sign != "" {
				t.Skipf("there is no default file here: %s", sign)
			}
			for name, text := range tt.files {
				must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
				must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			s, err := OpenDefault(t.Context())
			if tt.refused == "" {
				must(t, err)
				must(t, s.Close())
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%v, %v", s, err)
			}
			// The very file, as a program writes it: a relative path would be another one.
			config := filepath.Join(dir, tt.refused)
			if want := fmt.Sprintf("open.URL(ctx, %q)", "sqlite:"+filepath.Join(filepath.Dir(config), "other.db")); tt.files[tt.refused] == named && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%v; want %s", err, want)
			}
			if _, err := os.Stat(filepath.Join(dir, ".local")); err == nil {
				t.Error("the default file was made")
			}
		})
	}
}

// TestDefaultBesideLink: the command refuses a relative store in a symbolic link, and no error
// of a program names a file for it: each link would have another one.
func TestDefaultBesideLink(t *testing.T) {
	dir := t.TempDir()
	config, link := filepath.Join(dir, "a", "firn.yaml"), filepath.Join(dir, "b", "firn.yaml")
	for _, name := range []string{config, link} {
		must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	}
	must(t, os.WriteFile(config, []byte("store: sqlite:ids.db\n"), 0o600))
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: a symbolic link takes a privilege there")
	}
	must(t, os.Symlink(config, link))
	t.Setenv("FIRN_CONFIG", link)
	if err := noneNamed(); err == nil || !strings.Contains(err.Error(), "is a symbolic link") || strings.Contains(err.Error(), "open.URL") {
		t.Error(err)
	}
	t.Setenv("FIRN_CONFIG", config)
	if err := noneNamed(); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "a", "ids.db")) {
		t.Error(err)
	}
}

// TestOpenDefaultWithoutAHome: where no directory is, and none can be made, no file can be.
func TestOpenDefaultWithoutAHome(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: only Linux has a directory in which nobody makes one")
	}
	t.Setenv("HOME", "/proc/nonexistent")
	t.Chdir(t.TempDir())
	if _, err := OpenDefault(t.Context()); err == nil || !strings.Contains(err.Error(), openAnother) {
		t.Errorf("%v", err)
	}
}
