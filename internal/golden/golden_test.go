package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A failure is a test that keeps what is said of it.
type failure struct {
	testing.TB
	said []string
}

func (*failure) Helper() {}
func (f *failure) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

type part struct{ X int }

type whole struct {
	A    string
	List []part
}

func TestFilled(t *testing.T) {
	f := &failure{TB: t}
	Filled(f, "file", whole{A: "x"}, whole{List: []part{{}}})
	if len(f.said) != 1 || !strings.Contains(f.said[0], "golden.part.X") {
		t.Errorf("%q", f.said)
	}
}

func TestSame(t *testing.T) {
	t.Setenv(Rewrite, "")
	file := filepath.Join(t.TempDir(), "0.0.1", "a.txt")
	if err := os.Mkdir(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("one\ntwo\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	f := &failure{TB: t}
	Same(f, file, []byte("one\ntwo\n"), "do that")
	Same(f, file, []byte("one\n2\n"), "do that")
	t.Setenv(Rewrite, "write") // the changelog has no version 0.0.1 that is not released
	Same(f, file, []byte("one\n2\n"), "do that")
	if len(f.said) != 2 || f.said[0] != f.said[1] || !strings.Contains(f.said[0], "a.txt line 2 is\n\"two\"\nand this firn writes\n\"2\"\ndo that") {
		t.Errorf("%q", f.said)
	}
}
