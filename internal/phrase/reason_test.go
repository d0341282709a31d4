package phrase

import (
	"errors"
	"fmt"
	"testing"
)

// advising is an error of a library with what a Go program does next.
type advising struct{ reason string }

func (e *advising) Error() string  { return e.reason + ": set Options.Wait" }
func (e *advising) Reason() string { return e.reason }

// What is said to those who do not write Go names no package and no option of one.
func TestReason(t *testing.T) {
	early := &advising{"lease: ids start at noon"}
	for want, err := range map[string]error{
		"":                                       nil,
		"connection refused":                     errors.New("connection refused"),
		"there is no series a":                   errors.New("server: there is no series a"),
		"ids start at noon":                      early,
		"no ids: lease: ids start at noon":       fmt.Errorf("lease: no ids: %w", early),
		"lost\nlease: ids start at noon":         errors.Join(errors.New("sequence: lost"), early),
		"pool \"web\": lease: ids start at noon": fmt.Errorf("pool \"web\": %w", fmt.Errorf("%w", early)),
	} {
		if got := Reason(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
