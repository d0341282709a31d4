//go:build amd64 || arm64

package python_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/clients/internal/clienttest"
	"github.com/firn-id/firn/internal/version"
)

func TestMain(m *testing.M) { clienttest.Main(m) }

// A python is an interpreter that has the package of this directory.
type python string

// install makes a source distribution of this directory, and installs it into a new virtual environment.
func install(t *testing.T) python {
	t.Helper()
	system := "/usr/bin/python3" // the one that has Debian's packages, also where another comes first in PATH
	if _, err := os.Stat(system); err != nil {
		system = clienttest.Program(t, "python3", "python3")
	}
	clienttest.Program(t, "gcc", "gcc")
	needs := "import setuptools, wheel, pip, sysconfig, os, sys; sys.exit(not os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
	if err := exec.Command(system, "-c", needs).Run(); err != nil {
		clienttest.Missing(t, "Python lacks what packages are built with (apt-get install python3-dev python3-pip python3-setuptools python3-wheel)")
	}
	dir := t.TempDir()
	for _, d := range []string{"c", "python/src/firn"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	source := filepath.Join(dir, "python")
	clienttest.Copy(t, filepath.Join(dir, "c"), "../c/firn.h")
	clienttest.Copy(t, source, "pyproject.toml", "setup.py", "README.md")
	clienttest.Copy(t, filepath.Join(source, "src", "firn"), "src/firn/_page.c", "src/firn/__init__.py", "src/firn/__init__.pyi", "src/firn/py.typed")
	clienttest.Output(t, source, system, "-c", "import setuptools.build_meta as b; b.build_sdist('dist')")
	clienttest.Output(t, dir, system, "-m", "venv", "--without-pip", "--system-site-packages", "venv")
	p := python(filepath.Join(dir, "venv", "bin", "python"))
	packed := filepath.Join(source, "dist", "firn-"+version.Number+".tar.gz")
	clienttest.Output(t, dir, string(p), "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", packed)
	return p
}

// command returns a program of testdata that the interpreter runs.
func (p python) command(t *testing.T, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(t.Context(), string(p), append([]string{"testdata/" + program}, args...)...)
}

// TestPython installs the package once, and tests it.
func TestPython(t *testing.T) {
	p := install(t)
	t.Run("take", p.take)
	t.Run("refused", p.refused)
	t.Run("waits", p.waits)
	t.Run("storm", p.storm)
	t.Run("lanes", p.lanes)
	t.Run("readme", p.readme)
	t.Run("keys", p.keys)
	t.Run("gunicorn", p.gunicorn)
}

// Threads, forks, and processes of both kinds of multiprocessing take ids of one page.
func (p python) take(t *testing.T) {
	a := clienttest.Serve(t)
	var ids clienttest.IDs
	for _, c := range []struct {
		what, n string
		want    int
	}{
		{"next", "20000", 20000},
		{"iterate", "1000", 1000},
		{"batch", "100000", 100000}, // more than a tick has
		{"threads", "5000", 20000},
		{"fork", "5000", 25001},
		{"pool", "5000", 20000},
		{"spawn", "5000", 20000},
	} {
		if n := ids.Run(t, p.command(t, "take.py", c.what, a.Path, c.n)); n != c.want {
			t.Errorf("%s: %d ids, want %d", c.what, n, c.want)
		}
	}
}

// Each reason for no id is a class of its own, and says what to do.
func (p python) refused(t *testing.T) {
	try := func(args ...string) string {
		return clienttest.Output(t, ".", string(p), append([]string{"testdata/refused.py"}, args...)...)
	}
	clienttest.Refusals(t, try, func(code int) string {
		return "firn." + []string{1: "NoPage", 2: "Closed", 3: "Ended", 4: "Busy", 5: "Unusable", 7: "Error"}[code]
	})
}

func (p python) waits(t *testing.T) {
	a := clienttest.Serve(t)
	a.Stop()
	if out := clienttest.Output(t, ".", string(p), "testdata/waits.py", a.Path); out != "ok\n" {
		t.Error(out)
	}
}

func (p python) storm(t *testing.T) {
	client := func(path string) *exec.Cmd { return p.command(t, "take.py", "until", path) }
	clienttest.Storm(t, client, client)
}

func (p python) lanes(t *testing.T) {
	clienttest.OverLanes(t, func(path string) *exec.Cmd { return p.command(t, "take.py", "until", path) })
}
