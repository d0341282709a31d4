//go:build amd64 || arm64

package c_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/page"
	"github.com/firn-id/firn/store/memory"
)

// compile builds a program of testdata with a firn.h. Where CI runs the compiler has to be there.
func compile(t *testing.T, compiler, source, header string, flags ...string) string {
	t.Helper()
	cc, err := exec.LookPath(compiler)
	if err != nil {
		text := fmt.Sprintf("NOT TESTED: there is no %s to build firn.h with (apt-get install %s)", compiler, compiler)
		if os.Getenv("FIRN_CI") != "" {
			t.Fatal(text)
		}
		fmt.Fprintln(os.Stderr, text)
		t.SkipNow()
	}
	program := filepath.Join(t.TempDir(), "program")
	args := append([]string{"-I", header, "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program}, flags...)
	if out, err := exec.CommandContext(t.Context(), cc, append(args, source)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", source, err, out)
	}
	return program
}

// serve serves a page until the test ends, or until stop is called.
func serve(t *testing.T) (path string, stop func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "page")
	l, err := lease.Open(t.Context(), memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- page.Serve(ctx, l, path, nil) }()
	p, err := page.Open(path, &page.OpenOptions{Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		l.Close()
		done <- nil
	}
	t.Cleanup(stop)
	return path, stop
}

// run runs a program and counts the ids that it prints, in seen.
func run(t *testing.T, seen map[string]bool, program string, args ...string) int {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v: %s", strings.Join(args, " "), err, errs.String())
	}
	n := 0
	for id := range strings.FieldsSeq(out.String()) {
		if seen[id] {
			t.Fatalf("%s: %s comes twice", strings.Join(args, " "), id)
		}
		seen[id] = true
		n++
	}
	return n
}

// TestTake: one process, batches, threads and forks take ids of one page from the client in C; and no id comes twice.
func TestTake(t *testing.T) {
	path, stop := serve(t)
	program := compile(t, "gcc", "testdata/take.c", ".", "-O2")
	seen := map[string]bool{}
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"next", path, "20000"}, 20000},
		{[]string{"append", path, "20", "1000"}, 20000},
		{[]string{"append", path, "1", "20000"}, 20000},
		{[]string{"threads", path, "5000", "8"}, 40000},
		{[]string{"fork", path, "5000", "8"}, 45001},
	} {
		if n := run(t, seen, program, c.args...); n != c.want {
			t.Errorf("%s: %d ids, want %d", strings.Join(c.args, " "), n, c.want)
		}
	}
	stop()
	for code, args := range map[string][]string{
		"2: firn: page " + path + ": its agent has ended":         {"next", path, "1"},
		"1: firn: page " + path + "x: there is no page":           {"next", path + "x", "1"},
		"5: firn: page /proc/self/stat: its file system is of an": {"next", "/proc/self/stat", "1"},
		"5: firn: page " + path + ".copy: it is a copy":           {"next", path + ".copy", "1"},
	} {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path+".copy", b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		if err == nil || !strings.HasPrefix(string(out), code) {
			t.Errorf("%s: %v: %s, want %s", strings.Join(args, " "), err, out, code)
		}
	}
}

// TestAtOnce: several processes in C and one in Go take ids of one page at once.
func TestAtOnce(t *testing.T) {
	path, _ := serve(t)
	program := compile(t, "gcc", "testdata/take.c", ".", "-O2")
	outs := make([]*bytes.Buffer, 6)
	cmds := make([]*exec.Cmd, len(outs))
	for i := range cmds {
		outs[i] = &bytes.Buffer{}
		cmds[i] = exec.CommandContext(t.Context(), program, "append", path, "2000", "10")
		cmds[i].Stdout, cmds[i].Stderr = outs[i], os.Stderr
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	p, err := page.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	seen := map[string]bool{}
	for range 5000 {
		id, err := p.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen[strconv.FormatInt(int64(id), 10)] = true
	}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		for id := range strings.FieldsSeq(outs[i].String()) {
			seen[id] = true
		}
	}
	if want := 5000 + 20000*len(cmds); len(seen) != want {
		t.Errorf("%d different ids, want %d", len(seen), want)
	}
}

// TestCompiles: the header compiles as C99, and as C++.
func TestCompiles(t *testing.T) {
	source := filepath.Join(t.TempDir(), "a.c")
	text := "#define _GNU_SOURCE\n#include \"firn.h\"\nint main(void) { firn *f; int64_t id; int code = firn_open(&f, \"/\", 0); if (code == 0) code = firn_next(f, &id); if (code == 0) code = firn_append(f, &id, 1); puts(firn_error(f, code)); firn_close(f); return 0; }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	compile(t, "gcc", source, ".", "-std=c99", "-O2", "-pedantic")
	compile(t, "g++", source, ".", "-x", "c++", "-U_GNU_SOURCE", "-O2")
}

// mutants are the rules of firn.h, and firn.h without each.
var mutants = []struct {
	name string
	// old occurs once, and becomes changed; so does with, which alone is enough.
	old, changed, with, withChanged string
}{
	{
		"not compared after it was taken", "	if (*last > FIRN_LOAD_(firn_horizon_(p)))\n", "	if (0)\n",
		"		if (FIRN_SWAP_(firn_number_(p), &word, *last))\n			break;\n", "		while (!FIRN_SWAP_(firn_number_(p), &word, *last))\n			*first = *last = word + 1;\n		break;\n",
	},
	{name: "compared only after it was taken", old: "	if (next > horizon)\n		return FIRN_EENDED;\n", changed: "	horizon = FIRN_CLOSED_ >> 2;\n"},
	{name: "does not wait for the clock", old: "	if ((next >> p->seq_bits) * p->tick > now + p->ahead)\n", changed: "	if (0)\n"},
	{name: "taken by a store", old: "		if (FIRN_SWAP_(firn_number_(p), &word, *last))\n			break;\n", changed: "		FIRN_STORE_(firn_number_(p), *last);\n		break;\n"},
	{name: "writes to a closed page", old: "	if (word == FIRN_CLOSED_)\n		return FIRN_ECLOSED;\n", changed: "	if (word == FIRN_CLOSED_)\n		word = horizon - 1;\n"},
	{name: "does not see that it has left", old: "	if (FIRN_LOAD_(&p->left))\n		return FIRN_PARTED_;\n", changed: ""},
	{name: "forgets what it took from another page", old: "	next = (word > p->above ? word : p->above) + 1;\n", changed: "	next = word + 1;\n"},
	{name: "forgets the page before the last", old: "	return above > p->above ? above : p->above;", changed: "	return above;"},
}

// TestSchedules runs the code of firn.h in random interleavings of its accesses to memory, and without each of its
// rules: then something must go wrong.
func TestSchedules(t *testing.T) {
	b, err := os.ReadFile("firn.h")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	out, err := exec.CommandContext(t.Context(), compile(t, "gcc", "testdata/schedules.c", ".", "-O1"), "3000").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			changed := text
			for _, c := range [][2]string{{m.old, m.changed}, {m.with, m.withChanged}} {
				if c[0] == "" {
					continue
				}
				if n := strings.Count(changed, c[0]); n != 1 {
					t.Fatalf("its text occurs %d times in firn.h, and must once", n)
				}
				changed = strings.Replace(changed, c[0], c[1], 1)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "firn.h"), []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), compile(t, "gcc", "testdata/schedules.c", dir, "-O1", "-w"), "20000").CombinedOutput()
			if err == nil {
				t.Fatalf("not found: %s", out)
			}
			t.Logf("%s", out)
		})
	}
}
