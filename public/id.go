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
// What holds for firn.ID holds here. The zero ID means that there is none: it prints,
// marshals and logs as 0, UnmarshalText and UnmarshalJSON read that back, and JSON null
// leaves the value as it was. In [Base64URL] alone "0" is an id, so there the zero ID has no
// text: tag a field that may be empty with omitzero. Where an id is required zero is an
// error: [Parse] does not read it, and Value and Scan do not take it to or from a
// database. Use [database/sql.Null] for a column that may be NULL.
//
// What goes around its methods sees the number: encoding/gob and others that write
// by reflection, and fmt where the ID is an unexported field of what is printed.
type ID[K Kind] firn.ID

// Parse reads the public text of an id. Zero is not one.
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

// AppendText appends the public text, of the zero ID "0". A negative id is an error.
func (id ID[K]) AppendText(b []byte) ([]byte, error) {
	f, err := formOf[K]()
	if id == 0 {
		return appendZero(b, f)
	}
	if err != nil {
		return b, err
	}
	return f.Append(b, firn.ID(id))
}

// zero is the text of the zero ID, with a form or without.
const zero = "0"

func appendZero(b []byte, f Form) ([]byte, error) {
	if f != nil {
		if id, err := f.Parse(zero); err == nil { // Base64URL
			return b, fmt.Errorf("public: the zero ID has no text in this form, in which %q is id %d; tag the field with omitzero", zero, id)
		}
	}
	return append(b, zero...), nil
}

// MarshalText returns what AppendText appends.
func (id ID[K]) MarshalText() ([]byte, error) { return id.AppendText(make([]byte, 0, 32)) }

// UnmarshalText is [Parse], but reads 0 as the zero ID: so it reads what MarshalText
// writes. Use Parse for an id that is required.
func (id *ID[K]) UnmarshalText(b []byte) error {
	read, err := Parse[K](string(b))
	if err != nil && string(b) == zero {
		read, err = 0, nil
	}
	if err == nil {
		*id = read
	}
	return err
}

// UnmarshalJSON reads a string, and 0 as the zero ID. A null leaves the value as it was.
// Any other number is an error, because it may be an id that is not public.
func (id *ID[K]) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		return nil
	case string(b) == zero:
		*id = 0
		return nil
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

// Value returns the number, an int64. The zero ID is an error, as that of firn.ID is.
func (id ID[K]) Value() (driver.Value, error) { return firn.ID(id).Value() }

// Scan reads what that of firn.ID reads: an int64, a uint64, or its decimal text.
func (id *ID[K]) Scan(src any) error {
	if src == nil {
		return errors.New("public: an id is never NULL; scan into sql.Null of its type where there may be none")
	}
	return (*firn.ID)(id).Scan(src)
}
