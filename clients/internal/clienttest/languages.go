package clienttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/version"
)

// Java builds firn.jar as the README of clients/java says, and the program Take of its tests. It returns a function for the
// commands of java.
func Java(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	java, dir := Program(t, "java", "openjdk-17-jdk-headless"), buildJava(t)
	return func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), java, append(javaFlags, args...)...)
		cmd.Dir = dir
		return cmd
	}
}

// javaFlags are those of each java: one collector thread and a small heap, because many run at once; and firn.jar.
var javaFlags = slices.Clip([]string{"-XX:+UseSerialGC", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-p", "firn.jar", "--add-modules", "id.firn", "-cp", "programs"})

// buildJava builds firn.jar and the programs of its tests, and returns the directory.
func buildJava(t *testing.T) string {
	t.Helper()
	javac, from := Program(t, "javac", "openjdk-17-jdk-headless"), Root(t)+"/clients/java"
	return Shared(t, "java", func(dir string) {
		if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(from+"/src")); err != nil {
			t.Fatal(err)
		}
		Output(t, dir, "sh", "-ec", Samples(t, from+"/README.md", "sh")[0])
		Output(t, dir, javac, "-Xlint:all", "-Werror", "-p", "firn.jar", "--add-modules", "id.firn", "-d", "programs", from+"/testdata/Take.java")
	})
}

// JavaScript packs the package of clients/node and installs it, as its README says, beside the program take.js of its tests. It
// returns a function for the commands of node: that of PATH, so that tests run with another version if PATH has its directory.
func JavaScript(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	node := Program(t, "node", "nodejs libnode-dev")
	Program(t, "cc", "gcc")
	Program(t, "npm", "npm")
	dir := buildNode(t, "node")
	return func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), node, args...)
		cmd.Dir = dir
		return cmd
	}
}

// buildNode packs the package of clients/node and installs it, with more variables for npm, beside the program take.js of its
// tests. It returns the directory.
func buildNode(t *testing.T, name string, env ...string) string {
	t.Helper()
	from := Root(t) + "/clients"
	return Shared(t, name, func(dir string) {
		// Packed from a copy: packing writes firn.h.
		copied := filepath.Join(dir, "clients")
		for _, name := range []string{"node", "c"} {
			if err := os.CopyFS(filepath.Join(copied, name), os.DirFS(filepath.Join(from, name))); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(dir+"/package.json", []byte(`{"private": true}`), 0o600); err != nil {
			t.Fatal(err)
		}
		packed := "firn-page-" + version.Number + ".tgz"
		pack, install, _ := strings.Cut(Samples(t, from+"/node/README.md", "sh")[0], "\n")
		Output(t, copied+"/node", "sh", "-ec", pack)
		if err := os.Rename(filepath.Join(copied, "node", packed), filepath.Join(dir, packed)); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(copied); err != nil {
			t.Fatal(err)
		}
		settings := "export npm_config_offline=true npm_config_audit=false npm_config_fund=false npm_config_cache=" + dir + "/cache " + strings.Join(env, " ") + "\n"
		out := Output(t, dir, "sh", "-ec", settings+install)
		if _, err := os.Stat(dir + "/node_modules/firn-page/build/firn.node"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		Copy(t, dir, from+"/node/testdata/take.js")
	})
}

// Python builds the module of clients/python where nothing is installed; the package itself is tested there. It returns a
// function for the commands of python.
func Python(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	python := "/usr/bin/python3" // the one of Debian, also where another comes first in PATH
	if _, err := os.Stat(python); err != nil {
		python = Program(t, "python3", "python3")
	}
	include := strings.TrimSpace(Output(t, ".", python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"))
	if _, err := os.Stat(include + "/Python.h"); err != nil {
		Missing(t, "Python has no headers (apt-get install python3-dev)")
	}
	dir := buildPython(t, "python", Program(t, "gcc", "gcc"), "-I", include)
	return func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), python, args...)
		cmd.Dir = dir
		return cmd
	}
}

// buildPython compiles the module beside the programs of its tests, and returns the directory.
func buildPython(t *testing.T, name, cc string, flags ...string) string {
	t.Helper()
	from := Root(t) + "/clients"
	return Shared(t, name, func(dir string) {
		if err := os.Mkdir(dir+"/firn", 0o700); err != nil {
			t.Fatal(err)
		}
		all := []string{"-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-I", from + "/c", "-o", "firn/_page.abi3.so", from + "/python/src/firn/_page.c"}
		Output(t, dir, cc, append(all, flags...)...)
		Copy(t, dir+"/firn", from+"/python/src/firn/__init__.py")
		Copy(t, dir, from+"/python/testdata/take.py", from+"/python/testdata/refused.py")
	})
}

// PHP builds the extension of clients/php without phpize, which takes long; the package itself is tested there. It returns a
// function for the commands of php.
func PHP(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	php, config, cc := Program(t, "php", "php-cli"), Program(t, "php-config", "php-dev"), Program(t, "gcc", "gcc")
	dir := buildPHP(t, "php", cc, strings.Fields(Output(t, ".", config, "--includes"))...)
	return func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), php, append([]string{"-n", "-d", "extension=" + dir + "/firn.so"}, args...)...)
		cmd.Dir = dir
		return cmd
	}
}

// buildPHP compiles the extension beside the programs of its tests, and returns the directory.
func buildPHP(t *testing.T, name, cc string, flags ...string) string {
	t.Helper()
	from := Root(t) + "/clients"
	return Shared(t, name, func(dir string) {
		all := []string{"-std=gnu11", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-DCOMPILE_DL_FIRN", "-I", from + "/c", "-o", "firn.so", from + "/php/src/firn.c"}
		Output(t, dir, cc, append(all, flags...)...)
		Copy(t, dir, from+"/php/testdata/take.php", from+"/php/testdata/refused.php")
	})
}
