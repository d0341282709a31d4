package daemon

import (
	"strings"
	"testing"
)

// A reload is of the same file; one may come where there was none.
func TestServeFixedFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ was, next, want string }{
		{"", "a", ""}, {"a", "a", ""}, {"a", "", "a is not there any more"}, {"a", "b", "b would be read, and not a"},
	} {
		err := (&plan{config: tt.was}).fixed(&plan{config: tt.next})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q, then %q: %v", tt.was, tt.next, err)
		}
	}
}
