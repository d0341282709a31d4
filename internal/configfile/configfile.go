// Package configfile says which firn.yaml the command reads where nobody names one, and
// whether it names a store. A program that opens a store without reading the file asks the
// same, so that program and command never take two stores without a word.
package configfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
)

// Here is the config of the working directory.
const Here = "firn.yaml"

// Paths returns the places where a config is looked for, in this order.
func Paths(goos string, getenv func(string) string, home string) []string {
	paths := []string{Here}
	dir := getenv("XDG_CONFIG_HOME")
	switch {
	case filepath.IsAbs(dir):
	case goos == "windows":
		dir = getenv("AppData")
	case home != "":
		dir = filepath.Join(home, ".config")
	default:
		dir = ""
	}
	if dir != "" {
		paths = append(paths, filepath.Join(dir, "firn", "firn.yaml"))
	}
	if goos != "windows" {
		paths = append(paths, "/etc/firn/firn.yaml")
	}
	return paths
}

// Find returns the first config that is there, or "". An error says that one may be there
// and cannot be looked at: nobody should continue without the store that it may name.
func Find() (path string, err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	for _, path := range Paths(runtime.GOOS, os.Getenv, home) {
		_, err := os.Stat(path)
		switch {
		case err == nil:
			return path, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return "", err
		}
	}
	return "", nil
}

var (
	comments = regexp.MustCompile(`(?m)^[ \t]*#.*$`)
	storeKey = regexp.MustCompile(`\bstore["']?\s*:`)
)

// NamesStore reports whether a config may name a store. It is no parser of YAML: it also
// says yes where the key store is in a place where it names none.
func NamesStore(data []byte) bool {
	data = bytes.ReplaceAll(data, []byte{0}, nil) // a file in UTF-16 has one beside each letter
	return storeKey.Match(comments.ReplaceAll(data, nil))
}
