package main

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/firn-id/firn/internal/ui"
)

// publicForm reads the public form of a series: the text that --as takes, or a
// mapping with form and its values. It returns nil if there is a fault.
func (r *configReader) publicForm(what, series string, n *yaml.Node) *formSpec {
	before := len(r.faults)
	var s *formSpec
	var at place
	if n = resolved(n); n.Kind == yaml.MappingNode {
		s, at = &formSpec{series: series, values: map[string]string{}}, placeOf(n)
		r.mapping(what, n, func(key entry, value *yaml.Node) {
			r.formValue(s, what, key, value)
		})
	} else {
		v := r.scalar(what, n)
		if v.at.line == 0 {
			return nil
		}
		var err error
		if s, err = parseForm(v.text, series); err != nil {
			r.fault(v.at, "%s: %s", what, oneLine(err))
		}
		at = v.at
	}
	if len(r.faults) > before {
		return nil
	}
	if err := s.check(); err != nil {
		r.fault(at, "%s: %s", what, ui.WithoutPackage(err.Error()))
		return nil
	}
	return s
}

// formValue reads one key of a public form.
func (r *configReader) formValue(s *formSpec, what string, key entry, n *yaml.Node) {
	if _, known := formValues[key.text]; !known && key.text != "form" {
		keys := []string{"form"}
		for k := range formValues {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		r.unknown(key, "a public form", keys)
		return
	}
	v := r.scalar(what+"."+key.text, n)
	if v.at.line == 0 {
		return
	}
	var err error
	if key.text == "form" {
		err = s.setKind(v.text)
	} else {
		err = s.set(key.text, v.text)
	}
	switch {
	case err != nil:
		r.fault(v.at, "%s.%s: %s", what, key.text, oneLine(err))
	case key.text == "keys" && !strings.HasPrefix(v.text, keysFromVariable):
		s.values["keys"] = r.fromHere(v.text)
	}
}

// oneLine is an error with its hints.
func oneLine(err error) string {
	text := err.Error()
	if f, ok := err.(*ui.Failure); ok {
		for _, h := range f.Hints {
			text += "; " + h.Text
		}
	}
	return text
}
