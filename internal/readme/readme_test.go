package readme

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) {
	testserver.Main(m, func() error { return os.RemoveAll(builtIn) })
}

const (
	root   = "../.."
	module = "github.com/firn-id/firn"
	draws  = 5_000
)

var someDraws = fmt.Sprintf("for range %d", draws)

var (
	programs = regexp.MustCompile("(?ms)^```go\n(.*?)^```")
	opening  = regexp.MustCompile("(?m)^\tstore, err := sqlite\\.OpenDefault.*\n")
	drawing  = regexp.MustCompile(`(?ms)^\tid, err := ids\.Next\(ctx\).*?^\tfmt\.Println\(id\)$`)
)

var builtIn string // a directory, or nothing yet

// built are the README's programs and the command, made once.
var built = sync.OnceValues(func() (b struct{ command, oneHost, manyHosts, endless string }, err error) {
	dir, err := os.MkdirTemp("", "readme-")
	if err != nil {
		return b, err
	}
	builtIn = dir
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return b, err
	}
	found := programs.FindAllStringSubmatch(string(text), -1)
	if len(found) != 2 {
		return b, fmt.Errorf("README.md has %d texts in Go, not a program and the line that opens another store", len(found))
	}
	oneHost := found[0][1]
	manyHosts := strings.Replace(oneHost, "/store/sqlite", "/store/open", 1)
	manyHosts = opening.ReplaceAllLiteralString(manyHosts, found[1][1])
	b.command = filepath.Join(dir, "firn")
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", b.command, module+"/cmd/firn").CombinedOutput(); err != nil {
		return b, fmt.Errorf("%w\n%s", err, out)
	}
	if b.oneHost, err = build(dir, "onehost", oneHost, someDraws); err != nil {
		return b, err
	}
	if b.manyHosts, err = build(dir, "manyhosts", manyHosts, someDraws); err != nil {
		return b, err
	}
	b.endless, err = build(dir, "endless", manyHosts, "for ctx.Err() == nil")
	return b, err
})

// build compiles a program as a user's module does. It draws in that loop, and nothing else is
// changed.
func build(dir, name, text, loop string) (string, error) {
	if !drawing.MatchString(text) {
		return "", fmt.Errorf("the program %s does not draw an id and print it:\n%s", name, text)
	}
	text = drawing.ReplaceAllStringFunc(text, func(body string) string {
		return fmt.Sprintf("\t%s {\n%s\n\t}", loop, body)
	})
	here, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	mod = regexp.MustCompile(`(?m)^module .*$`).ReplaceAll(mod, []byte("module example.com/"+name))
	mod = append(mod, fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %s\n", module, module, here)...)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return "", err
	}
	for file, text := range map[string][]byte{"go.mod": mod, "go.sum": sum, "main.go": []byte(text)} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			return "", err
		}
	}
	cmd := exec.Command("go", "build", "-ldflags=-w", "-o", "program", ".") // what debuggers read takes half of the time
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"), "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return filepath.Join(dir, "program"), nil
}

// A reader has a home, and runs what the README shows.
type reader struct {
	*testing.T
	command, oneHost, manyHosts, endless string
	home                                 string
	env                                  []string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	if testing.Short() {
		t.Skip("programs are not built with -short")
	}
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{T: t, command: b.command, oneHost: b.oneHost, manyHosts: b.manyHosts, endless: b.endless, home: t.TempDir()}
	// The tests may run in a container, where there is no default store. What is tested
	// here is a host.
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FIRN_") && !strings.HasPrefix(v, "KUBERNETES_") && !strings.HasPrefix(v, "XDG_") {
			r.env = append(r.env, v)
		}
	}
	return r
}

// user returns another user of the same host.
func (r *reader) user() *reader {
	u := *r
	u.home = r.TempDir()
	return &u
}

// A run is a process and what came of it.
type run struct {
	args           []string
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

// start starts a process in a directory of its own.
func (r *reader) start(name string, args ...string) *run {
	r.Helper()
	return r.startIn(r.TempDir(), name, args...)
}

// startIn starts a process in that directory.
func (r *reader) startIn(dir, name string, args ...string) *run {
	r.Helper()
	p := &run{args: append([]string{filepath.Base(filepath.Dir(name)) + "/" + filepath.Base(name)}, args...), cmd: exec.Command(name, args...)}
	p.cmd.Dir = dir
	p.cmd.Env = append(slices.Clone(r.env), "HOME="+r.home) // two readers may have one array
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { p.cmd.Process.Kill() })
	return p
}

func (r *reader) firn(args ...string) *run { return r.start(r.command, args...) }

// next is "firn next" for as many ids as a program draws.
func (r *reader) next(args ...string) *run {
	return r.firn(append([]string{"next", "-n", fmt.Sprint(draws)}, args...)...)
}

// done waits for a process that has to succeed.
func (r *reader) done(p *run) string {
	r.Helper()
	if err := p.cmd.Wait(); err != nil {
		r.Fatalf("%q: %v\n%s", p.args, err, p.stderr.String())
	}
	return p.stderr.String()
}

// refused waits for a process that has to be refused with these words.
func (r *reader) refused(p *run, words ...string) {
	r.Helper()
	err := p.cmd.Wait()
	for _, w := range words {
		if err == nil || !strings.Contains(p.stderr.String(), w) || p.stdout.Len() > 0 {
			r.Errorf("%q: %v, want %q in:\n%s", p.args, err, w, p.stderr.String())
		}
	}
}

// distinct looks for an id that two lines of the processes' output have.
func (r *reader) distinct(want int, all ...*run) {
	r.Helper()
	seen := map[string]int{}
	for i, p := range all {
		for line := range strings.Lines(p.stdout.String()) {
			id := strings.TrimSpace(line)
			if other, twice := seen[id]; twice {
				r.Fatalf("%s is printed twice: by %q and %q", id, all[other].args, p.args)
			}
			seen[id] = i
		}
	}
	if len(seen) < want {
		r.Errorf("%d ids, not %d", len(seen), want)
	}
}

// onAHost skips what needs a default store, where the tests run in a container.
func (r *reader) onAHost() {
	r.Helper()
	probe := r.user().firn("next")
	if probe.cmd.Wait() != nil && strings.Contains(probe.stderr.String(), "container") {
		r.Skip("this is a container, in which there is no default store")
	}
}

// The README's program and the command, started at once in directories of their own, share
// the default file.
func TestOneHost(t *testing.T) {
	r := newReader(t)
	r.onAHost()
	all := []*run{r.next(), r.start(r.oneHost), r.next(), r.start(r.oneHost)}
	created := 0
	for _, p := range all {
		created += strings.Count(r.done(p), "created ")
	}
	r.distinct(len(all)*draws, all...)
	if created > 1 {
		t.Errorf("%d processes say that they created the file", created)
	}
	r.refused(r.next("--pool", "web"), `has no pool "web"`, "default")
}

// Two layouts on one file, one after the other and at once.
func TestTwoLayouts(t *testing.T) {
	r := newReader(t)
	r.onAHost()
	a, b := r.next("--layout", "twitter"), r.next("--layout", "leaf")
	errs := []error{a.cmd.Wait(), b.cmd.Wait()}
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("at once: %v, %v\n%s%s", errs[0], errs[1], a.stderr.String(), b.stderr.String())
	}
	again := r.next()
	r.done(again) // the pool's own layout
	r.distinct(2*draws, a, b, again)
	r.refused(r.next("--layout", "firn"), "layout")
}

// Each of two users has a store of their own: the rule says so, and firn says whose the
// file is. With one file they repeat nothing, or are refused.
func TestTwoUsers(t *testing.T) {
	r := newReader(t)
	r.onAHost()
	file := "sqlite:" + filepath.Join(r.home, "shared.db")
	a, b := r.next("--store", file), r.user().next("--store", file)
	r.done(a)
	r.done(b)
	r.distinct(2*draws, a, b)

	// Without a name each has a file, and is told whose.
	mine, theirs := r.next(), r.user().next()
	r.done(mine)
	r.done(theirs)
	for _, p := range []*run{mine, theirs} {
		if said := p.stderr.String(); !strings.Contains(said, "the file of user ") || !strings.Contains(said, "ids are unique among your programs on this host that name no other store") {
			t.Errorf("the first use does not say whose the file is: %s", said)
		}
	}
}

// A program with a relative path is refused, whichever way it gets the path. Where no file is
// there, none is named: who follows the error in two directories would make two.
func TestRelativePath(t *testing.T) {
	r := newReader(t)
	r.env = append(r.env, "FIRN_STORE=sqlite:ids.db")
	for _, p := range []*run{r.start(r.manyHosts), r.firn("next"), r.start(r.manyHosts), r.firn("next")} {
		r.refused(p, "sqlite:ids.db", "write the absolute path of the one file")
		if strings.Contains(p.stderr.String(), p.cmd.Dir) || strings.Contains(p.stderr.String(), "sqlite:/") {
			t.Errorf("%q names a file of its directory:\n%s", p.args, p.stderr.String())
		}
	}
}

// The README's program in a directory where firn.yaml names a store: the command takes that
// store, and the program is refused. So is it where the variable does.
func TestBesideConfig(t *testing.T) {
	r := newReader(t)
	r.onAHost()
	named := filepath.Join(r.TempDir(), "named")
	if err := os.Mkdir(named, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(named, "firn.yaml"), []byte("store: sqlite:ids.db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program, command := r.startIn(named, r.oneHost), r.startIn(named, r.command, "next", "-n", fmt.Sprint(draws))
	r.refused(program, filepath.Join(named, "firn.yaml"), "open.URL")
	r.done(command)

	// What the error says to do: the README's other program, on the store that the command shows.
	shown := r.startIn(named, r.command, "config", "show")
	r.done(shown)
	url := regexp.MustCompile(`(?m)^store +(\S+)`).FindStringSubmatch(shown.stdout.String())
	if url == nil {
		t.Fatalf("config show shows no store:\n%s", shown.stdout.String())
	}
	r.env = append(r.env, "FIRN_STORE="+url[1])
	again := r.startIn(named, r.manyHosts)
	r.done(again)
	r.distinct(2*draws, command, again)
	r.refused(r.start(r.oneHost), "FIRN_STORE", "open.URL")
}

// The default file is one for all programs of a user, whatever the desktop, a sandbox or a
// unit file sets.
func TestOneDefaultFile(t *testing.T) {
	r := newReader(t)
	r.onAHost()
	other, elsewhere := *r, t.TempDir()
	other.env = slices.Clone(r.env)
	for _, name := range []string{"STATE", "DATA", "CACHE"} {
		other.env = append(other.env, "XDG_"+name+"_HOME="+elsewhere)
	}
	a, b := r.start(r.oneHost), other.start(r.oneHost)
	r.done(a)
	r.done(b)
	c, d := r.next(), other.next()
	r.done(c)
	r.done(d)
	r.distinct(4*draws, a, b, c, d)
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("another file was made: %v, %v", left, err)
	}
}

// The server, a held worker, a pool that is ensured at each start, and a recovery, beside the
// command and the program on the default file.
func TestBesideTheDefaultFile(t *testing.T) {
	r := newReader(t)
	r.onAHost()
	before := r.next()
	r.done(before)
	for range 2 {
		if said := r.done(r.firn("pool", "ensure")); !strings.Contains(said, `pool "default" was there already`) {
			t.Errorf("pool ensure: %s", said)
		}
	}
	serve := r.serve()
	held := r.firn("run", "--", "sh", "-c", "echo $FIRN_WORKER; sleep 3")
	all := []*run{before, r.next(), r.start(r.oneHost), serve()}
	for _, p := range all[1:3] {
		r.done(p)
	}
	r.distinct(len(all)*draws, all...)
	r.done(held)
	if worker := strings.TrimSpace(held.stdout.String()); !regexp.MustCompile(`^[0-9]{1,4}$`).MatchString(worker) {
		t.Errorf("the worker that is held: %q", worker)
	}
	r.refused(r.firn("store", "recover"), "--yes")
	r.done(r.firn("store", "recover", "--yes"))
	r.refused(r.next("--wait", "0"), `the ids of pool "default" start at`)
}

// Many hosts: the pool has to be created, once, and then programs, commands and servers
// share it.
func TestManyHosts(t *testing.T) {
	r := newReader(t)
	url := testserver.Shared(t, testserver.Postgres).URL()
	r.env = append(r.env, "FIRN_STORE="+url)
	r.refused(r.start(r.manyHosts), `has no pool "default"`)
	r.refused(r.next(), `has no pool "default"`, "firn pool ensure")
	r.refused(r.firn("pool", "create"), "--new")
	r.done(r.firn("pool", "create", "--new"))
	r.refused(r.firn("pool", "create", "--new"), "exists")

	serve := r.serve()
	all := []*run{r.next(), r.start(r.manyHosts), r.user().next(), r.start(r.manyHosts)}
	served := serve()
	for _, p := range all {
		r.done(p)
	}
	r.distinct((len(all)+1)*draws, append(all, served)...)
	r.refused(r.next("--pool", "web"), `has no pool "web"`, "default")
	r.refused(r.firn("pool", "create", "web", "--new"), `could repeat ids of pool "default"`, "--may-repeat")
	r.refused(r.next("--layout", "twitter"), "layout")
	r.refused(r.next("--worker", "1024"), "1024")
}

// serve starts a server, and returns a function that draws from it.
func (r *reader) serve() func() *run {
	r.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	p := r.firn("serve", "--http", addr, "--resp", "127.0.0.1:0")
	return func() *run {
		r.Helper()
		out := &run{args: []string{"firn serve"}}
		for out.stdout.Len() == 0 {
			for range draws / 1000 {
				ids, err := fetch("http://" + addr + "/v1/series/photo/next?n=1000")
				if err != nil {
					if p.cmd.ProcessState != nil || r.Context().Err() != nil {
						r.Fatalf("%v\n%s", err, p.stderr.String())
					}
					time.Sleep(50 * time.Millisecond)
					break
				}
				out.stdout.WriteString(ids)
			}
		}
		return out
	}
}

var numbers = regexp.MustCompile(`"(\d{10,})"`)

// fetch draws over HTTP, and returns an id a line.
func fetch(url string) (string, error) {
	answer, err := http.Post(url, "", nil)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s, %w", answer.Status, body, err)
	}
	var lines strings.Builder
	for _, id := range numbers.FindAllStringSubmatch(string(body), -1) {
		lines.WriteString(id[1] + "\n")
	}
	return lines.String(), nil
}
