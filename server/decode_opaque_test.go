package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/server"
)

// An opaque id with a character too many is no number with a wrong digit, also where there are series
// without opaque ids.
func TestDecodeMistypedOpaque(t *testing.T) {
	key, err := public.NewKey(1)
	if err != nil {
		t.Fatal(err)
	}
	photo, err := public.NewOpaque("photo", []public.Key{key}, &public.OpaqueOptions{Prefix: "photo"})
	if err != nil {
		t.Fatal(err)
	}
	video, err := public.NewOpaque("video", []public.Key{key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	src := &few{next: 1, last: 5}
	x := enter(t, newServer(t, nil,
		server.Numbers("orders", src, nil),
		server.Numbers("photo", src, &server.SeriesOptions{Form: photo}),
		server.Numbers("video", src, &server.SeriesOptions{Form: video})), "")
	written, err := photo.Append(nil, 250040881120281849)
	if err != nil {
		t.Fatal(err)
	}
	text := string(written)
	for typed, want := range map[string]string{
		text + "x":  "behind photo_ it has 23 characters, not 24",
		"photo_12":  "behind photo_ it has 23 characters, not 2",
		"12x":       `"x" is not a digit`,
		"photos_12": `"p" is not a digit`,
	} {
		if _, err := x.Decode(typed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", typed, err, want)
		}
	}
	if all, err := x.Decode(text); err != nil || all[0].ID != firn.ID(250040881120281849) {
		t.Errorf("%s: %v, %v", text, all, err)
	}
}

// An opaque id of a key that the server does not have is refused as that, however many series have opaque
// ids, and not as a number with a wrong digit.
func TestDecodeOpaqueOfNoKey(t *testing.T) {
	key := func(number int) public.Key {
		k, err := public.NewKey(number)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	opaque := func(name, prefix string, keys ...public.Key) public.Form {
		f, err := public.NewOpaque(name, keys, &public.OpaqueOptions{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	one, two := key(1), key(2)
	for _, tt := range []struct {
		name          string
		old           public.Form
		photo, second public.Form
		want          string
	}{
		{"the secret was replaced", opaque("photo", "photo", one), opaque("photo", "photo", key(1)), opaque("video", "video", key(1)), "the opaque id is forged, of another series than photo, or of another secret than our key 1"},
		{"the key was removed", opaque("photo", "photo", one), opaque("photo", "photo", two), opaque("video", "video", two), "the opaque id is of key 1; there are 2"},
		{"the key was removed, without prefixes", opaque("photo", "", one), opaque("photo", "", two), opaque("video", "", two), "the opaque id is of key 1; there are 2"},
		{"the secret was replaced, without prefixes", opaque("photo", "", one), opaque("photo", "", key(1)), opaque("video", "", key(1)), "the opaque id is forged, or of a key or a series that this server does not have"},
	} {
		text, err := tt.old.Append(nil, 250040881120281849)
		if err != nil {
			t.Fatal(err)
		}
		src := &few{next: 1, last: 5}
		x := enter(t, newServer(t, nil, server.Numbers("orders", src, nil),
			server.Numbers("photo", src, &server.SeriesOptions{Form: tt.photo}),
			server.Numbers("video", src, &server.SeriesOptions{Reads: tt.second})), "")
		if _, err := x.Decode(string(text)); err == nil || err.Error() != "public: "+tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

// The number of a counter is read in the form that its series answers in, also where the form's
// texts are numbers.
func TestDecodeCountedCipher(t *testing.T) {
	key, err := public.NewKey(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, encoding := range []public.Encoding{public.Decimal, public.Base58} {
		form, err := public.NewCipher("orders", key, &public.CipherOptions{Encoding: encoding})
		if err != nil {
			t.Fatal(err)
		}
		src := &few{next: 1, last: 5}
		reserve := func(context.Context, int) (firn.Range, error) { return firn.Range{}, nil }
		x := enter(t, newServer(t, nil, server.Numbers("orders", src, &server.SeriesOptions{Form: form, Reserve: reserve})), "")
		text, err := form.Append(nil, 7)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := x.Decode(string(text)); err != nil || len(all) != 1 || all[0].ID != 7 || !all[0].Known {
			t.Errorf("%s: %+v, %v; want the number 7, known", text, all, err)
		}
	}
}
