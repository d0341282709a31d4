package ui

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A read that waits ends with its context; one that is at hand is made after the end too.
func TestWithin(t *testing.T) {
	over := errors.New("over")
	ctx, end := context.WithCancelCause(t.Context())
	end(over)
	for range 100 {
		if got, err := Within(ctx, func() (int, error) { return 5, nil }); got != 5 || err != nil {
			t.Fatalf("of a file at hand: %d, %v", got, err)
		}
	}
	begun, never := time.Now(), make(chan int)
	if _, err := Within(ctx, func() (int, error) { return <-never, nil }); !errors.Is(err, over) || time.Since(begun) < lastRead {
		t.Errorf("of one that waits: %v after %s", err, time.Since(begun))
	}
	close(never)
	if _, err := Within(t.Context(), func() (int, error) { return 0, over }); !errors.Is(err, over) {
		t.Errorf("an error of the read is %v", err)
	}
}
