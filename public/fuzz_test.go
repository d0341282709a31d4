package public

import (
	"strings"
	"testing"
)

// Whatever a key file says, it is keys of different numbers and secrets that are in
// it, or an error that shows none of them.
func FuzzParseKeys(f *testing.F) {
	one, two := testKey(f, 1), testKey(f, 2)
	f.Add(one.Secret()+" # now\n"+two.Secret()+"\n", true)
	f.Add(one.Secret()+"\n"+one.Secret(), true)
	f.Add("# none\n", true)
	f.Add(strings.Repeat("x", 100), false)
	f.Add(one.Secret()[:40], true)
	f.Fuzz(func(t *testing.T, text string, hidden bool) {
		if hidden { // a key on the line before, which no error may show
			text = two.Secret() + "\n" + text
		}
		keys, err := ParseKeys(text)
		if err != nil {
			if leaks(err.Error(), two) || len(err.Error()) > 300 {
				t.Fatal(err)
			}
			return
		}
		for i, k := range keys {
			if !strings.Contains(text, k.Secret()) {
				t.Fatalf("%q has no %s", text, k)
			}
			for _, other := range keys[:i] {
				if k.Number() == other.Number() {
					t.Fatalf("%q: %s is there twice", text, k)
				}
			}
		}
	})
}
