package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]bool{"yes\n": true, " yes \n": true, "yes": true, "y\n": false, "": false, "\n": false, "no\n": false} {
		var errs bytes.Buffer
		if err := (&Person{strings.NewReader(answer), &errs}).Ask(t.Context(), "Sure?"); (err == nil) != want {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

// TestConfirmSaysWhatToType: an answer that means yes, and is another word, is told which word is wanted. A no is not.
func TestConfirmSaysWhatToType(t *testing.T) {
	ask := func(answer string, do func(*Person, context.Context, string) error) string {
		err := do(&Person{strings.NewReader(answer), io.Discard}, t.Context(), "Sure?")
		if err == nil {
			t.Fatalf("%q is taken for yes", answer)
		}
		return err.Error()
	}
	for answer, want := range map[string]string{
		"y\n": `nothing was done: the answer was "y"; type yes`, " Y \r\n": `nothing was done: the answer was "Y"; type yes`,
		"\x1b[A\n": `nothing was done: the answer was "\x1b[A"; type yes`, strings.Repeat("a", 100) + "\n": `nothing was done: the answer was "` + strings.Repeat("a", 20) + `..."; type yes`,
		"no\n": "nothing was done", "N\n": "nothing was done", "\n": "nothing was done", "": "nothing was done",
	} {
		if got := ask(answer, (*Person).Ask); got != want {
			t.Errorf("%q: %s, not %s", answer, got, want)
		}
	}
	if got, want := ask("ok\n", (*Person).Agree), `nothing was done: the answer was "ok"; type y`; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

// TestConfirmBrokenOff: Ctrl-C ends a question that nobody answers.
func TestConfirmBrokenOff(t *testing.T) {
	nobody, in := io.Pipe()
	defer in.Close() // ends one that waits for the answer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	said := make(chan error, 1)
	go func() { said <- (&Person{nobody, io.Discard}).Ask(ctx, "Sure?") }()
	select {
	case err := <-said:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it says %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for an answer")
	}
}
