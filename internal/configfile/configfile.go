// Package configfile says which firn.yaml the command reads where nobody names one, and
// whether it names a store. A program that opens a store without reading the file asks the
// same, so that program and command never take two stores without a word.
package configfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
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
	rootKey  = regexp.MustCompile(`^[a-z_]+ *:( |$)`) // one that is written without quotes, tags and anchors
	closing  = regexp.MustCompile(`^[]}, ]+$`)        // of a list or a map in brackets
)

// lineBreaks are all that YAML ends a line with. A file in UTF-16 has a zero beside each letter.
var lineBreaks = strings.NewReplacer("\x00", "", "\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// NamesStore reports whether a config may name a store. It is no parser of YAML: where a file
// is written in a way that it does not know, it says yes if the key store is anywhere.
func NamesStore(data []byte) bool {
	text := comments.ReplaceAllString(lineBreaks.Replace(string(data)), "")
	return storeKey.MatchString(text) && !storeIsBelow(text)
}

// storeIsBelow reports whether the root of a config is a map with a key on each line, and none
// of the keys is store: then the key store is in another map, such as that of the series.
func storeIsBelow(text string) bool {
	root := -1
	for _, line := range strings.Split(strings.TrimPrefix(text, "---\n"), "\n") {
		content := strings.TrimLeft(line, " ")
		indent := len(line) - len(content)
		switch {
		case strings.TrimSpace(content) == "":
			continue
		case content[0] == '\t':
			return false
		case root < 0 && rootKey.MatchString(content):
			root = indent
		case root >= 0 && (indent > root || closing.MatchString(content)):
			continue
		}
		if indent != root || !rootKey.MatchString(content) || strings.HasPrefix(content, "store") {
			return false
		}
	}
	return root >= 0
}
