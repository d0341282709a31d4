package firn_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/golden"
)

// TestGoldenLayouts: no named layout has changed. Each line has its name, how it is written, the bits of its fields, and
// an id with the time of that id.
func TestGoldenLayouts(t *testing.T) {
	const file = "testdata/0.1.0/layouts.txt"
	var now strings.Builder
	for name, l := range firn.Presets() {
		fmt.Fprintf(&now, "%s %s", name, l)
		for f := range l.Fields() {
			fmt.Fprintf(&now, " %s=%d<<%d", f.Name, f.Width, f.Shift)
		}
		const id = firn.ID(0x0123456789abcdef >> 11) // every layout has so many bits
		parts, err := l.Decode(id)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fmt.Fprintf(&now, " %d=%s\n", int64(id), parts.Time.UTC().Format(time.RFC3339Nano))
	}
	const do = "A layout of a released version never changes: ids of it exist. Give the other layout a name of its own, and add it as testdata/NEW-VERSION/layouts.txt. Not released yet: FIRN_GOLDEN=write writes the file anew."
	golden.Same(t, file, []byte(now.String()), do)
	for line := range strings.Lines(string(golden.Read(t, file))) {
		words := strings.Fields(line)
		named, err := firn.ParseLayout(words[0])
		if err != nil {
			t.Fatal(err)
		}
		if written, err := firn.ParseLayout(words[1]); err != nil || written != named {
			t.Errorf("%s: %s, %v, want %s", words[0], written, err, named)
		}
	}
}
