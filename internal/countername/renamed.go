package countername

import (
	"fmt"
	"strings"
)

// A RenamedError says that a reload of a server does not create a sequence in a SQLite file, because firn.yaml no
// longer lists other sequences of that file. The new name may be another name of one of them, and the sequence
// would begin again at its first number. Package document refuses such a document, by its texts.
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
