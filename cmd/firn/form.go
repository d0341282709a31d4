package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/public/hashids"
	"github.com/firn-id/firn/public/sqids"
)

// A formSpec says which public form the ids of a series have. It comes from --as,
// as NAME or NAME:VALUE, or from a series in firn.yaml, as that or with a key for
// each value. Nothing is opened before open.
type formSpec struct {
	series string            // whose ids they are; some forms depend on it
	kind   *formKind         // nil: not said yet
	values map[string]string // by key, those of formValues
}

// A formKind is a form that there is.
type formKind struct {
	name  string
	about string
	takes []string // the values it takes; the first is what stands behind the colon
	keyed bool     // it needs keys, and to know the series
	open  func(s *formSpec, keys []public.Key) (public.Form, error)
}

// number is a form whose text may be that of another id.
func (k *formKind) number() bool { return k.name == "cipher" || k.name == "reversed" }

var formKinds = append(encodingKinds(),
	formKind{
		name: "reversed", about: "bits in reverse order, against hot ranges", takes: []string{"encoding"},
		open: func(s *formSpec, _ []public.Key) (public.Form, error) {
			return public.Reversed{Encoding: s.encoding()}, nil
		},
	},
	formKind{
		name: "cipher", about: "another number, without order or count; needs a key", takes: []string{"encoding", "keys"}, keyed: true,
		open: func(s *formSpec, keys []public.Key) (public.Form, error) {
			if len(keys) > 1 {
				return nil, fmt.Errorf("a cipher has one key, and there are %d: its numbers do not say which they are of", len(keys))
			}
			return public.NewCipher(s.series, keys[0], &public.CipherOptions{Encoding: s.encoding()})
		},
	},
	formKind{
		name: "opaque", about: "a text that nobody else can make; needs a key", takes: []string{"prefix", "keys"}, keyed: true,
		open: func(s *formSpec, keys []public.Key) (public.Form, error) {
			return public.NewOpaque(s.series, keys, &public.OpaqueOptions{Prefix: s.values["prefix"]})
		},
	},
	formKind{
		name: "hashids", about: "for links of Hashids", takes: []string{"salt", "alphabet", "min-length"},
		open: func(s *formSpec, _ []public.Key) (public.Form, error) {
			return hashids.New(&hashids.Options{Salt: s.values["salt"], Alphabet: s.values["alphabet"], MinLength: s.minLength()})
		},
	},
	formKind{
		name: "sqids", about: "for links of Sqids", takes: []string{"alphabet", "min-length"},
		open: func(s *formSpec, _ []public.Key) (public.Form, error) {
			return sqids.New(&sqids.Options{Alphabet: s.values["alphabet"], MinLength: uint8(s.minLength())})
		},
	},
)

func encodingKinds() []formKind {
	var all []formKind
	for _, e := range public.Encodings() {
		all = append(all, formKind{
			name: e.String(), about: "an encoding, which hides nothing",
			open: func(*formSpec, []public.Key) (public.Form, error) { return e, nil },
		})
	}
	return all
}

// formValues are the values of forms, as keys of firn.yaml, and the check of each.
var formValues = map[string]func(text string) error{
	"encoding": func(text string) error { _, err := public.ParseEncoding(text); return err },
	"prefix":   checkPrefix,
	"keys":     checkKeySource,
	"salt":     func(string) error { return nil },
	"alphabet": func(string) error { return nil },
	"min-length": func(text string) error {
		if n, err := strconv.Atoi(text); err != nil || strconv.Itoa(n) != text || n < 0 || n > hashids.MaxMinLength {
			return fmt.Errorf("it is 0 to %d, not %s", hashids.MaxMinLength, text)
		}
		return nil
	},
}

// checkPrefix returns what is wrong with the prefix of opaque ids, whatever their key is.
func checkPrefix(prefix string) error {
	key, err := public.NewKey(1)
	if err == nil && prefix == "" {
		err = errors.New("the prefix is empty")
	}
	if err == nil {
		_, err = public.NewOpaque("series", []public.Key{key}, &public.OpaqueOptions{Prefix: prefix})
	}
	return err
}

// formNames are the names of all forms.
func formNames() []string {
	names := make([]string, len(formKinds))
	for i := range formKinds {
		names[i] = formKinds[i].name
	}
	return names
}

// parseForm reads a form as --as has it: NAME, or NAME:VALUE where the form takes a
// value that is no secret: opaque:PREFIX, cipher:ENCODING, reversed:ENCODING.
func parseForm(text, series string) (*formSpec, error) {
	name, rest, more := strings.Cut(text, ":")
	s := &formSpec{series: series, values: map[string]string{}}
	if err := s.setKind(name); err != nil || !more {
		return s, err
	}
	if len(s.kind.takes) == 0 || s.kind.takes[0] == "salt" || s.kind.takes[0] == "alphabet" {
		return nil, ui.Bad("form %s takes nothing behind a colon", name)
	}
	return s, s.set(s.kind.takes[0], rest)
}

// setKind says which form it is.
func (s *formSpec) setKind(name string) error {
	if err := checkNoKey(name); err != nil {
		return err
	}
	i := slices.Index(formNames(), name)
	if i < 0 {
		f := ui.Bad("there is no form %q", name)
		if best := nearest.Name(name, formNames()); best != "" {
			return f.Hint("is it %s?", best)
		}
		return f.Hint("there are %s", strings.Join(formNames(), ", "))
	}
	s.kind = &formKinds[i]
	return nil
}

// set sets one value and checks it by itself.
func (s *formSpec) set(key, text string) error {
	check := formValues[key]
	if check == nil {
		return fmt.Errorf("a form has no %s", key)
	}
	if err := checkNoKey(text); err != nil {
		return err
	}
	if err := check(text); err != nil {
		return errors.New(ui.WithoutPackage(err.Error()))
	}
	s.values[key] = text
	return nil
}

// check returns what is wrong with all values together.
func (s *formSpec) check() error {
	if s.kind == nil {
		return fmt.Errorf("it does not say which form; there are %s", strings.Join(formNames(), ", "))
	}
	for key := range s.values {
		if !slices.Contains(s.kind.takes, key) {
			return fmt.Errorf("form %s has no %s", s.kind.name, key)
		}
	}
	if s.kind.name == "hashids" || s.kind.name == "sqids" {
		_, err := s.kind.open(s, nil) // which opens nothing, and says what is wrong with an alphabet
		return err
	}
	return nil
}

func (s *formSpec) encoding() public.Encoding {
	e, _ := public.ParseEncoding(s.values["encoding"]) // 0 is the default; it was checked
	return e
}

func (s *formSpec) minLength() int {
	n, _ := strconv.Atoi(s.values["min-length"]) // it was checked
	return n
}

// String says what it is, for a person, and nothing that is better kept: a salt is no
// secret worth the name, but whoever chose one may think so.
func (s *formSpec) String() string {
	text := s.kind.name
	for _, key := range s.kind.takes {
		if v := s.values[key]; v != "" && key != "salt" {
			text += " " + key + "=" + v
		}
	}
	return text
}

// open makes the form, and reads its keys if it needs any. Warnings go to errs.
func (s *formSpec) open(errs io.Writer) (public.Form, error) {
	if err := s.check(); err != nil {
		return nil, ui.Bad("%w", err)
	}
	var keys []public.Key
	if s.kind.keyed {
		if s.series == "" {
			return nil, ui.Bad("form %s needs the series of the ids: which?", s.kind.name).Hint("--series NAME")
		}
		var err error
		if keys, err = loadKeys(s.values["keys"], errs); err != nil {
			return nil, err
		}
	}
	f, err := s.kind.open(s, keys)
	if err != nil {
		return nil, ui.Bad("%s", ui.WithoutPackage(err.Error()))
	}
	return f, nil
}

// Keys are in a file, or in a variable: never on a command line, where every user
// of the host can read them.
const keysFromVariable = "env:"

func checkKeySource(source string) error {
	if name, ok := strings.CutPrefix(source, keysFromVariable); source == "" || ok && name == "" {
		return errors.New("it is a file, or env:NAME")
	}
	return nil
}

// writtenKey is how a key begins, wherever it stands in a text: whoever gives a whole
// key file in a variable gives comments too.
var writtenKey = regexp.MustCompile(`firn-key-[0-9]+:`)

// checkNoKey refuses a text with a key in it. No later error may repeat the text.
func checkNoKey(text string) error {
	if writtenKey.MatchString(text) {
		return errors.New("a key stands in a file or in a variable, and not here: FILE, or env:NAME")
	}
	return nil
}

// loadKeys reads keys from where --keys, FIRN_KEYS or firn.yaml say.
func loadKeys(source string, errs io.Writer) ([]public.Key, error) {
	if source == "" {
		return nil, ui.Bad("there is no key").Hint("name the file or the variable that has it: --keys FILE, or --keys env:NAME").
			Hint("%s", firstKey("firn.keys"))
	}
	if name, ok := strings.CutPrefix(source, keysFromVariable); ok {
		text := os.Getenv(name)
		if text == "" {
			return nil, ui.Failed("there are no keys in the variable %s", name).Hint("%s", keysBack).
				Hint("only if there never were any: firn public keygen")
		}
		keys, err := public.ParseKeys(text)
		if err != nil {
			return nil, ui.Failed("variable %s: %s", name, ui.WithoutPackage(err.Error()))
		}
		return keys, nil
	}
	keys, err := public.LoadKeys(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, noKeyFile(source)
	case err != nil:
		return nil, ui.Failed("%s", ui.WithoutPackage(err.Error()))
	}
	const others = 0o007
	if info, err := os.Stat(source); err == nil && runtime.GOOS != "windows" && info.Mode()&others != 0 {
		ui.PrintWarning(errs, "every user of this host can read the keys in %s: chmod 600 %s", source, phrase.ShellWord(source))
	}
	return keys, nil
}

// keysBack comes before any hint to make a key: what a lost key has written cannot be read
// with a new one, and nothing tells that the new one is another.
const keysBack = "if there was a key before, put it back, from a backup or from another host: without it nothing that it has written can be read"

// firstKey says how a first key is made.
func firstKey(path string) string {
	return "only if there never was a key: firn public keygen --out " + phrase.ShellWord(path)
}

// noKeyFile is the error for a key file that is not there.
func noKeyFile(path string) *ui.Failure {
	return ui.Failed("there is no key file %s", path).Hint("%s", keysBack).Hint("%s", firstKey(path))
}

// keysMissing returns an error where a server gives a form of a series that needs keys, and
// firn.yaml does not say where they are. A server takes no keys from anywhere else.
func (c *config) keysMissing(one *seriesConfig) *ui.Failure {
	if one.answers.text != "public" || one.public == nil || !one.public.kind.keyed || one.public.values["keys"] != "" {
		return nil
	}
	return ui.Bad("series %s: answers is public, and its form %s says nowhere where its keys are", one.name.text, one.public.kind.name).
		Hint("write the file that has the keys, or env:NAME, into %s: public: { form: %s, keys: firn.keys }", c.path, one.public.kind.name).
		Hint("%s", firstKey("firn.keys"))
}

// addForm adds --as and --keys to a command that writes or reads public forms.
func addForm(cmd *cobra.Command, usage string) {
	cmd.Flags().String("as", "", usage)
	cmd.Flags().String("keys", "", "the keys of a cipher or of opaque ids: a file, or env:NAME")
	if err := cmd.RegisterFlagCompletionFunc("as", completeForms); err != nil {
		panic(err) // the flag is not there
	}
}

func completeForms(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	all := []cobra.Completion{cobra.CompletionWithDesc(asConfigured, "what firn.yaml says of the series")}
	for _, k := range formKinds {
		all = append(all, cobra.CompletionWithDesc(k.name, k.about))
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// asConfigured is the --as that means the form of the series in firn.yaml.
const asConfigured = "public"

// form returns the form that --as asks for, or nil where it is not given: ids are
// then plain. A form that the series has in firn.yaml lends its values.
func (s *settings) form(series string) (*formSpec, error) {
	as := s.value("as", entry{}, "")
	if as.text == "" {
		return nil, nil
	}
	configured := s.formOf(series)
	if as.text == asConfigured && series == "" {
		return nil, ui.Bad("%s: the public form of which series?", as.from).Hint("--series NAME")
	}
	if as.text == asConfigured && configured == nil {
		return nil, ui.Bad("%s: series %q has no public form", as.from, series).
			Hint("series: { %s: { public: opaque } } in firn.yaml, or --as opaque", series)
	}
	spec := configured
	if as.text != asConfigured {
		var err error
		if spec, err = parseForm(as.text, series); err != nil {
			return nil, valueError(as.from, err)
		}
		if configured != nil && configured.kind == spec.kind {
			for key, text := range configured.values {
				if _, said := spec.values[key]; !said {
					spec.values[key] = text
				}
			}
		}
	}
	return s.withKeys(spec)
}

// withKeys returns spec with the keys of --keys, if they are given.
func (s *settings) withKeys(spec *formSpec) (*formSpec, error) {
	v := s.value("keys", entry{}, "")
	if v.text == "" || !spec.kind.keyed {
		return spec, nil
	}
	copied := &formSpec{spec.series, spec.kind, map[string]string{}}
	for key, text := range spec.values {
		copied.values[key] = text
	}
	if err := copied.set("keys", v.text); err != nil {
		return nil, valueError(v.from, err)
	}
	return copied, nil
}

// formOf returns the form of a series in firn.yaml, or nil.
func (s *settings) formOf(series string) *formSpec {
	if s.file == nil {
		return nil
	}
	for i := range s.file.series {
		if one := &s.file.series[i]; one.name.text == series {
			return one.public
		}
	}
	return nil
}
