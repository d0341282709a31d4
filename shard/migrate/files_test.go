package migrate

import (
	"strings"
	"testing"
	"testing/fstest"
)

// dir is a directory of files, each by its name.
func dir(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// mustRead reads files that are right.
func mustRead(t testing.TB, texts map[string]string) []File {
	t.Helper()
	files, err := ReadDir(dir(texts))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestReadDir(t *testing.T) {
	files := mustRead(t, map[string]string{
		"10_last.sql": "SELECT 10", "9.sql": "SELECT 9", "001_users.sql": "SELECT 1", "0002-photos.sql": outside + "\nSELECT 2",
		"README.md": "no SQL", "sub/3.sql": "no", ".4.sql": "no",
	})
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
		if f.Outside != (f.Number == 2) {
			t.Errorf("%s: outside of a transaction: %v", f.Name, f.Outside)
		}
	}
	if got, want := strings.Join(names, " "), "001_users.sql 0002-photos.sql 9.sql 10_last.sql"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSum: how lines end, and a mark that an editor puts before the text, are no
// change; a letter is.
func TestSum(t *testing.T) {
	sum := func(text string) string { return mustRead(t, map[string]string{"1.sql": text})[0].Sum }
	a := sum("SELECT 1;\nSELECT 2;\n")
	if b := sum("\ufeffSELECT 1;\r\nSELECT 2;\r\n"); a != b {
		t.Errorf("%s with other ends of lines is %s", a, b)
	}
	if b := sum("SELECT 1;\nSELECT 3;\n"); a == b {
		t.Error("two texts have one sum")
	}
}

func TestReadDirRefuses(t *testing.T) {
	for _, tt := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"users.sql": "SELECT 1"}, "users.sql: its name has no number"},
		{map[string]string{"1a.sql": "SELECT 1"}, "1a.sql: its name has no number"},
		{map[string]string{"99999999999999999999.sql": "SELECT 1"}, "its number is too large"},
		{map[string]string{"1_a.sql": "SELECT 1", "001_b.sql": "SELECT 1"}, "001_b.sql and 1_a.sql have the same number"},
		{map[string]string{"1.sql": "-- nothing"}, "1.sql: there is no statement in it"},
		{map[string]string{"1.sql": "SELECT 1;\n\xff"}, "1.sql: line 2: it is not UTF-8"},
		{map[string]string{"1.sql": "SELECT 1;\x00"}, "1.sql: line 1: it is not UTF-8"},
		{map[string]string{"1.sql": "-- firn: no transactions\nSELECT 1"}, `firn knows "-- firn: no transaction" only`},
		{map[string]string{"1.sql": "COMMIT", "2.sql": "BEGIN"}, "1.sql: line 1: COMMIT: a file begins and ends no transaction, it runs in one\n2.sql:"},
	} {
		if files, err := ReadDir(dir(tt.files)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, %v; want %q", tt.files, files, err, tt.want)
		}
	}
}
