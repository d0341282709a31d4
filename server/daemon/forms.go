package daemon

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
)

// A server reads the keys of public forms when it reads its settings, and at no other time: a file
// that is being replaced has no effect until SIGHUP.

// forms are the public form of a series, open.
type forms struct {
	open interface {
		Append(dst []byte, id firn.ID) ([]byte, error)
		Parse(text string) (firn.ID, error)
	}
	keys     map[int][sha256.Size]byte // hashes, by number
	warnings []string
}

// warn tells who else can read the keys.
func (f *forms) warn(tell func(string)) {
	if tell == nil {
		return
	}
	for _, text := range f.warnings {
		tell(text)
	}
}

// openForms reads the keys of the public forms, before any store is made or asked.
func (p *plan) openForms() error {
	for _, d := range p.series {
		if err := d.openForms(); err != nil {
			return err
		}
	}
	return nil
}

func (d *outlet) openForms() (err error) {
	tell := func(text string) { d.forms.warnings = append(d.forms.warnings, text) }
	switch {
	case d.Form != nil:
		d.forms.open, d.forms.keys, err = d.Form.OpenKeyed(tell)
		return err
	case d.Reads == nil:
		return nil
	}
	d.forms.open, d.forms.keys, err = d.Reads.OpenKeyed(tell)
	if err != nil { // the server gives ids without it, as before
		d.forms.open = &unreadForm{d.Name, d.Reads.Values["prefix"], err}
		if d.Reads.Values["keys"] != "" {
			tell(fmt.Sprintf("the server does not read the public ids of series %s: %s", d.Name, phrase.Reason(err)))
		}
	}
	return nil
}

// An unreadForm is the form of a series whose keys the server does not have.
type unreadForm struct {
	series, prefix string
	err            error
}

// Append is never called: no answer is in this form.
func (f *unreadForm) Append(dst []byte, _ firn.ID) ([]byte, error) { return dst, f.err }

// Parse says which setting is missing, where the text may be one of the form.
func (f *unreadForm) Parse(text string) (firn.ID, error) {
	why := fmt.Sprintf("this server cannot read the public ids of series %s: %s", f.series, phrase.Reason(f.err))
	var keys *config.KeysError
	if errors.As(f.err, &keys) && keys.Source == "" {
		why = fmt.Sprintf("this server does not have the keys of series %s: its firn.yaml needs public: { form: opaque, keys: FILE } there", f.series)
	}
	offset := 0
	if f.prefix != "" && strings.HasPrefix(text, f.prefix+"_") {
		offset = len(f.prefix) + 1
	}
	return 0, &firn.SyntaxError{Kind: "opaque", Text: text, Offset: offset, Reason: why}
}

// usedKeys are the keys that a server has used, as hashes by series and number. It forgets
// none while the server runs: texts under a key that was taken out are still there.
type usedKeys map[usedKey][sha256.Size]byte

type usedKey struct {
	series, form string
	number       int // 0: of a cipher, whose numbers do not say which key they are of
}

// with returns the keys with those of a plan, or an error if one of these has the number of another
// secret: what was given under that would be read wrongly, or not at all.
func (u usedKeys) with(p *plan) (usedKeys, error) {
	all := maps.Clone(u)
	if all == nil {
		all = usedKeys{}
	}
	for _, d := range p.series {
		form := d.Form
		if form == nil {
			form = d.Reads
		}
		for number, hash := range d.forms.keys {
			at := usedKey{d.Name, form.Kind.Name, number}
			if form.Kind.Name == "cipher" {
				at.number = 0
			}
			if had, ok := all[at]; ok && had != hash {
				return nil, otherKey(d.Name, form, number)
			}
			all[at] = hash
		}
	}
	return all, nil
}

// otherKey is the error of a key that was replaced.
func otherKey(series string, form *config.Form, number int) error {
	source := form.Values["keys"]
	if form.Kind.Name == "cipher" {
		return wrongSettings(fmt.Sprintf("series %s: the key in %s is another one than this server has used: each number that was given under the old key would be read as another id", series, source),
			"put the old key back; a cipher has one key for ever")
	}
	add := "firn public keygen --append --out " + phrase.ShellWord(source)
	if strings.HasPrefix(source, config.KeysFromVariable) {
		add = "firn public keygen, and write the key with a number of its own behind the old one"
	}
	return wrongSettings(fmt.Sprintf("series %s: key %d in %s has another secret than the key %d that this server has used: no text that was given under the old one could be read", series, number, source, number),
		fmt.Sprintf("put the old key %d back; a new key comes beside it, with another number: %s", number, add))
}
