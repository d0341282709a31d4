package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A user who may not write the file of a store is told so, and not to name another one. Root
// writes every file, so this is of another user.
func TestReadOnlyStore(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	path := filepath.Join(emptyHome(t), "ids.db")
	if _, errs, code := called(t, "next", "--store", "sqlite:"+path); code != 0 {
		t.Fatal(errs)
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"next"}, {"pool", "ls"}, {"doctor"}} {
		out, errs, code := called(t, append(args, "--store", "sqlite:"+path)...)
		if text := out + errs; code == 0 || !strings.Contains(text, "make it writable") || strings.Contains(text, "name another") {
			t.Errorf("%q: exit code %d, %s", args, code, text)
		}
	}
}

// asNobody runs the test as another user.
func asNobody(t *testing.T) {
	t.Helper()
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // where another user may read it
	path := filepath.Join(dir, "firn.test")
	if err := errors.Join(os.WriteFile(path, own, 0o755), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-test.v", "-test.run", "^"+t.Name()+"$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}
