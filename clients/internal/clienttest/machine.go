//go:build !windows

package clienttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A Machine builds and runs programs for another processor on this host: it emulates the processor.
type Machine struct {
	Name   string // of the processor: it ends the names of languages
	GOARCH string
	CC     string                                         // a C compiler
	Root   string                                         // a directory with its interpreters, libraries and headers, from Debian 12
	Run    func(program string, args ...string) *exec.Cmd // runs a program of the machine
}

// A Foreign is a language on a [Machine].
type Foreign struct {
	Language
	// Once returns a process that takes an id with a short wait, and prints the id or an error.
	Once func(path string) *exec.Cmd
}

// Languages returns the languages of a machine: each client is built for its processor. The test's package needs [Main].
func (m *Machine) Languages(t *testing.T) []Foreign {
	t.Helper()
	all := []Foreign{m.c(t), m.inGo(t), m.java(t), m.node(t), m.python(t), m.php(t)}
	for i := range all {
		all[i].Name += " on " + m.Name
	}
	return all
}

func (m *Machine) c(t *testing.T) Foreign {
	program := Compile(t, m.CC, Root(t)+"/clients/c/testdata/take.c", Root(t)+"/clients/c", "-O2")
	return Foreign{
		Language{"C", func(args ...string) *exec.Cmd { return m.Run(program, args...) }},
		func(path string) *exec.Cmd { return m.Run(program, "next", path, "1") },
	}
}

// Go returns a program of the machine that has the roles of [Main].
func (m *Machine) Go(t *testing.T) string {
	t.Helper()
	dir := Shared(t, "go-"+m.GOARCH, func(dir string) {
		cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", filepath.Join(dir, "program"), ".")
		cmd.Dir = Root(t) + "/clients/internal/clienttest"
		cmd.Env = append(os.Environ(), "GOARCH="+m.GOARCH, "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	})
	return filepath.Join(dir, "program")
}

func (m *Machine) inGo(t *testing.T) Foreign {
	program := m.Go(t)
	as := func(role string, args ...string) *exec.Cmd {
		cmd := m.Run(program, args...)
		cmd.Env = append(os.Environ(), variable+"="+role, "GOMAXPROCS=1")
		return cmd
	}
	return Foreign{
		Language{"Go", func(args ...string) *exec.Cmd { return as("runs", args...) }},
		func(path string) *exec.Cmd { return as("once " + path) },
	}
}

// in returns a command that runs in a directory.
func in(dir string, cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = dir
	return cmd
}

func (m *Machine) java(t *testing.T) Foreign {
	dir := buildJava(t)
	found, err := filepath.Glob(m.Root + "/usr/lib/jvm/java-[0-9][0-9]-openjdk-*/bin/java")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	run := func(args ...string) *exec.Cmd { return in(dir, m.Run(found[0], append(javaFlags, args...)...)) }
	return Foreign{
		Language{"Java", func(args ...string) *exec.Cmd { return run(append([]string{"Take"}, args...)...) }},
		func(path string) *exec.Cmd { return run("-Dwait=0", "Take", "next", path, "1") },
	}
}

func (m *Machine) node(t *testing.T) Foreign {
	dir := buildNode(t, "node-"+m.GOARCH, "CC="+m.CC, "npm_config_nodedir="+m.Root+"/usr/include/nodejs")
	run := func(args ...string) *exec.Cmd {
		return in(dir, m.Run(m.Root+"/usr/bin/node", append([]string{"take.js"}, args...)...))
	}
	return Foreign{Language{"Node", run}, func(path string) *exec.Cmd { return run("next", path, "1") }}
}

func (m *Machine) python(t *testing.T) Foreign {
	include := m.Root + "/usr/include"
	dir := buildPython(t, "python-"+m.GOARCH, m.CC, "-I", include+"/python3.11", "-I", include)
	run := func(args ...string) *exec.Cmd { return in(dir, m.Run(m.Root+"/usr/bin/python3.11", args...)) }
	return Foreign{
		Language{"Python", func(args ...string) *exec.Cmd { return run(append([]string{"take.py"}, args...)...) }},
		func(path string) *exec.Cmd { return run("refused.py", path, "0") },
	}
}

func (m *Machine) php(t *testing.T) Foreign {
	found, err := filepath.Glob(m.Root + "/usr/include/php/*")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	var includes []string
	for _, part := range []string{"", "/main", "/TSRM", "/Zend", "/ext"} {
		includes = append(includes, "-I", found[0]+part)
	}
	dir := buildPHP(t, "php-"+m.GOARCH, m.CC, includes...)
	run := func(args ...string) *exec.Cmd {
		return in(dir, m.Run(m.Root+"/usr/bin/php8.2", append([]string{"-n", "-d", fmt.Sprintf("extension=%s/firn.so", dir)}, args...)...))
	}
	return Foreign{
		Language{"PHP", func(args ...string) *exec.Cmd { return run(append([]string{"take.php"}, args...)...) }},
		func(path string) *exec.Cmd { return run("refused.php", path, "0") },
	}
}
