package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/public/hashids"
	"github.com/firn-id/firn/public/sqids"
)

// A Form says which public form the ids of a series have. It comes from --as,
// as NAME or NAME:VALUE, or from a series in firn.yaml, as that or with a key for
// each value. Nothing is opened before open.
type Form struct {
	Series string            // whose ids they are; some forms depend on it
	Kind   *formKind         // nil: not said yet
	Values map[string]string // by key, those of formValues
}

// A formKind is a form that there is.
type formKind struct {
	Name  string
	About string
	takes []string // the values it takes; the first is what stands behind the colon
	keyed bool     // it needs keys, and to know the series
	open  func(s *Form, keys []public.Key) (public.Form, error)
}

// Number is a form whose text may be that of another id.
func (k *formKind) Number() bool { return k.Name == "cipher" || k.Name == "reversed" }

var FormKinds = append(encodingKinds(),
	formKind{
		Name: "reversed", About: "bits in reverse order, against hot ranges", takes: []string{"encoding"},
		open: func(s *Form, _ []public.Key) (public.Form, error) {
			return public.Reversed{Encoding: s.encoding()}, nil
		},
	},
	formKind{
		Name: "cipher", About: "another number, without order or count; needs a key", takes: []string{"encoding", "keys"}, keyed: true,
		open: func(s *Form, keys []public.Key) (public.Form, error) {
			if len(keys) > 1 {
				return nil, fmt.Errorf("a cipher has one key, and there are %d: its numbers do not say which they are of", len(keys))
			}
			return public.NewCipher(s.Series, keys[0], &public.CipherOptions{Encoding: s.encoding()})
		},
	},
	formKind{
		Name: "opaque", About: "a text that nobody else can make; needs a key", takes: []string{"prefix", "keys"}, keyed: true,
		open: func(s *Form, keys []public.Key) (public.Form, error) {
			return public.NewOpaque(s.Series, keys, &public.OpaqueOptions{Prefix: s.Values["prefix"]})
		},
	},
	formKind{
		Name: "hashids", About: "for links of Hashids", takes: []string{"salt", "alphabet", "min-length"},
		open: func(s *Form, _ []public.Key) (public.Form, error) {
			return hashids.New(&hashids.Options{Salt: s.Values["salt"], Alphabet: s.Values["alphabet"], MinLength: s.minLength()})
		},
	},
	formKind{
		Name: "sqids", About: "for links of Sqids", takes: []string{"alphabet", "min-length"},
		open: func(s *Form, _ []public.Key) (public.Form, error) {
			return sqids.New(&sqids.Options{Alphabet: s.Values["alphabet"], MinLength: uint8(s.minLength())})
		},
	},
)

func encodingKinds() []formKind {
	var all []formKind
	for _, e := range public.Encodings() {
		all = append(all, formKind{
			Name: e.String(), About: "an encoding, which hides nothing",
			open: func(*Form, []public.Key) (public.Form, error) { return e, nil },
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
	names := make([]string, len(FormKinds))
	for i := range FormKinds {
		names[i] = FormKinds[i].Name
	}
	return names
}

// ParseForm reads a form as --as has it: NAME, or NAME:VALUE where the form takes a
// value that is no secret: opaque:PREFIX, cipher:ENCODING, reversed:ENCODING.
func ParseForm(text, series string) (*Form, error) {
	name, rest, more := strings.Cut(text, ":")
	s := &Form{Series: series, Values: map[string]string{}}
	if err := s.setKind(name); err != nil || !more {
		return s, err
	}
	if len(s.Kind.takes) == 0 || s.Kind.takes[0] == "salt" || s.Kind.takes[0] == "alphabet" {
		return nil, faulty("form %s takes nothing behind a colon", name)
	}
	return s, s.set(s.Kind.takes[0], rest)
}

// setKind says which form it is.
func (s *Form) setKind(name string) error {
	if err := CheckNoKey(name); err != nil {
		return err
	}
	i := slices.Index(formNames(), name)
	if i < 0 {
		f := faulty("there is no form %q", name)
		if best := nearest.Name(name, formNames()); best != "" {
			return f.advise("is it %s?", best)
		}
		return f.advise("there are %s", strings.Join(formNames(), ", "))
	}
	s.Kind = &FormKinds[i]
	return nil
}

// set sets one value and checks it by itself.
func (s *Form) set(key, text string) error {
	check := formValues[key]
	if check == nil {
		return fmt.Errorf("a form has no %s", key)
	}
	if err := CheckNoKey(text); err != nil {
		return err
	}
	if err := check(text); err != nil {
		return errors.New(phrase.WithoutPackage(err.Error()))
	}
	s.Values[key] = text
	return nil
}

// Check returns what is wrong with all values together.
func (s *Form) Check() error {
	if s.Kind == nil {
		return fmt.Errorf("it does not say which form; there are %s", strings.Join(formNames(), ", "))
	}
	for key := range s.Values {
		if !slices.Contains(s.Kind.takes, key) {
			return fmt.Errorf("form %s has no %s", s.Kind.Name, key)
		}
	}
	if s.Kind.Name == "hashids" || s.Kind.Name == "sqids" {
		_, err := s.Kind.open(s, nil) // which opens nothing, and says what is wrong with an alphabet
		return err
	}
	return nil
}

func (s *Form) encoding() public.Encoding {
	e, _ := public.ParseEncoding(s.Values["encoding"]) // 0 is the default; it was checked
	return e
}

func (s *Form) minLength() int {
	n, _ := strconv.Atoi(s.Values["min-length"]) // it was checked
	return n
}

// String says what it is, for a person, and nothing that is better kept: a salt is no
// secret worth the name, but whoever chose one may think so.
func (s *Form) String() string {
	text := s.Kind.Name
	for _, key := range s.Kind.takes {
		if v := s.Values[key]; v != "" && key != "salt" {
			text += " " + key + "=" + v
		}
	}
	return text
}

// Open makes the form, and reads its keys if it needs any. Warn is told who else can read
// them; nil: nobody is.
func (s *Form) Open(warn func(string)) (public.Form, error) {
	if err := s.Check(); err != nil {
		return nil, faulty("%w", err)
	}
	var keys []public.Key
	if s.Kind.keyed {
		if s.Series == "" {
			return nil, &NoSeriesError{s.Kind.Name}
		}
		var err error
		if keys, err = s.loadKeys(warn); err != nil {
			return nil, err
		}
	}
	f, err := s.Kind.open(s, keys)
	if err != nil {
		return nil, faulty("%s", phrase.WithoutPackage(err.Error()))
	}
	return f, nil
}

// Keys are in a file, or in a variable: never on a command line, where every user
// of the host can read them.
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
			return nil, fmt.Errorf("variable %s: %s", name, phrase.WithoutPackage(err.Error()))
		}
		return keys, nil
	}
	keys, err := public.LoadKeys(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing
	case err != nil:
		return nil, errors.New(phrase.WithoutPackage(err.Error()))
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
	if one.Answers.Text != "public" || one.Public == nil || !one.Public.Kind.keyed || one.Public.Values["keys"] != "" {
		return nil
	}
	return &KeysError{Form: one.Public.Kind.Name, Series: one.Name.Text, Path: c.Path}
}

// Form returns the form that --as asks for, or nil where it is not given: ids are
// then plain. A form that the series has in firn.yaml lends its values.
func (c *Config) Form(series string) (*Form, error) {
	as := c.Value("as", Entry{}, "")
	if as.Text == "" {
		return nil, nil
	}
	configured := c.FormOf(series)
	if as.Text == AsConfigured && series == "" {
		return nil, &ValueError{as.From, &NoSeriesError{}}
	}
	if as.Text == AsConfigured && configured == nil {
		return nil, faulty("%s: series %q has no public form", as.From, series).
			advise("series: { %s: { public: opaque } } in firn.yaml, or --as opaque", series)
	}
	spec := configured
	if as.Text != AsConfigured {
		var err error
		if spec, err = ParseForm(as.Text, series); err != nil {
			return nil, &ValueError{as.From, err}
		}
		if configured != nil && configured.Kind == spec.Kind {
			for key, text := range configured.Values {
				if _, said := spec.Values[key]; !said {
					spec.Values[key] = text
				}
			}
		}
	}
	return c.WithKeys(spec)
}

// WithKeys returns spec with the keys of --keys, if they are given.
func (c *Config) WithKeys(spec *Form) (*Form, error) {
	v := c.Value("keys", Entry{}, "")
	if v.Text == "" || !spec.Kind.keyed {
		return spec, nil
	}
	copied := &Form{spec.Series, spec.Kind, map[string]string{}}
	for key, text := range spec.Values {
		copied.Values[key] = text
	}
	if err := copied.set("keys", v.Text); err != nil {
		return nil, &ValueError{v.From, err}
	}
	return copied, nil
}

// FormOf returns the form of a series in firn.yaml, or nil.
func (c *Config) FormOf(series string) *Form {
	if c.File == nil {
		return nil
	}
	for i := range c.File.Series {
		if one := &c.File.Series[i]; one.Name.Text == series {
			return one.Public
		}
	}
	return nil
}

// AsConfigured is the --as that means the form of the series in firn.yaml.
const AsConfigured = "public"
