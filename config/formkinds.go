package config

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/public/hashids"
	"github.com/firn-id/firn/public/sqids"
)

// A formKind is a form that there is.
type formKind struct {
	Name  string
	About string
	Takes []string // the values it takes; the first is what stands behind the colon
	Keyed bool     // it needs keys, and to know the series
	open  func(s *Form, keys []public.Key) (public.Form, error)
}

// Number is a form whose text may be that of another id.
func (k *formKind) Number() bool { return k.Name == "cipher" || k.Name == "reversed" }

// FormKinds are the public forms that there are.
var FormKinds = append(encodingKinds(),
	formKind{
		Name: "reversed", About: "bits in reverse order, against hot ranges", Takes: []string{"encoding"},
		open: func(s *Form, _ []public.Key) (public.Form, error) {
			return public.Reversed{Encoding: s.encoding()}, nil
		},
	},
	formKind{
		Name: "cipher", About: "another number, without order or count; needs a key", Takes: []string{"encoding", "keys"}, Keyed: true,
		open: func(s *Form, keys []public.Key) (public.Form, error) {
			if len(keys) > 1 {
				return nil, fmt.Errorf("a cipher has one key, and there are %d: its numbers do not say which they are of", len(keys))
			}
			return public.NewCipher(s.Series, keys[0], &public.CipherOptions{Encoding: s.encoding()})
		},
	},
	formKind{
		Name: "opaque", About: "a text that nobody else can make; needs a key", Takes: []string{"prefix", "keys"}, Keyed: true,
		open: func(s *Form, keys []public.Key) (public.Form, error) {
			return public.NewOpaque(s.Series, keys, &public.OpaqueOptions{Prefix: s.Values["prefix"]})
		},
	},
	formKind{
		Name: "hashids", About: "for links of Hashids", Takes: []string{"salt", "alphabet", "min-length"},
		open: func(s *Form, _ []public.Key) (public.Form, error) {
			return hashids.New(&hashids.Options{Salt: s.Values["salt"], Alphabet: s.Values["alphabet"], MinLength: s.minLength()})
		},
	},
	formKind{
		Name: "sqids", About: "for links of Sqids", Takes: []string{"alphabet", "min-length"},
		open: func(s *Form, _ []public.Key) (public.Form, error) {
			return sqids.New(&sqids.Options{Alphabet: s.Values["alphabet"], MinLength: uint8(s.minLength())})
		},
	},
)

// checkForm returns why a series cannot have a public form; nil if it can. Every form writes all
// numbers that an int64 has room for, and no pattern of digits only gives another.
func (o *CounterOptions) checkForm(kind string, f *Form) error {
	if kind != Document || f == nil {
		return nil
	}
	p, err := document.ParsePattern(o.Document.Pattern)
	if err == nil && !p.IsNumeric() {
		err = fmt.Errorf("a public form is of a number, and the texts of %s are none; those of a pattern of digits only are, such as {yyyyMMdd}{6}", p)
	}
	return err
}

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
