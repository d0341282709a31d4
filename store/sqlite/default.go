package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// OpenDefault opens the file of [DefaultPath], as [Open] does, and makes its
// directory if need be. The command firn uses the same file where no store is
// named, so ids of one pool are unique among the command and all programs of this
// user on this host that call OpenDefault. Programs of other users and other hosts
// have other files.
//
// If the variable FIRN_STORE is set, OpenDefault returns an error: the command obeys the
// variable, and a program that took another store would make the same ids. Such a program
// opens the variable's store by open.URL.
func OpenDefault(ctx context.Context) (*Store, error) {
	if _, set := os.LookupEnv("FIRN_STORE"); set {
		return nil, errors.New("store/sqlite: FIRN_STORE names a store, and this program asks for the default file: open it by open.URL(ctx, os.Getenv(\"FIRN_STORE\")), or unset it")
	}
	path, err := DefaultPath()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("store/sqlite: the state directory of this user cannot be made: %w", err)
	}
	return Open(ctx, path)
}

// DefaultPath returns the path of the file that [OpenDefault] opens: ids.db in the
// state directory of this user, such as ~/.local/state/firn/ids.db. It makes
// nothing. In a container, and for a user who has no home, it returns a
// [*NoDefaultError].
func DefaultPath() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	return defaultPath(hostSigns(), runtime.GOOS, home)
}

func defaultPath(s signs, goos, home string) (string, error) {
	dir := stateDir(goos, s.getenv, home)
	if dir == "" {
		return "", &NoDefaultError{}
	}
	path := filepath.Join(dir, "ids.db")
	if sign := s.container(dir); sign != "" {
		return "", &NoDefaultError{Path: path, Container: sign}
	}
	return path, nil
}

// A NoDefaultError says why there is no default file here.
type NoDefaultError struct {
	Path      string // where it would be; empty: this user has no home directory
	Container string // by what this looks like a container; empty: it does not
}

func (e *NoDefaultError) Error() string {
	if e.Container == "" {
		return "store/sqlite: there is no default file, because this user has no home directory; name a path, or a store that is a server"
	}
	return fmt.Sprintf("store/sqlite: there is no default file in a container (%s): every new container would have its own, and make the same ids; "+
		"use a store that is a server, or Open with %q if that is on a volume of one container", e.Container, e.Path)
}

// stateDir is where a program keeps what should outlive it, by the custom of the
// operating system; empty if there is no such place.
func stateDir(goos string, getenv func(string) string, home string) string {
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
		return ""
	}
	return filepath.Join(base, filepath.FromSlash(below), "firn")
}
