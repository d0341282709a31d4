package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/public"
)

// KeysFromVariable begins the source of keys that are in a variable: "env:FIRN_KEYS". Keys
// are there or in a file, and never on a command line, where every user of the host reads them.
const KeysFromVariable = "env:"

func checkKeySource(source string) error {
	if name, ok := strings.CutPrefix(source, KeysFromVariable); source == "" || ok && name == "" {
		return errors.New("it is a file, or env:NAME")
	}
	return nil
}

// writtenKey is how a key begins, wherever it stands in a text: whoever gives a whole
// key file in a variable gives comments too.
var writtenKey = regexp.MustCompile(`firn-key-[0-9]+:`)

// CheckNoKey refuses a text with a key in it. No later error may repeat the text.
func CheckNoKey(text string) error {
	if writtenKey.MatchString(text) {
		return errors.New("a key stands in a file or in a variable, and not here: FILE, or env:NAME")
	}
	return nil
}

// loadKeys reads keys from where a flag, a variable or firn.yaml say. Warn is told who else can
// read them; nil: nobody is.
func (s *Form) loadKeys(warn func(string)) ([]public.Key, error) {
	source := s.Values["keys"]
	missing := &KeysError{Form: s.Kind.Name, Series: s.Series, Source: source}
	if source == "" {
		return nil, missing
	}
	if name, ok := strings.CutPrefix(source, KeysFromVariable); ok {
		text := os.Getenv(name)
		if text == "" {
			return nil, missing
		}
		keys, err := public.ParseKeys(text)
		if err != nil {
			return nil, faulty("variable %s: %s", name, phrase.WithoutPackage(err.Error()))
		}
		return keys, nil
	}
	keys, err := public.LoadKeys(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing
	case err != nil:
		return nil, faulty("%s", phrase.WithoutPackage(err.Error()))
	}
	const others = 0o007
	if info, err := os.Stat(source); err == nil && runtime.GOOS != "windows" && info.Mode()&others != 0 && warn != nil {
		warn(fmt.Sprintf("every user of this host can read the keys in %s: chmod 600 %s", source, phrase.ShellWord(source)))
	}
	return keys, nil
}

// KeysMissing returns an error where a server gives a form of a series that needs keys, and
// firn.yaml does not say where they are. A server takes no keys from anywhere else.
func (c *File) KeysMissing(one *Written) error {
	if one.Answers.Text != "public" || one.Public == nil || !one.Public.Kind.Keyed || one.Public.Values["keys"] != "" {
		return nil
	}
	return &KeysError{Form: one.Public.Kind.Name, Series: one.Name.Text, Path: c.Path}
}
