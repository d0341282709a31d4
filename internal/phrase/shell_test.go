package phrase_test

import (
	"testing"

	"github.com/firn-id/firn/internal/phrase"
)

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"sqlite:/var/lib/app/ids.db": "sqlite:/var/lib/app/ids.db", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$x": "'$x'",
	} {
		if got := phrase.ShellWord(word); got != want {
			t.Errorf("%q: %s", word, got)
		}
	}
}
