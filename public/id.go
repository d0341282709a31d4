package public

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/firn-id/firn"
)

// A Kind says which form the ids of one kind of thing have. It is a type without
// fields, whose Form returns what the program has configured when it started:
//
//	type photos struct{}
//
//	func (photos) Form() public.Form { return photoForm }
//
//	type PhotoID = public.ID[photos]
//
// While Form returns nil, ids of the kind are neither written nor read: that is
// [ErrNoForm].
type Kind interface{ Form() Form }

// An ID is the id of something of a kind: public in text and JSON, a bigint in SQL.
// Ids of two kinds are two types, which Go does not mix up. Convert from and to
// firn.ID where the number itself is meant.
//
// What holds for firn.ID holds here: the zero ID means that there is none. It is
// not written, so tag a JSON field that may be empty with omitzero; null and NULL
// are not read, so use a pointer, or [database/sql.Null], where there may be none.
//
// What goes around its methods sees the number: encoding/gob and others that write
// by reflection, and fmt where the ID is an unexported field of what is printed.
type ID[K Kind] firn.ID

// Parse reads the public text of an id.
func Parse[K Kind](text string) (ID[K], error) {
	f, err := formOf[K]()
	if err != nil {
		return 0, err
	}
	id, err := f.Parse(text)
	return ID[K](id), err
}

func formOf[K Kind]() (Form, error) {
	var kind K
	if f := kind.Form(); f != nil {
		return f, nil
	}
	return nil, ErrNoForm
}

// String returns the public text, or, where there is none, what is wrong in
// parentheses; never the number. To print that, print firn.ID(id).
func (id ID[K]) String() string {
	text, err := id.MarshalText()
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(text)
}

// Format writes what String returns, for any verb: an address made with %d is public
// too, and %#v shows no number.
func (id ID[K]) Format(f fmt.State, verb rune) {
	switch verb {
	case 's', 'q', 'x', 'X':
	default:
		verb = 'v'
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), id.String())
}

// AppendText appends the public text.
func (id ID[K]) AppendText(b []byte) ([]byte, error) {
	f, err := formOf[K]()
	if err != nil {
		return b, err
	}
	return f.Append(b, firn.ID(id))
}

// MarshalText returns the public text.
func (id ID[K]) MarshalText() ([]byte, error) { return id.AppendText(make([]byte, 0, 32)) }

// UnmarshalText is [Parse].
func (id *ID[K]) UnmarshalText(b []byte) error {
	read, err := Parse[K](string(b))
	if err == nil {
		*id = read
	}
	return err
}

// UnmarshalJSON reads a string. A null is an error and not a silent zero, and a
// number is one, because it may be an id that is not public.
func (id *ID[K]) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		return errors.New("public: an id is never null; use a pointer where there may be none")
	case len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"':
		return fmt.Errorf("public: an id is a string in JSON, not %.40s", b)
	case bytes.IndexByte(b, '\\') < 0:
		return id.UnmarshalText(b[1 : len(b)-1])
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	return id.UnmarshalText([]byte(text))
}

// Value returns the number, an int64. Zero is an error and not NULL.
func (id ID[K]) Value() (driver.Value, error) { return firn.ID(id).Value() }

// Scan reads an int64, or its decimal text, from a database.
func (id *ID[K]) Scan(src any) error {
	if src == nil {
		return errors.New("public: an id is never NULL; scan into sql.Null of its type where there may be none")
	}
	return (*firn.ID)(id).Scan(src)
}
