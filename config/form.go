package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/public"
)

// A Form says which public form the ids of a series have. It comes from --as,
// as NAME or NAME:VALUE, or from a series in firn.yaml, as that or with a key for
// each value. Nothing is opened before open.
type Form struct {
	Series string            // whose ids they are; some forms depend on it
	Kind   *formKind         // nil: not said yet
	Values map[string]string // by key, those of formValues
}

// ParseForm reads a form as --as has it: NAME, or NAME:VALUE where the form takes a
// value that is no secret: opaque:PREFIX, cipher:ENCODING, reversed:ENCODING.
func ParseForm(text, series string) (*Form, error) {
	name, rest, more := strings.Cut(text, ":")
	s := &Form{Series: series, Values: map[string]string{}}
	if err := s.setKind(name); err != nil || !more {
		return s, err
	}
	if len(s.Kind.Takes) == 0 || s.Kind.Takes[0] == "salt" || s.Kind.Takes[0] == "alphabet" {
		return nil, faulty("form %s takes nothing behind a colon", name)
	}
	return s, s.set(s.Kind.Takes[0], rest)
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
		if !slices.Contains(s.Kind.Takes, key) {
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
	for _, key := range s.Kind.Takes {
		if v := s.Values[key]; v != "" && key != "salt" {
			text += " " + key + "=" + v
		}
	}
	return text
}

// Open makes the form, and reads its keys if it needs any. Warn is told who else can read
// them; nil: nobody is.
func (s *Form) Open(warn func(string)) (public.Form, error) {
	f, _, err := s.OpenKeyed(warn)
	return f, err
}

// OpenKeyed is Open, and returns a hash of each key by its number.
func (s *Form) OpenKeyed(warn func(string)) (public.Form, map[int][sha256.Size]byte, error) {
	if err := s.Check(); err != nil {
		return nil, nil, faulty("%w", err)
	}
	var keys []public.Key
	if s.Kind.Keyed {
		if s.Series == "" {
			return nil, nil, &NoSeriesError{s.Kind.Name}
		}
		var err error
		if keys, err = s.loadKeys(warn); err != nil {
			return nil, nil, err
		}
	}
	f, err := s.Kind.open(s, keys)
	if err != nil {
		return nil, nil, faulty("%s", phrase.WithoutPackage(err.Error()))
	}
	hashes := map[int][sha256.Size]byte{}
	for _, key := range keys {
		hashes[key.Number()] = sha256.Sum256([]byte(key.Secret()))
	}
	return f, hashes, nil
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
	listed := series // whose name is in firn.yaml, and in the texts
	if one, err := c.SeriesNamed(series); err == nil && one != nil {
		listed = one.Name.Text
	}
	if as.Text == AsConfigured && configured == nil {
		return nil, faulty("%s: series %q has no public form", as.From, series).
			advise("series: { %s: { public: opaque } } in firn.yaml, or --as opaque", yamlKey(listed))
	}
	spec := configured
	if as.Text != AsConfigured {
		var err error
		if spec, err = ParseForm(as.Text, listed); err != nil {
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
	if v.Text == "" || !spec.Kind.Keyed {
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

// FormOf returns the form of a series in firn.yaml, which a name has of its template, or nil.
func (c *Config) FormOf(series string) *Form {
	if c.File == nil {
		return nil
	}
	one, err := c.File.SeriesNamed(series)
	if err != nil {
		return nil
	}
	return one.Public
}

// AsConfigured is the --as that means the form of the series in firn.yaml.
const AsConfigured = "public"
