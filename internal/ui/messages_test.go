package ui

import (
	"errors"
	"strings"
	"testing"
)

// Each message is text, or one object on a line in which no key is shown.
func TestMessages(t *testing.T) {
	const key = "firn-key-1:c2VjcmV0"
	f := Bad("lease: pool %q\nlease: is full of %s", "a&b", key).Hint("firn worker ls").Hint("use %s", key)
	f.Place, f.Table = []string{"tiem:41", "^"}, []string{"a  b"}
	tests := []struct {
		print      func(*Messages)
		text, json string
	}{
		{
			func(m *Messages) {
				PrintFailure(m, f, []string{"firn worker ls", "use " + key}, map[string]any{"pool": "a&b", "retry": false})
			},
			"firn: error: pool \"a&b\"\nfirn: error: is full of firn-key-1:xxxxx\nfirn:     tiem:41\nfirn:     ^\n  a  b\nfirn: hint: firn worker ls\nfirn: hint: use firn-key-1:xxxxx\n",
			`{"error":"pool \"a&b\"\nis full of firn-key-1:xxxxx","place":"tiem:41\n^","hints":["firn worker ls","use firn-key-1:xxxxx"],"exit":2,"pool":"a&b","retry":false}` + "\n",
		},
		{
			func(m *Messages) { PrintFailure(m, Failed("no"), nil, map[string]any{}) },
			"firn: error: no\n", `{"error":"no","exit":1}` + "\n",
		},
		{
			func(m *Messages) { PrintError(m, errors.New("store/mysql: line 2: bad")) },
			"firn: error: line 2: bad\n", `{"error":"line 2: bad"}` + "\n",
		},
		{
			func(m *Messages) { PrintWarning(m, "%d is odd", 3) },
			"firn: warning: 3 is odd\n", `{"warning":"3 is odd"}` + "\n",
		},
		{
			func(m *Messages) { WarnHinting(m, []string{"firn plan"}, "slow") },
			"firn: warning: slow\nfirn: hint: firn plan\n", `{"warning":"slow","hints":["firn plan"]}` + "\n",
		},
		{
			func(m *Messages) { PrintNote(m, "created %s", "x.db") },
			"created x.db\n", `{"note":"created x.db"}` + "\n",
		},
	}
	for _, c := range tests {
		for asJSON, want := range map[bool]string{false: c.text, true: c.json} {
			var b strings.Builder
			if c.print(&Messages{&b, asJSON}); b.String() != want {
				t.Errorf("JSON %t:\n%swant\n%s", asJSON, b.String(), want)
			}
		}
	}
}
