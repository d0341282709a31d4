//go:build !windows

package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/variable"
)

var updatePages = flag.Bool("update", false, "write into the pages of docs what their commands print now")

// longPages are typed by make full alone: they move shards again and again, as TestMoveScripts,
// and the tests of reopen and of backups do with the same messages.
var longPages = []string{"docs/reference/shards-moves.md", "docs/reference/shards-recovery.md"}

// TestPages types every command of the pages, on real servers, and compares what is
// printed with what the page says. With -update the page is made to say it.
func TestPages(t *testing.T) {
	t.Parallel()
	servers := &pageServers{t: t, free: map[string][]*testserver.Server{}, update: *updatePages}
	for _, name := range typedPages(t) {
		if name == hostedPage {
			continue // TestHostedPage
		}
		t.Run(strings.TrimPrefix(name, "docs/"), func(t *testing.T) {
			if slices.Contains(longPages, name) {
				testserver.OnlyLong(t)
			}
			t.Parallel()
			servers.typePage(t, name)
		})
	}
}

// hostedPage is about roles that PostgreSQL has from 16 on.
const hostedPage = "docs/reference/hosted-postgresql.md"

// TestHostedPage does what TestPages does, with hostedPage.
func TestHostedPage(t *testing.T) {
	testserver.FromPostgres(t, 16)
	t.Parallel()
	servers := &pageServers{t: t, free: map[string][]*testserver.Server{}, update: *updatePages}
	servers.typePage(t, hostedPage)
}

// typePage types the commands of a page.
func (s *pageServers) typePage(t *testing.T, name string) {
	path := filepath.Join("../..", name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := readPage(string(b))
	if p.faults == nil {
		s.run(t, p)
	}
	for _, f := range p.faults {
		t.Errorf("%s:%s", path, f)
	}
	if text := strings.Join(p.lines, "\n"); s.update && text != string(b) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// programsOf pages are found, or installed, before a page is run.
var programsOf = map[string]func(testing.TB){
	"redis-cli": func(tb testing.TB) { testserver.RedisCLI(tb) },
	"java":      func(tb testing.TB) { testserver.Java(tb) },
	"javac":     func(tb testing.TB) { testserver.Java(tb) },
	"python3":   func(tb testing.TB) { testserver.Python(tb) },
	"curl":      func(tb testing.TB) { testserver.Curl(tb) },
	"node":      func(tb testing.TB) { testserver.JavaScript(tb, "testdata") },
}

// run does what happens on a page. A page that names today's date is run again if it
// was tomorrow before it ended.
func (s *pageServers) run(t *testing.T, p *page) {
	for name, need := range programsOf {
		word := regexp.MustCompile(`(?m)(^|[|;&] *|-- )` + name + `\b`)
		if slices.ContainsFunc(p.steps, func(st step) bool { return st.does <= doHidden && word.MatchString(st.text) }) {
			need(t)
		}
	}
	for {
		home := t.TempDir()
		a := s.prepare(t, p, home)
		before, err := a.day(p)
		if err != nil {
			t.Fatal(err)
		}
		faults, lines := s.typeAll(t, p, a, home)
		if after, _ := new(addresses).day(p); after == before {
			p.faults, p.lines = append(p.faults, faults...), lines
			return
		}
	}
}

// typeAll types the page's commands into one shell, and returns what is wrong, and the
// page's lines as they should be.
func (s *pageServers) typeAll(t *testing.T, p *page, a *addresses, home string) (faults, lines []string) {
	sh := newShell(t, home, a.env)
	defer sh.close()
	fault := func(st step, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%d: %s", st.line, fmt.Sprintf(format, args...)))
	}
	done := 0 // lines of the page that were copied
	for _, st := range p.steps {
		switch st.does {
		case doFile:
			if err := os.WriteFile(filepath.Join(home, st.at), []byte(a.typed(st.text)), 0o600); err != nil {
				t.Fatal(err)
			}
		case doServer:
			if err := a.change(s.t, t, st); err != nil {
				fault(st, "%v", err)
				return faults, p.lines
			}
		case doSQL:
			if err := runOn(t, a.url[st.at], st.text); err != nil {
				fault(st, "%s: %v", st.at, err)
				return faults, p.lines
			}
		default:
			want := p.lines[st.from:st.to]
			out, code, err := sh.step(t, st, a, want)
			if err != nil {
				fault(st, "%s: %v\n%s", st.text, err, out)
				return faults, p.lines
			}
			got := linesOf(a.printed(out))
			if code != st.exits {
				fault(st, "%s: exit code %d, and the page says %d\n%s", st.text, code, st.exits, strings.Join(got, "\n"))
			}
			if st.does == doHidden || agree(want, got, st.varies) {
				continue
			}
			if s.update && !slices.Contains(want, "...") {
				lines, done = append(append(lines, p.lines[done:st.from]...), got...), st.to
			} else {
				fault(st, "%s\nprinted:\n%s\nand the page says:\n%s", st.text, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
	return faults, append(lines, p.lines[done:]...)
}

// linesOf are the lines of what was printed; none where nothing was.
func linesOf(text string) []string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// A shell is one that a reader types a page's commands into.
type shell struct {
	cmd *exec.Cmd
	in  *os.File
	out *os.File
	r   *bufio.Reader

	stays int // commands that were left running
}

// newShell starts a shell in an empty home. $REPOSITORY is where the checkout is.
func newShell(t *testing.T, home string, env []string) *shell {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	sh := &shell{cmd: exec.Command(bash, "--noprofile", "--norc"), in: inW, out: outR, r: bufio.NewReader(outR)}
	sh.cmd.Dir, sh.cmd.Stdin, sh.cmd.Stdout, sh.cmd.Stderr = home, inR, outW, outW
	sh.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, variable.Prefix) && !strings.HasPrefix(v, "PG") {
			sh.cmd.Env = append(sh.cmd.Env, v)
		}
	}
	sh.cmd.Env = append(sh.cmd.Env, "HOME="+home, "XDG_STATE_HOME=", "XDG_CONFIG_HOME="+os.DevNull, "KUBERNETES_SERVICE_HOST=",
		"GORACE="+raceOptions, "LC_ALL=C.UTF-8", "TZ=UTC", "REPOSITORY="+repository)
	sh.cmd.Env = append(append(sh.cmd.Env, env...), goCaches(t)...)
	if err := sh.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inR.Close()
	outW.Close()
	return sh
}

// goCaches are where Go keeps what it has built and downloaded: a page that builds a program uses them, though it
// has a home of its own.
func goCaches(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	return []string{"GOCACHE=" + lines[0], "GOMODCACHE=" + lines[1], "GOPATH=" + lines[2], "GOFLAGS=-mod=mod"}
}

// run types a command, and returns what it printed and its exit code.
func (sh *shell) run(text string) (out string, code int, err error) {
	return sh.runFrom(os.DevNull, text)
}

// runFrom is run, with standard input from a file.
func (sh *shell) runFrom(input, text string) (out string, code int, err error) {
	const mark = "\x1e"
	if _, err := fmt.Fprintf(sh.in, "eval %s <%s; printf '\\n\\036%%d\\036' $?\n", quoted(text), input); err != nil {
		return "", 0, err
	}
	if err := sh.out.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return "", 0, err
	}
	out, err = sh.r.ReadString(mark[0])
	if err != nil {
		return out, 0, err
	}
	number, err := sh.r.ReadString(mark[0])
	if err != nil {
		return out, 0, err
	}
	code, err = strconv.Atoi(strings.TrimSuffix(number, mark))
	return strings.TrimSuffix(out, "\n"+mark), code, err
}

// step types a command of a page, as the page says that it is typed.
func (sh *shell) step(t *testing.T, st step, a *addresses, want []string) (out string, code int, err error) {
	switch text := a.typed(st.text); {
	case st.answer != "":
		out, code, err = sh.runFrom(terminalThatSays(t, st.answer), text)
		return question.ReplaceAllString(out, "${1}"+st.answer+"\n"), code, err
	case st.stays:
		return sh.stay(text, func(out string) bool { return agree(want, linesOf(a.printed(out)), st.varies) })
	default:
		return sh.run(text)
	}
}

// question is the end of what a command asks. A terminal shows the answer behind it, in a line.
var question = regexp.MustCompile(`(\[y/N\] |Type yes to continue: )`)

// stay types a command that a reader leaves running, in a shell of its own. It returns what the command prints until
// that is enough, or until it has printed nothing more for a second.
func (sh *shell) stay(text string, enough func(out string) bool) (out string, code int, err error) {
	file := filepath.Join(sh.cmd.Dir, fmt.Sprintf(".stays%d", sh.stays))
	sh.stays++
	if out, code, err = sh.run(fmt.Sprintf("%s >%s 2>&1 &", strings.TrimRight(text, "\n"), file)); code != 0 || err != nil {
		return out, code, err
	}
	for quiet := 0; quiet < 20 || out == ""; quiet++ {
		time.Sleep(50 * time.Millisecond)
		b, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", 0, err
		}
		if now := logged.ReplaceAllString(string(b), ""); now != out {
			out, quiet = now, 0
		}
		if enough(out) || quiet > 600 {
			break
		}
	}
	return out, 0, nil
}

// logged are lines of a log: on a busy machine there are more.
var logged = regexp.MustCompile(`(?m)^time=.*\n`)

// quoted is a text as one word of the shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// close ends the shell, and what it has left running.
func (sh *shell) close() {
	if err := syscall.Kill(-sh.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		panic(err)
	}
	sh.out.SetReadDeadline(time.Now().Add(10 * time.Second))
	io.Copy(io.Discard, sh.r) // until all have ended that could write
	sh.cmd.Wait()
	sh.in.Close()
	sh.out.Close()
}
