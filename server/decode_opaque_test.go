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
