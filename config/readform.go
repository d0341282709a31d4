package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/firn-id/firn/internal/phrase"
)

// publicForm reads the public form of a series: the text that --as takes, or a
// mapping with form and its values. It returns nil if there is a fault.
func (r *reader) publicForm(what, series string, n *yaml.Node) *Form {
	before := len(r.faults)
	var s *Form
	var at Place
	if n = resolved(n); n.Kind == yaml.MappingNode {
		s, at = &Form{Series: series, Values: map[string]string{}}, placeOf(n)
		r.mapping(what, n, func(key Entry, value *yaml.Node) {
			r.formValue(s, what, key, value)
		})
	} else {
		v := r.scalar(what, n)
		if v.At.Line == 0 {
			return nil
		}
		var err error
		if s, err = ParseForm(v.Text, series); err != nil {
			r.fault(v.At, "%s: %s", what, oneLine(err))
		}
		at = v.At
	}
	if len(r.faults) > before {
		return nil
	}
	if err := s.Check(); err != nil {
		r.fault(at, "%s: %s", what, phrase.WithoutPackage(err.Error()))
		return nil
	}
	return s
}

// formValue reads one key of a public form.
func (r *reader) formValue(s *Form, what string, key Entry, n *yaml.Node) {
	if _, known := formValues[key.Text]; !known && key.Text != "form" {
		keys := []string{"form"}
		for k := range formValues {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		r.unknown(key, "a public form", keys)
		return
	}
	v := r.scalar(what+"."+key.Text, n)
	if v.At.Line == 0 {
		return
	}
	var err error
	if key.Text == "form" {
		err = s.setKind(v.Text)
	} else {
		err = s.set(key.Text, v.Text)
	}
	switch {
	case err != nil:
		r.fault(v.At, "%s.%s: %s", what, key.Text, oneLine(err))
	case key.Text == "keys" && !strings.HasPrefix(v.Text, KeysFromVariable):
		s.Values["keys"] = r.fromHere(v.Text)
	}
}
