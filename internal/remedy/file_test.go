package remedy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// TestLostFile: programs are restarted only for the file that they had. After the file was removed, a program
// that starts makes another one at its path, in which numbers begin at 1 again.
func TestLostFile(t *testing.T) {
	for name, put := range map[string]func(path string) (restart bool){
		"moved back": func(path string) bool {
			if err := os.Rename(path+".away", path); err != nil {
				t.Fatal(err)
			}
			return true
		},
		"made anew": func(path string) bool {
			for _, left := range []string{path + "-wal", path + "-shm", filepath.Join(filepath.Dir(path), ".ids.db.id")} {
				if err := os.Remove(left); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			fileStore(t, path)
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ids.db")
			s := fileStore(t, path)
			if err := os.Rename(path, path+".away"); err != nil {
				t.Fatal(err)
			}
			_, err := s.Get(t.Context(), "k")
			if err == nil {
				t.Fatal("the file is away, and its records are read")
			}
			want := put(path)
			texts := Lost(err, "sqlite:"+path, "recover")
			if got := strings.Contains(texts[0], "restart"); got != want || !strings.Contains(texts[len(texts)-1], "recover") {
				t.Errorf("%v: %q", err, texts)
			}
		})
	}
}

func fileStore(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Put(t.Context(), "k", []byte("1"), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	return s
}
