package repotest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program that leases ids and shows them compiles nothing but the standard library
// and firn, and its go.mod requires nothing but firn.
func TestConsumer(t *testing.T) {
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "go.mod", "module example.com/consumer\n\ngo 1.26\n\n"+
		"require "+module+" v0.0.0\n\nreplace "+module+" => "+here+"\n")
	write(t, dir, "main.go", `package main

import (
	_ "`+module+`/lease"
	_ "`+module+`/public"
	_ "`+module+`/store/memory"
)

func main() {}
`)

	// What our own build has downloaded is enough, so the network is not asked.
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for imp := range strings.FieldsSeq(string(out)) {
		if _, ours := below(imp); !ours && imp != "example.com/consumer" {
			t.Errorf("a user of lease, public and store/memory compiles %s", imp)
		}
	}

	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mod), "// indirect") {
		t.Errorf("the requirements of a user of lease, public and store/memory:\n%s", mod)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
