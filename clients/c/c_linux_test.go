//go:build amd64 || arm64

package c_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/clients/internal/clienttest"
	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) { clienttest.Main(m) }

func compile(t *testing.T, compiler, source, header string, flags ...string) string {
	t.Helper()
	return clienttest.Compile(t, compiler, source, header, flags...)
}

// TestTake: one process, batches, threads and forks take ids of one page from the client in C; and no id comes twice.
func TestTake(t *testing.T) {
	agent := clienttest.Serve(t)
	path := agent.Path
	program := compile(t, "gcc", "testdata/take.c", ".", "-O2")
	var ids clienttest.IDs
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
		if n := ids.Run(t, exec.CommandContext(t.Context(), program, c.args...)); n != c.want {
			t.Errorf("%s: %d ids, want %d", strings.Join(c.args, " "), n, c.want)
		}
	}
	agent.Stop()
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

// TestEnded: where an agent was killed, an error says since when the page has no ids.
func TestEnded(t *testing.T) {
	agent := clienttest.Serve(t, clienttest.Brief)
	program := compile(t, "gcc", "testdata/line.c", ".", "-O2")
	agent.Kill()
	time.Sleep(clienttest.Outage + time.Second)
	cmd := exec.CommandContext(t.Context(), program, agent.Path)
	cmd.Stdin = strings.NewReader("\n")
	before := time.Now()
	out, _ := cmd.CombinedOutput()
	_, text, _ := strings.Cut(string(out), "3: firn: page "+agent.Path+": ids ended at ")
	text, cure, _ := strings.Cut(text, "Z: ")
	at, err := time.Parse("2006-01-02T15:04:05", text)
	if ago := before.Sub(at); err != nil || ago < 0 || ago > 20*time.Second || !strings.HasPrefix(cure, "its agent or the agent's store is away; retry") {
		t.Errorf("%s: %v, %s ago", out, err, ago)
	}
}

// TestAtOnce: processes in C and in Go take ids of one page at once while it gets other agents.
func TestAtOnce(t *testing.T) {
	clienttest.Storm(t)
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
// rules: then something must go wrong. make full has more interleavings of the code as it is.
func TestSchedules(t *testing.T) {
	b, err := os.ReadFile("firn.h")
	if err != nil {
		t.Fatal(err)
	}
	text, schedules := string(b), "1000"
	if testserver.Long() {
		schedules = "3000"
	}
	out, err := exec.CommandContext(t.Context(), compile(t, "gcc", "testdata/schedules.c", ".", "-O1"), schedules).CombinedOutput()
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
