package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever is in the file beside a database, it is what firn says of it and is
// written as it was read, or an error that names the file.
func FuzzSidecar(f *testing.F) {
	f.Add([]byte(`{"v":1,"store":"x","inode":7,"born_ns":5,"lost":"y"}`))
	f.Add([]byte(`{"v":2,"store":"x"}`))
	f.Add([]byte(`{"v":1}`))
	f.Add([]byte(`{"v":1,"store":"x","inode":-1}`))
	at := location{file: filepath.Join(f.TempDir(), "ids.db")}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(at.sidecar(), text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := at.readSidecar()
		if err != nil {
			if s != (sidecar{}) || !strings.HasPrefix(err.Error(), at.sidecar()) {
				t.Fatalf("%q: %+v, %v", text, s, err)
			}
			return
		}
		if s.V != sidecarFormat || s.Store == "" {
			t.Fatalf("%q: %+v", text, s)
		}
		if err := at.replaceSidecar(s); err != nil {
			t.Fatal(err)
		}
		again, err := at.readSidecar()
		if s.Note = sidecarNote; err != nil || again != s {
			t.Fatalf("%+v is written and read as %+v, %v", s, again, err)
		}
	})
}
