package store_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
)

func TestCheckKey(t *testing.T) {
	for b := range 256 {
		ok := b > ' ' && b <= '~'
		for _, key := range []string{string([]byte{byte(b)}), "k" + string([]byte{byte(b)}), string([]byte{byte(b)}) + "k"} {
			if err := store.CheckKey(key); (err == nil) != ok {
				t.Errorf("%q: %v", key, err)
			}
		}
	}
	for n, ok := range map[int]bool{0: false, 1: true, store.MaxKey: true, store.MaxKey + 1: false} {
		if err := store.CheckKey(strings.Repeat("k", n)); (err == nil) != ok {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if err := store.CheckKey("a b"); err == nil || !strings.Contains(err.Error(), `"a b"`) || !strings.Contains(err.Error(), "byte 1") {
		t.Errorf("which key, and where? %v", err)
	}
}

func TestNewVersion(t *testing.T) {
	seen := make(map[store.Version]bool)
	hex := regexp.MustCompile(`^[0-9a-f]{32}$`)
	for range 1000 {
		v := store.NewVersion()
		if seen[v] || !hex.MatchString(string(v)) {
			t.Fatalf("version %q", v)
		}
		seen[v] = true
	}
}

func TestForgotError(t *testing.T) {
	var err error = &store.ForgotError{Store: "sqlite:/x/ids.db", What: "the file was removed"}
	const want = "store: sqlite:/x/ids.db has forgotten what it acknowledged: the file was removed"
	if err.Error() != want {
		t.Errorf("%v", err)
	}
	var forgot *store.ForgotError
	if !errors.As(fmt.Errorf("lease: %w", err), &forgot) || errors.Is(err, store.ErrConflict) {
		t.Error("the error cannot be told from others")
	}
}

func TestDurability(t *testing.T) {
	var zero store.Durability
	if zero.Durable || zero.LocalClock || zero.NoticesLoss {
		t.Error("the zero Durability promises something")
	}
	if s := fmt.Sprint(zero, store.Durability{Durable: true}); s != "lossy durable" {
		t.Error(s)
	}
}
