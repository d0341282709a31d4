package repotest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	module = "github.com/firn-id/firn"
	root   = "../.." // of the repository
)

// A pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Dir        string
	Name       string
	GoFiles    []string
	Imports    []string
}

// name is the package's path below the module, "." for the root.
func (p pkg) name() string {
	s, _ := below(p.ImportPath)
	return s
}

// below cuts the module from the path of one of our packages.
func below(imp string) (string, bool) {
	if imp == module {
		return ".", true
	}
	return strings.CutPrefix(imp, module+"/")
}

// standard reports whether imp is in the standard library: there the first
// element of a path has no dot.
func standard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

var list = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Name,GoFiles,Imports", "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

// packages are all packages of the module.
func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := list()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// files calls f with every file of the repository that ends in ext.
func files(t *testing.T, ext string, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch name := ""; {
		case err != nil:
			return err
		case d.IsDir():
			name = d.Name()
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "dist" || name == "node_modules") {
				return filepath.SkipDir
			}
		case filepath.Ext(path) == ext:
			f(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
