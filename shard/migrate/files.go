package migrate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A File is one numbered SQL file.
type File struct {
	Number int64
	Name   string // as in 001_users.sql
	Sum    string // the SHA-256 of its text, in hex

	// Outside says that its statements run outside of a transaction, each by itself.
	Outside bool

	statements []statement
}

// outside is the first line of a file whose statements cannot be in a transaction.
const outside = "-- firn: no transaction"

var numbered = regexp.MustCompile(`^(\d+)(?:[_.-].*)?\.sql$`)

// ReadDir reads the SQL files of a directory, in the order of their numbers. It ignores other files and
// directories. The error names every file that is wrong.
func ReadDir(fsys fs.FS) ([]File, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var files []File
	var wrong []error
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".sql" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		f, err := readFile(fsys, e.Name())
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", e.Name(), err))
			continue
		}
		files = append(files, f)
	}
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(a.Number, b.Number) })
	for i := 1; i < len(files); i++ {
		if files[i-1].Number == files[i].Number {
			wrong = append(wrong, fmt.Errorf("%s and %s have the same number", files[i-1].Name, files[i].Name))
		}
	}
	return files, errors.Join(wrong...)
}

func readFile(fsys fs.FS, name string) (File, error) {
	m := numbered.FindStringSubmatch(name)
	if m == nil {
		return File{}, errors.New("its name has no number, as 001_users.sql has")
	}
	number, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return File{}, errors.New("its number is too large")
	}
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return File{}, err
	}
	// How lines end is up to the editor and to git, and no change.
	text := strings.ReplaceAll(strings.TrimPrefix(string(b), "\ufeff"), "\r\n", "\n")
	if at := invalid(text); at >= 0 {
		return File{}, fmt.Errorf("line %d: it is not UTF-8", 1+strings.Count(text[:at], "\n"))
	}
	sum := sha256.Sum256([]byte(text))
	f := File{Number: number, Name: name, Sum: hex.EncodeToString(sum[:])}
	if f.Outside, err = isOutside(text); err != nil {
		return File{}, err
	}
	if f.statements, err = split(text); err != nil {
		return File{}, err
	}
	if len(f.statements) == 0 {
		return File{}, errors.New("there is no statement in it")
	}
	return f, nil
}

// isOutside reads the first line. One that is meant for firn and says something
// else must not be taken for a comment.
func isOutside(text string) (bool, error) {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.Join(strings.Fields(line), " ")
	switch {
	case line == outside:
		return true, nil
	case strings.HasPrefix(line, "-- firn:"), strings.HasPrefix(line, "--firn:"):
		return false, fmt.Errorf("line 1: %q: firn knows %q only", line, outside)
	}
	return false, nil
}

// invalid is the place of what PostgreSQL takes for no text, or -1.
func invalid(text string) int {
	for i, r := range text {
		if r == 0 || r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") {
			return i
		}
	}
	return -1
}
