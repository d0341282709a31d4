package migrate

import (
	"strings"
	"testing"
	"testing/fstest"
)

// Whatever a file has in it, it is statements that are parts of it, or an error that
// names the file. How lines end makes no difference.
func FuzzReadDir(f *testing.F) {
	for _, s := range []string{"-- firn: no transaction\nCREATE INDEX CONCURRENTLY i ON t (a);", "-- firn: no transactions\nSELECT 1;", "\ufeffSELECT 1", "SELECT '\x00'", "--firn:", "SELECT '\xff'", ";"} {
		f.Add("001_a.sql", s)
	}
	f.Add("99999999999999999999.sql", "SELECT 1")
	f.Fuzz(func(t *testing.T, name, text string) {
		if strings.ContainsAny(name, "/\\") || name == "" || name == "." || name == ".." {
			return
		}
		files, err := ReadDir(fstest.MapFS{name: {Data: []byte(text)}})
		if err != nil {
			if !strings.HasPrefix(err.Error(), name+": ") && len(files) == 0 && !strings.HasPrefix(err.Error(), "open ") {
				t.Fatalf("%q: %v", name, err)
			}
			return
		}
		for _, one := range files {
			if one.Name != name || one.Number < 0 || len(one.Sum) != 64 || len(one.statements) == 0 {
				t.Fatalf("%q: %+v", name, one)
			}
			crlf := strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
			again, err := ReadDir(fstest.MapFS{name: {Data: []byte(crlf)}})
			if err != nil || again[0].Sum != one.Sum || again[0].Outside != one.Outside {
				t.Fatalf("%q with CR LF: %+v, %v", text, again, err)
			}
		}
	})
}
