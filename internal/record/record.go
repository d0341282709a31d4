// Package record is how firn writes what it keeps in a store: as JSON with the number of
// its format, under keys that begin with the kind of thing and have its name in them.
package record

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
)

// Format is the number of the format that this version writes, and the only one that it
// reads.
const Format = 1

// A Value is a record as Go has it.
type Value interface {
	Version() int  // the number of its format, "v" in JSON
	Fault() string // what of it cannot be; "" where nothing is wrong
}

// Read reads a record. Its error is a [*store.FormatError].
func Read[T Value](rec store.Record) (v T, err error) {
	err = json.Unmarshal(rec.Value, &v)
	if err == nil && v.Version() == Format {
		if fault := v.Fault(); fault != "" {
			return *new(T), &store.FormatError{Key: rec.Key, Reason: fault}
		}
		return v, nil
	}
	return *new(T), &store.FormatError{Key: rec.Key, Reason: unreadable(rec.Value, err)}
}

// unreadable says why a record cannot be read. That a later firn wrote it says more than
// which of its fields has another type.
func unreadable(value []byte, err error) string {
	var head struct{ V int }
	switch e := json.Unmarshal(value, &head); {
	case e != nil:
		return e.Error()
	case head.V > Format:
		return fmt.Sprintf("has format %d, written by a later firn; this one knows %d", head.V, Format)
	case head.V < 1:
		return "has no format number"
	}
	return err.Error()
}

// Encode is the reverse of Read. It panics where JSON has no word for a number of v.
func Encode[T Value](v T) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// CheckName says what is wrong with the name of a pool or of a series whose keys have room
// for so many bytes of it; "" if nothing. What says what it names.
func CheckName(what, name string, room int) string {
	switch {
	case name == "" || len(name) > room:
		return fmt.Sprintf("%s %.50q: a name has 1 to %d bytes, not %d", what, name, room, len(name))
	case strings.Contains(name, "/"):
		return fmt.Sprintf("%s %q: a name has no slash", what, name)
	case store.CheckKey(name) != nil:
		return fmt.Sprintf("%s %q: a name is printable ASCII without spaces", what, name)
	}
	return ""
}
