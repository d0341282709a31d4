package public_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/public"
)

type photos struct{}

var photoForm public.Form

func (photos) Form() public.Form { return photoForm }

type PhotoID = public.ID[photos]

type users struct{}

func (users) Form() public.Form { return public.Base62 }

// later has a form that is a nil pointer: it was declared, and never made.
type later struct{}

func (later) Form() public.Form { return (*public.Opaque)(nil) }

var (
	_ encoding.TextMarshaler   = PhotoID(0)
	_ encoding.TextAppender    = PhotoID(0)
	_ encoding.TextUnmarshaler = (*PhotoID)(nil)
	_ json.Unmarshaler         = (*PhotoID)(nil)
	_ driver.Valuer            = PhotoID(0)
	_ fmt.Formatter            = PhotoID(0)
	_ sql.Scanner              = (*PhotoID)(nil)
)

// configure gives photos a form for the time of a test.
func configure(t *testing.T, f public.Form) {
	t.Helper()
	photoForm = f
	t.Cleanup(func() { photoForm = nil })
}

func testOpaque(t *testing.T) *public.Opaque {
	t.Helper()
	k, err := public.NewKey(1)
	if err != nil {
		t.Fatal(err)
	}
	f, err := public.NewOpaque("photo", []public.Key{k}, &public.OpaqueOptions{Prefix: "photo"})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestIDJSON(t *testing.T) {
	configure(t, testOpaque(t))
	type photo struct {
		ID    PhotoID          `json:"id"`
		Cover PhotoID          `json:"cover,omitzero"`
		Next  *PhotoID         `json:"next"`
		Likes map[PhotoID]int  `json:"likes"`
		By    public.ID[users] `json:"by"`
	}
	const id = 318513532264316928
	b, err := json.Marshal(photo{ID: id, Likes: map[PhotoID]int{id: 3}, By: 62})
	if err != nil {
		t.Fatal(err)
	}
	text := PhotoID(id).String()
	want := fmt.Sprintf(`{"id":%q,"next":null,"likes":{%q:3},"by":"00000000010"}`, text, text)
	if string(b) != want || !strings.HasPrefix(text, "photo_1") {
		t.Errorf("%s, want %s", b, want)
	}
	var back photo
	if err := json.Unmarshal(b, &back); err != nil || back.ID != id || back.Likes[id] != 3 || back.By != 62 || back.Next != nil || back.Cover != 0 {
		t.Errorf("%+v, %v", back, err)
	}
	// Any JSON of the same string is the same id.
	var read PhotoID
	if err := json.Unmarshal([]byte(`"\u0070`+text[1:]+`"`), &read); err != nil || read != id {
		t.Errorf("escaped: %d, %v", int64(read), err)
	}
}

// The zero ID is a field that was not set: it is 0 in every form, and without one.
func TestZeroID(t *testing.T) {
	type photo struct {
		ID    PhotoID         `json:"id"`
		Likes map[PhotoID]int `json:"likes"`
	}
	check := func(form string) {
		b, err := json.Marshal(photo{Likes: map[PhotoID]int{0: 1}})
		if err != nil || string(b) != `{"id":"0","likes":{"0":1}}` {
			t.Errorf("%s: it is written %s, %v", form, b, err)
		}
		back := photo{ID: 7}
		if err := json.Unmarshal(b, &back); err != nil || back.ID != 0 || len(back.Likes) != 1 {
			t.Errorf("%s: it is read back as %+v, %v", form, back, err)
		}
		for text, want := range map[string]PhotoID{`0`: 0, `null`: 7} {
			id := PhotoID(7)
			if err := json.Unmarshal([]byte(text), &id); err != nil || id != want {
				t.Errorf("%s: %s leaves %d, %v", form, text, int64(id), err)
			}
			id = 7
			if err := id.UnmarshalJSON([]byte(text)); err != nil || id != want {
				t.Errorf("%s: %s leaves %d, %v", form, text, int64(id), err)
			}
		}
		if text := fmt.Sprintf("%s %v %d", PhotoID(0), PhotoID(0), PhotoID(0)); text != "0 0 0" {
			t.Errorf("%s: it prints as %s", form, text)
		}
		if id, err := public.Parse[photos]("0"); err == nil {
			t.Errorf("%s: Parse reads it as %d", form, int64(id))
		}
	}
	check("no form")
	configure(t, testOpaque(t))
	check("an opaque id")
	for _, e := range public.Encodings() {
		if e == public.Base64URL {
			continue
		}
		photoForm = e
		check(e.String())
	}
}

// Where a form writes an id as 0, that id is not taken for the zero ID, nor the reverse.
func TestZeroIDWhereZeroIsAnID(t *testing.T) {
	configure(t, public.Base64URL)
	if text := PhotoID(52).String(); text != "0" {
		t.Fatalf("id 52 is %s in base64url: this test has lost its reason", text)
	}
	var id PhotoID
	if err := json.Unmarshal([]byte(`"0"`), &id); err != nil || id != 52 {
		t.Errorf("it is read as %d, %v, want 52", int64(id), err)
	}
	if b, err := json.Marshal(PhotoID(0)); err == nil || !strings.Contains(err.Error(), "omitzero") {
		t.Errorf("the zero ID is written %s, %v", b, err)
	}
	if text := PhotoID(0).String(); text == "0" {
		t.Errorf("the zero ID prints as id 52 does: %s", text)
	}
	if err := json.Unmarshal([]byte(`0`), &id); err != nil || id != 0 {
		t.Errorf("the number 0 is read as %d, %v", int64(id), err)
	}
}

// Nothing but a public text is read, and nothing is written where there is no id.
func TestIDRefused(t *testing.T) {
	configure(t, testOpaque(t))
	for _, in := range []string{`42`, `00`, `"00"`, `0.0`, `"42"`, `"318513532264316928"`, `""`, `"photo_1"`, `true`, `{}`, `["x"]`, `"\ud800"`, `-1`} {
		id := PhotoID(7)
		if err := json.Unmarshal([]byte(in), &id); err == nil || id != 7 {
			t.Errorf("%s reads as %d, %v", in, int64(id), err)
		}
	}
	var read PhotoID
	if v, err := PhotoID(0).Value(); err == nil {
		t.Errorf("the zero ID goes to SQL as %v", v)
	}
	for _, id := range []PhotoID{-1, math.MinInt64} {
		if b, err := json.Marshal(id); err == nil {
			t.Errorf("%d is written %s", int64(id), b)
		}
		if v, err := id.Value(); err == nil {
			t.Errorf("%d goes to SQL as %v", int64(id), v)
		}
		if text := id.String(); !strings.HasPrefix(text, "(public: id ") {
			t.Errorf("%d prints as %s", int64(id), text)
		}
	}
	// Who calls it without encoding/json may give it half a string.
	for _, in := range []string{``, `"`, `"` + PhotoID(5).String() + `x`} {
		if err := read.UnmarshalJSON([]byte(in)); err == nil || !strings.Contains(err.Error(), "an id is a string in JSON") {
			t.Errorf("%s: %v", in, err)
		}
	}
	if err := read.Scan(nil); err == nil || !strings.Contains(err.Error(), "public: an id is never NULL") {
		t.Errorf("NULL: %v", err)
	}
	if _, err := public.Parse[photos]("photo_"); err == nil {
		t.Error("Parse of half an opaque id: no error")
	}
}

// No verb prints the number, with a form or without.
func TestIDPrinted(t *testing.T) {
	const id = 318513532264316928
	inside := struct {
		ID   PhotoID
		IDs  []PhotoID
		Map  map[PhotoID]PhotoID
		Any  any
		Null sql.Null[PhotoID]
	}{id, []PhotoID{id}, map[PhotoID]PhotoID{id: id}, PhotoID(id), sql.Null[PhotoID]{V: id, Valid: true}}
	check := func() {
		for _, verb := range "vsqdxXobBcUeEfFgGtO" {
			for _, flags := range []string{"", "+", "#", "08", "-30", " ", ".5", "30.5"} {
				format := "%" + flags + string(verb)
				plain := fmt.Sprintf(format, int64(id))
				for _, v := range []any{PhotoID(id), inside} {
					text := fmt.Sprintf(format, v)
					if strings.Contains(text, "318513532264316928") || len(plain) > 8 && strings.Contains(text, strings.TrimSpace(plain)) {
						t.Errorf("%s of %T: %s", format, v, text)
					}
				}
			}
		}
	}
	check()
	configure(t, testOpaque(t))
	check()
	text := PhotoID(id).String()
	for format, want := range map[string]string{
		"%v": text, "%s": text, "%d": text, "/photos/%d?x": "/photos/" + text + "?x", "%q": `"` + text + `"`, "%#v": `"` + text + `"`,
		"%40s|": strings.Repeat(" ", 11) + text + "|", "%.6s": "photo_", "%x": fmt.Sprintf("%x", text),
	} {
		if got := fmt.Sprintf(format, PhotoID(id)); got != want {
			t.Errorf("%s: %s, want %s", format, got, want)
		}
	}
}

// Before a form is configured there are errors: no panic, and no plain id.
func TestIDUnset(t *testing.T) {
	const id = 318513532264316928
	if b, err := json.Marshal(struct{ ID PhotoID }{id}); !errors.Is(err, public.ErrNoForm) {
		t.Errorf("%s, %v", b, err)
	}
	if b, err := json.Marshal(public.ID[later](id)); !errors.Is(err, public.ErrNoForm) {
		t.Errorf("a nil opaque: %s, %v", b, err)
	}
	var read PhotoID
	if err := json.Unmarshal([]byte(`"318513532264316928"`), &read); !errors.Is(err, public.ErrNoForm) || read != 0 {
		t.Errorf("%d, %v", int64(read), err)
	}
	if _, err := public.Parse[later]("1"); !errors.Is(err, public.ErrNoForm) {
		t.Errorf("a nil opaque: %v", err)
	}
	for _, text := range []string{PhotoID(id).String(), fmt.Sprint(PhotoID(id)), public.ID[later](id).String(), fmt.Sprint([]PhotoID{id})} {
		if strings.Contains(text, "3185") || !strings.Contains(text, "no form is configured") {
			t.Errorf("printed: %s", text)
		}
	}
}

// In SQL an ID is the number, with or without a form.
func TestIDSQL(t *testing.T) {
	if v, err := PhotoID(42).Value(); err != nil || v != int64(42) {
		t.Errorf("%v, %v", v, err)
	}
	for _, src := range []any{int64(42), []byte("42"), "42"} {
		var id PhotoID
		if err := id.Scan(src); err != nil || id != 42 {
			t.Errorf("%T: %d, %v", src, int64(id), err)
		}
	}
	for _, src := range []any{nil, int64(0), int64(-1), "photo_1", "042", 4.2, []byte{}} {
		id := PhotoID(7)
		if err := id.Scan(src); err == nil || id != 7 {
			t.Errorf("%v scans as %d, %v", src, int64(id), err)
		}
	}
	var maybe sql.Null[PhotoID]
	if err := maybe.Scan(nil); err != nil || maybe.Valid {
		t.Errorf("NULL: %+v, %v", maybe.Valid, err)
	}
	if err := maybe.Scan(int64(5)); err != nil || !maybe.Valid || maybe.V != 5 {
		t.Errorf("5: %v, %v", maybe.Valid, err)
	}
	if firn.ID(maybe.V) != 5 {
		t.Error("it does not convert")
	}
}

// An alphabet may have letters that JSON escapes.
type quotes struct{}

func (quotes) Form() public.Form { return quoting{} }

type quoting struct{}

func (quoting) Append(b []byte, _ firn.ID) ([]byte, error) { return append(b, `a"\`...), nil }
func (quoting) Parse(text string) (firn.ID, error) {
	if text != `a"\` {
		return 0, fmt.Errorf("it is %q", text)
	}
	return 5, nil
}

func TestIDEscaped(t *testing.T) {
	b, err := json.Marshal(public.ID[quotes](5))
	if err != nil || string(b) != `"a\"\\"` {
		t.Errorf("%s, %v", b, err)
	}
	var id public.ID[quotes]
	if err := json.Unmarshal(b, &id); err != nil || id != 5 {
		t.Errorf("%d, %v", int64(id), err)
	}
}
