//go:build amd64 || arm64

package java_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/clients/internal/clienttest"
	"github.com/firn-id/firn/internal/pagefile"
)

// rules builds Page.java and Rules.java in a package for each text of Page.java, and returns what one program says that runs
// them all: a line each.
func rules(t *testing.T, arg, input string, pages ...string) []string {
	t.Helper()
	clienttest.Program(t, "javac", "openjdk-17-jdk-headless")
	dir := t.TempDir()
	b, err := os.ReadFile("testdata/id/firn/Rules.java")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for i, page := range pages {
		name := fmt.Sprintf("m%d", i)
		fmt.Fprintf(&all, "try { %s.Rules.main(args); } catch (Throwable e) { System.out.println(e.getMessage()); }\n", name)
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"Page.java": page, "Rules.java": string(b)} {
			text = strings.Replace(text, "package id.firn;", "package "+name+";", 1)
			if err := os.WriteFile(filepath.Join(dir, name, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := "public class Run { public static void main(String[] args) {\n" + all.String() + "} }\n"
	if err := os.WriteFile(filepath.Join(dir, "Run.java"), []byte(run), 0o600); err != nil {
		t.Fatal(err)
	}
	clienttest.Output(t, dir, "javac", "-d", ".", "-sourcepath", ".", "Run.java")
	cmd := exec.CommandContext(t.Context(), "java", "-XX:TieredStopAtLevel=1", "-cp", dir, "Run", arg)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func source(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("src/main/java/id/firn/Page.java")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// mutants are Page.java without each of its rules. old occurs once, and becomes changed.
var mutants = []struct{ name, old, changed string }{
	{"not compared after it was taken", "if (end > load(HORIZON)) {", "if (false) {"},
	{"compared only after it was taken", "if (next > horizon || next < 0) {", "if (false) {"},
	{"does not wait for the clock", "* tick > now + ahead ? WAIT : next", "* tick < 0 ? WAIT : next"},
	{"taken by a store", "return WORD.compareAndSet(memory, NUMBER, old, value);", "WORD.setVolatile(memory, NUMBER, value); return true;"},
	{"writes to a closed page", "if (word == CLOSED) {\n\t\t\treturn SHUT;", "if (false) {\n\t\t\treturn SHUT;"},
	{"does not see that it has left", "if (left) {", "if (false) {"},
	{"marks the page as left too late", "left = true;\n\t\t\tlong word = load(NUMBER);", "long word = load(NUMBER);\n\t\t\tleft = true;"},
	{"forgets what it took from another page", "long next = Math.max(word, above) + 1;", "long next = word + 1;"},
	{"forgets the page before the last", "return Math.max((((word >>> seqBits) + 1) << seqBits) - 1, above);", "return (((word >>> seqBits) + 1) << seqBits) - 1;"},
}

// TestSteps: what others do to the words of a page between two steps of a call. Without each rule something goes wrong.
func TestSteps(t *testing.T) {
	pages := []string{source(t)}
	for _, m := range mutants {
		if n := strings.Count(pages[0], m.old); n != 1 {
			t.Fatalf("%s: its text occurs %d times in Page.java, and must once", m.name, n)
		}
		pages = append(pages, strings.Replace(pages[0], m.old, m.changed, 1))
	}
	says := rules(t, "steps", "", pages...)
	if len(says) != len(pages) || says[0] != "ok" {
		t.Fatal(says)
	}
	for i, m := range mutants {
		if t.Logf("%s: %s", m.name, says[i+1]); says[i+1] == "ok" {
			t.Errorf("%s: not found", m.name)
		}
	}
}

// TestLook: Java decides as package pagefile does, whatever it finds in a page.
func TestLook(t *testing.T) {
	const cases = 20_000
	r := rand.New(rand.NewPCG(1, 2))
	var in, want strings.Builder
	for range cases {
		bits := uint8(r.IntN(20))
		h := &pagefile.Header{Tick: 1 + r.Int64N(1000), SeqBits: bits, Even: r.Uint64N(1 << bits)}
		h.Ahead = r.Int64N(5) * h.Tick
		tick := 1 + r.Uint64N(100)
		near := func() uint64 { return (tick+r.Uint64N(6))<<bits + r.Uint64N(1<<bits+2) }
		word, horizon, above, n := near(), near(), near(), 1+r.Uint64N(2<<bits)
		if r.IntN(20) == 0 {
			word = pagefile.Closed
		}
		if r.IntN(2) == 0 {
			above = 0
		}
		now := (int64(tick) + r.Int64N(8)) * h.Tick
		first, last, do := h.Look(word, horizon, above, now, n)
		answer := fmt.Sprint(map[pagefile.Answer]int{pagefile.Wait: -1, pagefile.Ended: -2, pagefile.Shut: -3}[do], " 0\n")
		if do == pagefile.Take {
			answer = fmt.Sprintln(first, last)
		}
		fmt.Fprintln(&in, h.Tick, bits, h.Even, h.Ahead, int64(word), horizon, above, now, n)
		want.WriteString(answer)
	}
	got := rules(t, "look", in.String(), source(t))
	for i, line := range strings.Split(strings.TrimSpace(want.String()), "\n") {
		if i >= len(got) || got[i] != line {
			t.Fatalf("case %s: %s, want %s", strings.Split(in.String(), "\n")[i], got[min(i, len(got)-1)], line)
		}
	}
}
