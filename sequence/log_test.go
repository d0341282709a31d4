package sequence_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
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
