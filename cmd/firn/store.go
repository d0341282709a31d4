package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/store/open"
)

// addStore adds --store.
func addStore(cmd *cobra.Command) {
	cmd.Flags().String("store", "", "where records are kept: sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE or another of docs/stores.md (a file in your state directory)")
}

// placeStore makes the path of --store absolute. It counts from the working
// directory on a command line, where a person sees both. A variable stays when
// the directory changes, so there a relative path is an error.
func placeStore(flags *pflag.FlagSet) error {
	f := flags.Lookup("store")
	if f == nil || !f.Changed {
		return nil
	}
	path, ok := strings.CutPrefix(f.Value.String(), "sqlite:")
	if !ok || path == "" || strings.HasPrefix(path, "//") || filepath.IsAbs(path) {
		return nil
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return failed("--store: %w", err)
	}
	url := "sqlite:" + whole
	if from := origin(f); from != "--store" {
		return bad("%s: %q is a relative path, which is another file in each working directory", from, f.Value).
			hint("%s=%s", from, shellWord(url))
	}
	return f.Value.Set(url)
}

var errNoStore = errors.New("there is no store")

// openURL opens the store of --store, or the implicit one. Where create is false
// there must be one already.
func openURL(ctx context.Context, url string, create bool) (*open.Store, error) {
	if url == "" {
		path, err := implicitStore(hostSigns(), create)
		if err != nil {
			return nil, err
		}
		url = "sqlite:" + path
	}
	if strings.HasPrefix(url, "memory:") {
		return nil, bad("--store %s forgets with this process: the next would make the same ids", url).hint("--store sqlite:PATH")
	}
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok && !create {
		if _, err := os.Stat(strings.TrimPrefix(path, "//")); errors.Is(err, fs.ErrNotExist) {
			return nil, failed("%w %s", errNoStore, url).hint("firn next --store %s makes one with the first id", shellWord(url))
		}
	}
	s, err := open.URL(ctx, url)
	if errors.As(err, new(*open.URLError)) {
		return nil, badStore(err)
	}
	return s, err
}

// badStore says what is wrong with the URL of a store.
func badStore(err error) error {
	return bad("--store: %s", withoutPackage(err.Error())).hint("--store sqlite:ids.db, or postgres://USER:PASSWORD@HOST/DATABASE; docs/stores.md has them all")
}

// implicitStore returns the path of the store that is used where none is named:
// a file in the user's state directory, so that all processes of one user on
// one host share it. In a container it is refused, because each would have its
// own.
func implicitStore(s signs, create bool) (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	dir, err := stateDir(runtime.GOOS, s.getenv, home)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "ids.db")
	if why := s.container(dir); why != "" {
		return "", failed("no --store given, and this looks like a container (%s): its state directory would be "+
			"empty for every new one, and two would take the same worker", why).
			hint("--store sqlite:%s to insist", path)
	}
	if create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", failed("no --store given, and the state directory cannot be made: %w", err).
				hint("--store sqlite:PATH")
		}
	}
	return path, nil
}

// stateDir is where a program keeps what should outlive it, by the custom of the
// operating system.
func stateDir(goos string, getenv func(string) string, home string) (string, error) {
	base, below := "", ""
	switch goos {
	case "windows":
		base = getenv("LocalAppData")
	case "darwin":
		base, below = home, "Library/Application Support"
	default:
		// A relative path is invalid, says the XDG specification, and ignored.
		if base = getenv("XDG_STATE_HOME"); !filepath.IsAbs(base) {
			base, below = home, ".local/state"
		}
	}
	if base == "" {
		return "", failed("no --store given, and this user has no home directory").hint("--store sqlite:PATH")
	}
	return filepath.Join(base, filepath.FromSlash(below), "firn"), nil
}
