//go:build amd64 || arm64

package php_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/clients/internal/clienttest"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/version"
)

func TestMain(m *testing.M) { clienttest.Main(m) }

// A php is an interpreter with the extension of this directory, which is in a file.
type php struct{ program, extension, config string }

// find finds the programs that extensions are built with.
func find(t *testing.T) php {
	t.Helper()
	p := php{program: clienttest.Program(t, "php", "php-cli"), config: clienttest.Program(t, "php-config", "php-dev")}
	clienttest.Program(t, "phpize", "php-dev")
	clienttest.Program(t, "make", "make")
	return p
}

// install builds the extension as the README says, in a copy of the repository, and installs it below a new directory.
func install(t *testing.T) php {
	t.Helper()
	p, dir, root := find(t), t.TempDir(), t.TempDir()
	source := filepath.Join(dir, "clients", "php")
	for _, d := range []string{"clients/php/src", "clients/c"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	clienttest.Copy(t, filepath.Join(dir, "clients", "c"), "../c/firn.h")
	clienttest.Copy(t, source, "config.m4")
	clienttest.Copy(t, filepath.Join(source, "src"), "src/firn.c")
	here := strings.NewReplacer("./configure", "./configure --config-cache --with-php-config="+p.config, "sudo make install", "make install INSTALL_ROOT="+root)
	text := here.Replace(clienttest.Samples(t, "README.md", "sh")[0])
	if out := clienttest.Output(t, dir, "sh", "-ec", text); strings.Contains(out, "firn.c:") && strings.Contains(out, ": warning: ") {
		t.Error(out)
	}
	where := strings.TrimSpace(clienttest.Output(t, source, p.config, "--extension-dir"))
	p.extension = filepath.Join(root, where, "firn.so")

	// A PHP with 32 bits is refused. The cache makes this quick.
	cmd := exec.CommandContext(t.Context(), "./configure", "--config-cache", "--with-php-config="+p.config)
	cmd.Dir, cmd.Env = source, append(os.Environ(), "ac_cv_sizeof_void_p=4")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "firn needs a 64-bit PHP") {
		t.Errorf("%v: %s", err, out)
	}
	return p
}

// args are those of a program with the extension, and nothing of the machine's php.ini.
func (p php) args(args ...string) []string {
	return append([]string{"-n", "-d", "extension=" + p.extension, "-d", "zend.assertions=1", "-d", "memory_limit=1G"}, args...)
}

func (p php) command(t *testing.T, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(t.Context(), p.program, p.args(append([]string{"testdata/" + program}, args...)...)...)
}

// TestPHP builds the extension once, and tests it.
func TestPHP(t *testing.T) {
	p := install(t)
	if out := clienttest.Output(t, ".", p.program, p.args("-r", "echo phpversion('firn');")...); out != version.Number {
		t.Errorf("the extension says version %s, and firn is %s: change PHP_FIRN_VERSION", out, version.Number)
	}
	t.Run("threads", p.threads)
	t.Run("take", p.take)
	t.Run("refused", p.refused)
	t.Run("rules", p.rules)
	t.Run("declared", p.declared)
	t.Run("readme", p.readme)
	t.Run("storm", p.storm)
	t.Run("lanes", p.lanes)
	t.Run("fpm", p.fpm)
	t.Run("short", p.short)
}

// The extension compiles for a PHP with threads. Debian has none, so no test runs it.
func (p php) threads(t *testing.T) {
	cc, includes := clienttest.Program(t, "gcc", "gcc"), strings.Fields(clienttest.Output(t, ".", p.config, "--includes"))
	flags := []string{"-std=gnu11", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-DCOMPILE_DL_FIRN", "-DZTS", "-I", "../c", "-o", filepath.Join(t.TempDir(), "firn.so"), "src/firn.c"}
	clienttest.Output(t, ".", cc, append(includes, flags...)...)
}

// Calls, forks and objects that come and go take ids of one page.
func (p php) take(t *testing.T) {
	a := clienttest.Serve(t)
	var ids clienttest.IDs
	for _, c := range []struct {
		what, n string
		want    int
	}{
		{"next", "20000", 20000},
		{"batch", "100000", 100000}, // more than a tick has
		{"mixed", "5000", 5000},
		{"fork", "5000", 25001},
		{"objects", "2000", 2000},
	} {
		if n := ids.Run(t, p.command(t, "take.php", c.what, a.Path, c.n)); n != c.want {
			t.Errorf("%s: %d ids, want %d", c.what, n, c.want)
		}
	}
}

// Each reason for no id is a class of its own, and says what to do.
func (p php) refused(t *testing.T) {
	try := func(args ...string) string {
		return clienttest.Output(t, ".", p.program, p.args(append([]string{"testdata/refused.php"}, args...)...)...)
	}
	clienttest.Refusals(t, try, func(code int) string {
		return `Firn\` + []string{1: "NoPage", 2: "Closed", 3: "Ended", 4: "Busy", 5: "Unusable", 7: "Exception"}[code]
	})
}

func (p php) rules(t *testing.T) {
	a := clienttest.Serve(t)
	a.Stop()
	if out := clienttest.Output(t, ".", p.program, p.args("testdata/rules.php", a.Path)...); out != "ok\n" {
		t.Error(out)
	}
}

// The stub for editors declares what the extension has.
func (p php) declared(t *testing.T) {
	out := clienttest.Output(t, ".", p.program, p.args("testdata/declared.php", "firn.stub.php")...)
	if out != "ok\n" {
		t.Error(out)
	}
}

// The samples of the README run as they are.
func (p php) readme(t *testing.T) {
	a := clienttest.Serve(t)
	samples := clienttest.Samples(t, "README.md", "php")
	var ids clienttest.IDs
	for i, s := range samples {
		samples[i] = strings.ReplaceAll(s, "/run/firn/page", a.Path)
		out := clienttest.Output(t, ".", p.program, p.args("-r", samples[i])...)
		if n := ids.Add(t, s, out); n == 0 {
			t.Errorf("%s\nprints %s", s, out)
		}
	}
	a.Stop()
	out := clienttest.Output(t, ".", p.program, p.args("-r", samples[len(samples)-1])...)
	if !strings.HasPrefix(out, "no id: firn: page ") {
		t.Error(out)
	}
}

func (p php) storm(t *testing.T) {
	client := func(path string) *exec.Cmd { return p.command(t, "take.php", "until", path) }
	clienttest.Storm(t, client, client)
}

func (p php) lanes(t *testing.T) {
	clienttest.OverLanes(t, func(path string) *exec.Cmd { return p.command(t, "take.php", "until", path) })
}

// Short processes, one after the other, use one worker. Their ids increase from process to process.
func (p php) short(t *testing.T) {
	n := 10
	if testserver.Long() {
		n = 10_000
	}
	a := clienttest.Serve(t)
	var all strings.Builder
	worker := int64(-1)
	for i := range n {
		out := clienttest.Output(t, ".", p.program, p.args("testdata/refused.php", a.Path, "1")...)
		id, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		if err != nil {
			t.Fatalf("process %d: %s", i, out)
		}
		parts, err := firn.Default().Decode(firn.ID(id))
		if err != nil || (worker >= 0 && parts.Worker != worker) {
			t.Fatalf("process %d: worker %d after worker %d, %v", i, parts.Worker, worker, err)
		}
		worker = parts.Worker
		all.WriteString(out)
	}
	var ids clienttest.IDs
	if got := ids.Add(t, "short processes", all.String()); got != n {
		t.Errorf("%d ids of %d processes", got, n)
	}
}
