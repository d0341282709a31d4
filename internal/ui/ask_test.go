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
