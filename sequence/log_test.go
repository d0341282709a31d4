package sequence_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/sqlite"
)

// The log line about a series that has ended says what to do next.
func TestLogOfAnEnd(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&store.ForgotError{Store: "memory:", What: "it is empty"}, "firn store recover --store URL --numbers N"},
		{&store.OtherStoreError{What: `series "orders"`}, "firn store recover --store URL --numbers N"},
		{&sequence.MissingError{Name: "orders"}, "firn store recover --store URL --numbers N"},
		{errors.New("the record cannot be read"), "firn doctor --store URL"},
	} {
		var log bytes.Buffer
		o := &sequence.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		st := memory.New()
		if _, err := sequence.Create(t.Context(), st, "orders", nil); err != nil {
			t.Fatal(err)
		}
		s, err := sequence.Open(t.Context(), st, "orders", o)
		if err != nil {
			t.Fatal(err)
		}
		s.Abandon(0, tt.err)
		s.Close()
		if line := log.String(); !strings.Contains(line, "nothing is issued any more") || !strings.Contains(line, "hint=") || !strings.Contains(line, tt.want) {
			t.Errorf("%v: %s", tt.err, line)
		}
	}
}

// Where the file of a store was removed, the log says at once what leads on: firn store recover
// is refused as long as no file is there.
func TestLogOfARemovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.db")
	st, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var log bytes.Buffer
	s, err := sequence.Open(t.Context(), st, "orders", &sequence.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for err = nil; !errors.As(err, new(*store.ForgotError)); _, err = s.Next(t.Context()) {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	for _, want := range []string{
		"if the file was moved, move it back and restart this process",
		"put the backup back, then: firn store recover --store 'sqlite:" + path + "' --numbers N",
		"firn store recover --store 'sqlite:" + path + "' --lost",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, log.String())
		}
	}
}
