package countername

import (
	"fmt"
	"strings"
)

// A RenamedError says that a reload of a server does not create a sequence in a file, because other sequences of
// the file have left firn.yaml at the same time: one that was renamed would begin again at its first
// number. A document cannot repeat the texts of another one: package document refuses it.
type RenamedError struct {
	Name   string
	Before []string // the sequences that the server has served
}

func (e *RenamedError) Error() string {
	what := "a sequence"
	if len(e.Before) > 1 {
		what = "sequences"
	}
	return fmt.Sprintf("the store has no sequence %q, and this server has served %s from it that firn.yaml does not list now: %s", e.Name, what, strings.Join(e.Before, ", "))
}

// Retryable is false; see firn.Retryable.
func (*RenamedError) Retryable() bool { return false }
