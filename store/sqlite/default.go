package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/firn-id/firn/internal/configfile"
	"github.com/firn-id/firn/internal/variable"
)

// OpenDefault opens the file of [DefaultPath], as [Open] does, and makes its
// directory if need be. The command firn uses the same file where no store is
// named, so ids of one pool are unique among the command and all programs of this
// user on this host that call OpenDefault. Programs of other users and other hosts
// have other files.
//
// OpenDefault returns an error where the command would take another store, and both would
// make the same ids: if the variable FIRN_STORE is set, or another one whose name begins so, as
// FIRN_STORE_URL, which may name a store too; and if the firn.yaml that the command reads
// names a store (FIRN_CONFIG, or else ./firn.yaml, the one in the user's ~/.config/firn, or the
// one in /etc/firn). Such a program opens the named store by open.URL.
func OpenDefault(ctx context.Context) (*Store, error) {
	if err := noneNamed(); err != nil {
		return nil, err
	}
	path, err := DefaultPath()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("store/sqlite: the directory of this user's default file cannot be made; %s (%w)", withoutDirectory(filepath.Dir(path)), err)
	}
	return Open(ctx, path)
}

// withoutDirectory says what to do where the directory of the default file cannot be made.
func withoutDirectory(dir string) string {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) { // so no file is there
		return openAnother
	}
	return "let this user enter and write it: another file makes the same ids"
}

// openAnother is what a program does whose user has no default file.
const openAnother = "Open one absolute path for all processes of this host, or use a store that is a server"

// noneNamed returns an error if the environment or a config names a store.
func noneNamed() error {
	if _, set := os.LookupEnv("FIRN_STORE"); set {
		return errors.New("store/sqlite: FIRN_STORE names a store, and this program asks for the default file: open it by open.URL(ctx, os.Getenv(\"FIRN_STORE\")), or unset it")
	}
	if name := variable.SetMistyped(); name != "" {
		return fmt.Errorf("store/sqlite: the variable %s is set, which firn does not read, and this program asks for the default file, which may be another store: open the store that is meant by open.URL, or unset %[1]s", name)
	}
	path, named := os.LookupEnv("FIRN_CONFIG")
	if !named {
		var err error
		if path, err = configfile.Find(); err != nil {
			return fmt.Errorf("store/sqlite: a firn.yaml may name a store, and cannot be read: %w", err)
		}
		if path == "" {
			return nil
		}
	}
	data, err := os.ReadFile(path)
	switch {
	case err != nil:
		return fmt.Errorf("store/sqlite: a firn.yaml may name a store, and cannot be read: %w", err)
	case configfile.NamesStore(data):
		if whole, err := filepath.Abs(path); err == nil {
			path = whole
		}
		if fi, err := os.Lstat(path); err == nil && fi.Mode()&os.ModeSymlink != 0 && relativeFile.Match(data) {
			return fmt.Errorf("store/sqlite: %s is a symbolic link, and names a store by a relative path: each link would have a store of its own, which makes the same ids; write an absolute path there", path)
		}
		return fmt.Errorf("store/sqlite: %s names a store, which the command firn takes here, and this program asks for the default file, so both would make the same ids: "+
			"open that store by open.URL%s", path, namedFile(path, data))
	}
	return nil
}

var relativeFile = regexp.MustCompile(`(?m)^store: *["']?sqlite:([^/"'#\s][^"'#\s]*)["']? *$`)

// namedFile says how the store of a config is written in a program, where a path is absolute:
// that of a config counts from the folder of the config.
func namedFile(config string, data []byte) string {
	if m := relativeFile.FindSubmatch(data); m != nil && filepath.IsAbs(config) && !filepath.IsAbs(string(m[1])) {
		return fmt.Sprintf("(ctx, %q)", "sqlite:"+filepath.Join(filepath.Dir(config), string(m[1])))
	}
	return "; \"firn config show\" shows it"
}

// DefaultPath returns the path of the file that [OpenDefault] opens:
// ~/.local/state/firn/ids.db, on macOS and Windows ids.db in the directory for such files.
// It makes nothing. In a container, and for a user who has no home, it returns a
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
		return "store/sqlite: there is no default file, because this user has no home directory; " + openAnother
	}
	return fmt.Sprintf("store/sqlite: there is no default file in a container (%s): each container would have its own, and make the same ids; "+
		"use a store that is a server, by open.URL, or, only if all processes that make these ids are on this host, Open a file in a directory of the host that all of them mount", e.Container)
}

// stateDir is where a program keeps what should outlive it, by the custom of the
// operating system; empty if there is no such place.
func stateDir(goos string, getenv func(string) string, home string) string {
	base, below := home, ""
	switch goos {
	case "windows":
		base = getenv("LocalAppData")
	case "darwin":
		below = "Library/Application Support"
	default:
		// Whatever XDG_STATE_HOME says: a shell, a desktop's sandbox and a service that set
		// it to different places would be stores that make the same ids.
		below = ".local/state"
	}
	if base == "" {
		return ""
	}
	return filepath.Join(base, filepath.FromSlash(below), "firn")
}
