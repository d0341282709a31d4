package public

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeyText(t *testing.T) {
	for number := 1; number <= maxKey; number++ {
		k := testKey(t, number)
		back, err := ParseKey(k.Secret())
		if err != nil || back.Number() != number || *back.secret() != *k.secret() {
			t.Fatalf("key %d: %v, %v", number, back, err)
		}
	}
	for _, number := range []int{-1, 0, maxKey + 1} {
		if _, err := NewKey(number); err == nil {
			t.Errorf("NewKey(%d): no error", number)
		}
	}
}

// Errors say what is wrong and repeat nothing of the key.
func TestParseKeyErrors(t *testing.T) {
	k := testKey(t, 7)
	text := k.Secret()
	body := text[strings.IndexByte(text, ':')+1:]
	for _, tt := range []struct{ text, want string }{
		{"", "it does not begin with firn-key-"},
		{body, "it does not begin with firn-key-"},
		{" " + text, "it does not begin with firn-key-"},
		{"firn-key-7" + body, "there is no colon after its number"},
		{"firn-key-0:" + body, "there is its number, 1 to 58"},
		{"firn-key-59:" + body, "there is its number, 1 to 58"},
		{"firn-key-07:" + body, "there is its number, 1 to 58"},
		{"firn-key-+7:" + body, "there is its number, 1 to 58"},
		{"firn-key-x:" + body, "there is its number, 1 to 58"},
		{text[:len(text)-1], "key 7 has 48 characters after the colon, not 47"},
		{text + "A", "key 7 has 48 characters after the colon, not 49"},
		{text[:len(text)-1] + "=", "a character that no key has"},
		{text[:len(text)-1] + "\n", "a character that no key has"},
		{"firn-key-8:" + body, "key 8 is not whole: its checksum is wrong"},
		{strings.Replace(text, body, base64.RawURLEncoding.EncodeToString(make([]byte, 36)), 1), "key 7 is not whole"},
	} {
		_, err := ParseKey(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		} else if leaks(err.Error(), k) {
			t.Errorf("the error has some of the key: %v", err)
		}
	}
}

// leaks reports whether text has eight letters of the key in a row, in any form.
func leaks(text string, k Key) bool {
	body := k.Secret()[strings.IndexByte(k.Secret(), ':')+1:]
	forms := []string{
		body, hex.EncodeToString(k.secret()[:]), strings.Trim(fmt.Sprint(k.secret()[:]), "[]"),
		base64.StdEncoding.EncodeToString(k.secret()[:]), string(k.secret()[:]),
		strings.Join(strings.Fields(strings.Trim(fmt.Sprintf("%#v", k.secret()[:]), "[]byte{}")), " "),
	}
	for _, form := range forms {
		for i := 0; i+8 <= len(form); i++ {
			if strings.Contains(text, form[i:i+8]) {
				return true
			}
		}
	}
	return false
}

// No way of printing shows a secret, neither of a key nor of what is made with it,
// and not inside of something else either.
func TestKeysAreNotPrinted(t *testing.T) {
	k := testKey(t, 3)
	if !leaks(fmt.Sprintf("%v", *k.secret()), k) || !leaks(fmt.Sprintf("%x", *k.secret()), k) || !leaks(k.Secret(), k) {
		t.Fatal("a leak is not seen")
	}
	opaque := newOpaque(t, "photo", "", k)
	cipher, err := NewCipher("photo", k, nil)
	if err != nil {
		t.Fatal(err)
	}
	inside := struct {
		key  Key
		Key  Key
		keys []Key
		p    *Key
		form Form
		any  any
	}{k, k, []Key{k}, &k, opaque, k}
	var logged bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&logged, nil))
	for _, v := range []any{k, &k, []Key{k}, map[string]Key{"x": k}, opaque, *opaque, cipher, *cipher, inside, &inside} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%X", "%q", "%d", "%t", "%08b"} {
			if text := fmt.Sprintf(verb, v); leaks(text, k) {
				t.Errorf("%s of %T: %s", verb, v, text)
			}
		}
		logger.Info("x", "v", v)
		logger.Info("x", "v", fmt.Sprint(v))
	}
	if leaks(logged.String(), k) {
		t.Errorf("logged: %s", logged.String())
	}
	if b, err := json.Marshal(k); err == nil {
		t.Errorf("JSON: %s", b)
	}
	if got := fmt.Sprintf("%v %s %+v", k, &k, Key{}); got != "key 3 key 3 no key" {
		t.Error(got)
	}
}

func TestParseKeys(t *testing.T) {
	one, two := testKey(t, 1), testKey(t, 2)
	keys, err := ParseKeys("# ours\n\n" + two.Secret() + " # since May\r\n" + one.Secret())
	if err != nil || len(keys) != 2 || keys[0].Number() != 2 || keys[1].Number() != 1 {
		t.Errorf("%v, %v", keys, err)
	}
	if keys, err := ParseKeys(one.Secret() + " " + two.Secret()); err != nil || len(keys) != 2 {
		t.Errorf("on one line: %v, %v", keys, err)
	}
	for _, tt := range []struct{ text, want string }{
		{"", "public: there is no key"},
		{"# nothing\n", "public: there is no key"},
		{one.Secret() + "\n" + one.Secret(), "public: key 1 is there twice"},
		{one.Secret() + "\n#\n" + two.Secret()[1:], "public: line 3: key: it does not begin with firn-key-; firn public keygen makes one"},
	} {
		keys, err := ParseKeys(tt.text)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%v, %v, want %s", keys, err, tt.want)
		}
		if err != nil && (leaks(err.Error(), one) || leaks(err.Error(), two)) {
			t.Errorf("the error has some of a key: %v", err)
		}
	}
}

func TestLoadKeys(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "firn.keys")
	if _, err := LoadKeys(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := LoadKeys(dir); err == nil {
		t.Error("a directory: no error")
	}
	k := testKey(t, 9)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(k.Secret() + "\n")
	if keys, err := LoadKeys(path); err != nil || len(keys) != 1 || keys[0].Number() != 9 {
		t.Errorf("%v, %v", keys, err)
	}
	write(k.Secret()[:30])
	if _, err := LoadKeys(path); err == nil || !strings.HasPrefix(err.Error(), "public: "+path+": line 1: key: key 9 has 48 characters") || leaks(err.Error(), k) {
		t.Error(err)
	}
	write(strings.Repeat("#", maxKeyFile+1))
	if _, err := LoadKeys(path); err == nil || !strings.Contains(err.Error(), "it is no key file") {
		t.Error(err)
	}
}

func FuzzParseKey(f *testing.F) {
	k := testKey(f, 1)
	f.Add(k.Secret())
	f.Add("firn-key-58:")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ParseKey(text)
		if err != nil {
			return
		}
		if k.Secret() != text {
			t.Errorf("%q is the text of %s, which is %q", text, k, k.Secret())
		}
	})
}
