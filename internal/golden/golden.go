// Package golden reads golden files in tests: what a version of firn has written, or promised, byte by byte. They are in
// testdata/VERSION of the package that owns the format. A file of a released version never changes.
package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Rewrite is the environment variable that has golden files of a version that is not released written anew.
const Rewrite = "FIRN_GOLDEN"

// Do is what an author does about a difference.
const Do = "Was this version released? Then never change the file: keep what was written readable, give the new form a new format number if an older firn cannot handle it, " +
	"and add its golden file under testdata/NEW-VERSION. Not released yet: FIRN_GOLDEN=write writes the file anew, and CHANGELOG.md says what changed."

// Read returns a golden file, such as testdata/0.1.0/records.txt.
func Read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Same fails unless a golden file has exactly these bytes. Do says what the author does about it; "" is [Do].
func Same(t testing.TB, file string, now []byte, do string) {
	t.Helper()
	if os.Getenv(Rewrite) == "write" && !released(t, file) {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, now, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if do == "" {
		do = Do
	}
	if was := Read(t, file); !bytes.Equal(was, now) {
		line, a, b := difference(string(was), string(now))
		t.Errorf("%s line %d is\n%.300q\nand this firn writes\n%.300q\n%s", file, line, a, b, do)
	}
}

// released says whether the changelog gives a day to the version that a file is of.
func released(t testing.TB, file string) bool {
	t.Helper()
	dir := "."
	for range 8 {
		if text, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md")); err == nil {
			version := filepath.Base(filepath.Dir(file))
			return !strings.Contains(string(text), "## ["+version+"] - Unreleased\n")
		}
		dir = filepath.Join(dir, "..")
	}
	t.Fatal("there is no CHANGELOG.md above this directory")
	return true
}

// difference is the first line in which two texts differ, counted from 1.
func difference(a, b string) (n int, in, other string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	if n < len(x) {
		in = x[n]
	}
	if n < len(y) {
		other = y[n]
	}
	return n + 1, in, other
}

// An Entry is a record of a store: its key, what its value says, and how that is read and written.
type Entry struct {
	Key  string
	Want any
	Read func(value []byte) (any, error)
	Text []byte // what this firn writes for Want
}

// Records holds a file of records, a line each with the key, a space and the value, against entries in the same order:
// each is read as what the entry wants, is written with the same bytes, and every field of a record's type has a value
// in one of them.
func Records(t testing.TB, file string, entries []Entry) {
	t.Helper()
	var now strings.Builder
	for _, e := range entries {
		now.WriteString(e.Key + " " + string(e.Text) + "\n")
	}
	Same(t, file, []byte(now.String()), "")
	lines := strings.Split(strings.TrimSuffix(string(Read(t, file)), "\n"), "\n")
	if len(lines) != len(entries) {
		t.Fatalf("%s has %d records, want %d", file, len(lines), len(entries))
	}
	var all []any
	for i, e := range entries {
		key, value, _ := strings.Cut(lines[i], " ")
		got, err := e.Read([]byte(value))
		if key != e.Key || err != nil || !reflect.DeepEqual(got, e.Want) {
			t.Errorf("%s: %s is read as\n%+v, %v\nwant\n%+v\n%s", file, key, got, err, e.Want, Do)
		}
		all = append(all, e.Want)
	}
	Filled(t, file, all...)
}

// Filled fails where a field of a type has no value in any of the values of that type: then the file does not hold how
// that field is written.
func Filled(t testing.TB, file string, values ...any) {
	t.Helper()
	filled := map[string]bool{}
	for _, v := range values {
		note(filled, reflect.ValueOf(v))
	}
	for field, is := range filled {
		if !is {
			t.Errorf("%s has no value of the field %s: add a record that has one", file, field)
		}
	}
}

// note says of each field of a value, and of the values in it, whether it has one.
func note(filled map[string]bool, v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			note(filled, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			name := v.Type().String() + "." + f.Name
			filled[name] = filled[name] || !v.Field(i).IsZero()
			note(filled, v.Field(i))
		}
	}
}
