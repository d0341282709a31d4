// Package mutants takes the rules that make ids unique out of firn's own files, one at a
// time, and lets the simulation, or the tests of the package, look for what follows. A rule
// that nothing misses is one that nothing proves.
//
// No file of the repository is changed: the programs are built with go build -overlay.
package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Mutant is firn without one rule.
type Mutant struct {
	Name string // what is broken, in words
	File string // relative to the repository
	Old  string // occurs once in the file
	New  string

	// With is the name of the mutant of a second rule that alone is enough: this one is
	// found when both are broken.
	With string

	// Like is the situation of the simulation in which this one is looked for; empty: in
	// those of the product.
	Like string

	// Tests find it, and not the simulation: the package, and what go test -run is given.
	Package, Tests string
}

// Named returns a mutant.
func Named(name string) (Mutant, bool) {
	for _, m := range All {
		if m.Name == name {
			return m, true
		}
	}
	return Mutant{}, false
}

// changes are the replacements that make a mutant.
func (m Mutant) changes() ([]Mutant, error) {
	if m.With == "" {
		return []Mutant{m}, nil
	}
	other, ok := Named(m.With)
	if !ok {
		return nil, fmt.Errorf("%s: there is no mutant %q", m.Name, m.With)
	}
	return []Mutant{m, other}, nil
}

// sources are the changed files of a mutant by their paths in the repository at root.
func (m Mutant) sources(root string) (map[string]string, error) {
	changes, err := m.changes()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, c := range changes {
		path := filepath.Join(root, filepath.FromSlash(c.File))
		text, ok := files[path]
		if !ok {
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, c.Old); n != 1 {
			return nil, fmt.Errorf("%s: its text occurs %d times in %s, and must once", c.Name, n, c.File)
		}
		files[path] = strings.Replace(text, c.Old, c.New, 1)
	}
	return files, nil
}

// Overlay writes the files of a mutant to dir, where they have the paths that they have in the repository,
// and returns what go build -overlay takes.
func (m Mutant) Overlay(root, dir string) (string, error) {
	files, err := m.sources(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, text := range files {
		name, err := filepath.Rel(root, path)
		if err != nil {
			return "", err
		}
		copied := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[path] = copied
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o600)
}
