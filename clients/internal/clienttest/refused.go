package clienttest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Refused runs a program that must fail, and print these texts.
func Refused(t *testing.T, cmd *exec.Cmd, says ...string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%s: printed %.100s, want an error", cmd, out)
	}
	for _, text := range says {
		if !strings.Contains(string(out), text) {
			t.Errorf("%s: %s, want %q", strings.Join(cmd.Args, " "), out, text)
		}
	}
}

// Refusals makes each reason for no id. try runs a program with the arguments PATH WAIT [BATCH], and returns what the program
// prints: how many ids, or the class, the code and the text of its error. name is the class of a code of firn.h.
func Refusals(t *testing.T, try func(args ...string) string, name func(code int) string) {
	t.Helper()
	a := Serve(t, Brief)
	b, err := os.ReadFile(a.Path)
	if err != nil {
		t.Fatal(err)
	}
	boot := bytes.Clone(b)
	boot[16]++
	for path, b := range map[string][]byte{a.Path + ".copy": b, a.Path + ".boot": boot} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refuses := func(code int, text, path string, rest ...string) {
		t.Helper()
		want := fmt.Sprintf("%s %d firn: page %s: %s", name(code), code, path, text)
		if out := try(append([]string{path}, rest...)...); !strings.HasPrefix(out, want) {
			t.Errorf("%s %s: %s, want %s", path, strings.Join(rest, " "), out, want)
		}
	}
	const noPage, closed, ended, busy, unusable, system = 1, 2, 3, 4, 5, 7
	refuses(busy, "the ids of this moment are used up; retry", Serve(t, Slow).Path, "0", "100000")
	if out := try(a.Path, "1", "100000"); out != "100000\n" {
		t.Errorf("a batch of 100000: %s", out)
	}
	refuses(noPage, "there is no page; start its agent", a.Path+"x", "0.01")
	refuses(unusable, "its file system is ", "/proc/self/stat", "1")
	refuses(unusable, "it is a copy; use the original", a.Path+".copy", "1")
	refuses(unusable, "the system was started again since, or it is of another host; start its agent here", a.Path+".boot", "1")
	refuses(system, "open: ", "/", "0")
	a.Kill()
	time.Sleep(Outage + time.Second/2)
	refuses(ended, "ids ended at 20", a.Path, "0.2")
	a.Start()
	a.Stop()
	refuses(closed, "its agent has ended; start it again", a.Path, "0.2")
}
