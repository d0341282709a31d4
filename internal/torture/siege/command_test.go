//go:build linux

package siege

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/torture/ledger"
)

// A result is what the command answered.
type result struct {
	out, errs string
	code      int
	took      time.Duration
}

// run runs a command.
func run(t testing.TB, env []string, name string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = env
	begun := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode(), time.Since(begun)}
}

// A bench is a store for runs of the command.
type bench struct {
	t       *testing.T
	path    string
	env     []string
	issuers []Issuer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{t: t, path: filepath.Join(dir, "ids.db"), env: append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME=")}
	// Whoever creates the file says so; the runs that are looked at find it there.
	if r := b.run("next", "--worker", "1023"); r.code != 0 {
		t.Fatalf("exit code %d: %s", r.code, r.errs)
	}
	return b
}

// run runs the command to its end.
func (b *bench) run(args ...string) result {
	b.t.Helper()
	return run(b.t, b.env, program(b.t, "firn"), append(args, "--store", "sqlite:"+b.path)...)
}

// next starts "firn next" with its output in a file.
func (b *bench) next(n int, out *os.File) (*exec.Cmd, *bytes.Buffer) {
	b.t.Helper()
	cmd := exec.Command(program(b.t, "firn"), "next", "-n", strconv.Itoa(n), "--store", "sqlite:"+b.path)
	errs := &bytes.Buffer{}
	cmd.Env, cmd.Stdout, cmd.Stderr = b.env, out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return cmd, errs
}

// ends waits for the end of a command, and returns its exit code.
func (b *bench) ends(cmd *exec.Cmd) int {
	b.t.Helper()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// held are the workers that "firn worker ls" says are held.
func (b *bench) held() (held []int64) {
	b.t.Helper()
	r := b.run("worker", "ls", "--json")
	if r.code != 0 {
		b.t.Fatalf("worker ls: exit code %d: %s", r.code, r.errs)
	}
	for line := range strings.Lines(r.out) {
		var w struct {
			Worker int64
			State  string
		}
		if err := json.Unmarshal([]byte(line), &w); err != nil {
			b.t.Fatal(err)
		}
		if w.State != "free" {
			held = append(held, w.Worker)
		}
	}
	return held
}

// printed takes what a command printed into account.
func (b *bench) printed(name string, r io.Reader) (n int64) {
	b.t.Helper()
	runs, err := parse(r)
	if err != nil {
		b.t.Error(err)
	}
	b.issuers = append(b.issuers, Issuer{Name: name, Hands: [][]ledger.Run{runs}})
	for _, run := range runs {
		n += run.Count
	}
	return n
}

// printedTo is printed for what is in a file.
func (b *bench) printedTo(f *os.File) int64 {
	b.t.Helper()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		b.t.Fatal(err)
	}
	return b.printed(filepath.Base(f.Name()), f)
}

func (b *bench) file(name string) *os.File {
	b.t.Helper()
	f, err := os.Create(filepath.Join(filepath.Dir(b.path), name))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { f.Close() })
	return f
}

// grows waits until a file has so many bytes.
func grows(t *testing.T, f *os.File, size int64) {
	t.Helper()
	eventually(t, f.Name()+" grows", func() bool {
		fi, err := f.Stat()
		return err == nil && fi.Size() >= size
	})
}

func (b *bench) check() {
	b.t.Helper()
	r := Check(firn.Default(), b.issuers)
	for _, p := range r.Problems {
		b.t.Error(p)
	}
	b.t.Log(r)
}

// A long run is interrupted. It ends at once, after a whole line, and gives its
// worker back.
func TestNextInterrupted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		out := b.file(s.String())
		cmd, errs := b.next(100_000_000, out)
		grows(t, out, 1<<20)
		if held := b.held(); len(held) != 1 {
			t.Errorf("while it runs, workers %d are held", held)
		}
		begun := time.Now()
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		code := b.ends(cmd)
		t.Logf("%s: exit code %d after %s", s, code, round(time.Since(begun)))
		if code != 128+int(s) || !interrupted.MatchString(errs.String()) {
			t.Errorf("%s: exit code %d, %s", s, code, errs)
		}
		if held := b.held(); len(held) > 0 {
			t.Errorf("%s: workers %d are held after the end", s, held)
		}
		b.printedTo(out)
	}
	b.check()
}

// interrupted is all that a command says that a signal ends.
var interrupted = regexp.MustCompile(`^firn: interrupted: [0-9,]+ of 100,000,000 ids were written\n$`)

// The reader goes away, or does not read.
func TestNextIntoAPipe(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, closes := range []bool{true, false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd, errs := b.next(100_000_000, w)
		w.Close()
		in := bufio.NewReader(r)
		if _, err := in.Peek(20); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		want := 0
		if closes { // as head -1 does
			r.Close()
		} else { // the pipe fills, and then somebody loses patience
			want = 130
			eventually(t, "the command waits for its reader", func() bool { return sleeps(cmd) })
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
		code := b.ends(cmd)
		t.Logf("closed %v: exit code %d after %s", closes, code, round(time.Since(begun)))
		if code != want || closes && errs.Len() > 0 || !closes && !interrupted.MatchString(errs.String()) {
			t.Errorf("closed %v: exit code %d, %s", closes, code, errs)
		}
		if held := b.held(); len(held) > 0 {
			t.Errorf("workers %d are held after the end", held)
		}
		if closes { // what was read by then
			have, err := in.Peek(in.Buffered())
			if err != nil {
				t.Fatal(err)
			}
			b.printed("closed pipe", bytes.NewReader(have[:bytes.LastIndexByte(have, '\n')+1]))
			continue
		}
		b.printed("full pipe", in)
		r.Close()
	}
	b.check()
}

// sleeps reports whether a process has not run for a while.
func sleeps(cmd *exec.Cmd) bool {
	used := func() string {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
		if err != nil {
			return ""
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		return fields[11] + " " + fields[12] // utime, stime
	}
	before := used()
	time.Sleep(200 * time.Millisecond)
	return used() == before
}

// The command is killed, and started again at once. Of a pipe its reader has
// whole lines all the same; a file may end in a piece of one.
func TestNextKilled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 3 {
		out := b.file("killed-" + strconv.Itoa(i))
		cmd, _ := b.next(100_000_000, out)
		grows(t, out, 1<<20)
		cmd.Process.Kill()
		b.ends(cmd)
		text := read(t, out.Name())
		b.printed("file", bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1]))
		b.after()

		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd, _ = b.next(100_000_000, w)
		w.Close()
		in := bufio.NewReaderSize(r, 1<<20)
		if _, err := in.Peek(1 << 20); err != nil {
			t.Fatal(err)
		}
		cmd.Process.Kill()
		b.printed("pipe", in)
		b.ends(cmd)
		r.Close()
		b.after()
	}
	b.check()
}

// after draws some ids.
func (b *bench) after() {
	b.t.Helper()
	r := b.run("next", "-n", "1000")
	if r.code != 0 {
		b.t.Errorf("exit code %d, %s", r.code, r.errs)
	}
	b.printed("after", strings.NewReader(r.out))
}

// The disk is full.
func TestNextWithoutRoom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd, errs := b.next(100_000_000, full)
	if code := b.ends(cmd); code != 1 || !strings.Contains(errs.String(), "no space left on device") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if held := b.held(); len(held) > 0 {
		t.Errorf("workers %d are held after the end", held)
	}
}

// How fast it is. The layout has 4,096 ids a millisecond.
func TestNextCeiling(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	const n = 8_000_000
	cmd, errs := b.next(n, null)
	begun := time.Now()
	if code := b.ends(cmd); code != 0 {
		t.Errorf("exit code %d, %s", code, errs)
	}
	d := time.Since(begun)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("%d ids in %s, %.2f M/s, %s of CPU", n, round(d), n/1e6/d.Seconds(), round(cpu))
	if d < n/4096*time.Millisecond-20*time.Millisecond {
		t.Errorf("that is more than the layout has")
	}
}

// The store goes away while ids are printed, and the command says what to do.
func TestNextForgotten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	out := b.file("out")
	cmd, errs := b.next(100_000_000, out)
	grows(t, out, 1<<20)
	if err := os.Remove(b.path); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	code := b.ends(cmd)
	t.Logf("exit code %d after %s: %s", code, round(time.Since(begun)), errs)
	r := b.run("next")
	for _, r := range []result{{errs: errs.String(), code: code}, r} {
		if r.code != 1 || !strings.Contains(r.errs, "firn: hint: ") || !strings.Contains(r.errs, "firn store recover") {
			t.Errorf("exit code %d: %s", r.code, r.errs)
		}
	}
	b.printedTo(out)
	b.check()
}

// enter is how a program starts in namespaces of its own.
func enter(t *testing.T, flags string) []string {
	t.Helper()
	args := append([]string{"unshare"}, strings.Fields(flags)...)
	if out, err := exec.Command(args[0], append(args[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: namespaces need root and CAP_SYS_ADMIN: %s: %v %s", strings.Join(args, " "), err, out)
	}
	return args
}

// In containers, of which each has a home directory of its own, the command
// does not run without a store that is named; with one that they share it does.
func TestContainers(t *testing.T) {
	for name, flags := range map[string]string{
		"mounts":               "-m",
		"mounts and processes": "-m -p -f --mount-proc",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			container := enter(t, flags)
			home := t.TempDir()
			env := append(os.Environ(), "HOME="+home, "XDG_STATE_HOME=")
			inside := func(script string) result {
				return run(t, env, container[0], append(container[1:], "sh", "-ec",
					"mount -t tmpfs none "+home+"; firn="+program(t, "firn")+"; "+script)...)
			}
			for range 2 {
				r := inside("$firn next")
				if r.code != 1 || r.out != "" || !strings.Contains(r.errs, "looks like a container") || !strings.Contains(r.errs, "firn: hint: one store for all containers: --store ") {
					t.Errorf("exit code %d, %s%s", r.code, r.out, r.errs)
				}
			}
			for i := range 2 {
				r := inside("$firn next -n 1000 --store sqlite:" + b.path)
				if r.code != 0 {
					t.Errorf("exit code %d, %s", r.code, r.errs)
				}
				if n := b.printed("container "+strconv.Itoa(i), strings.NewReader(r.out)); n != 1000 {
					t.Errorf("%d ids", n)
				}
			}
			b.check()
		})
	}
}

// The files that container engines leave are a sign of one only beside a PID
// namespace of its own.
func TestContainerFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for flags, want := range map[string]int{"-m": 0, "-m -p -f --mount-proc": 1} {
		container := enter(t, flags)
		if link, err := os.Readlink("/proc/self/ns/pid"); err != nil || link != "pid:[4026531836]" {
			t.Logf("this is a container itself (%s, %v), so it is one in any case", link, err)
			want = 1
		}
		r := run(t, b.env, container[0], append(container[1:], "sh", "-ec",
			"mount -t tmpfs none /run; touch /run/.containerenv; exec "+program(t, "firn")+" next")...)
		if r.code != want {
			t.Errorf("unshare %s: exit code %d, %s", flags, r.code, r.errs)
		}
	}
}

func TestKubernetes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := run(t, append(b.env, "KUBERNETES_SERVICE_HOST=10.0.0.1"), program(t, "firn"), "next")
	if r.code != 1 || !strings.Contains(r.errs, "KUBERNETES_SERVICE_HOST") || !strings.Contains(r.errs, "firn: hint: one store for all containers: --store ") {
		t.Errorf("exit code %d, %s", r.code, r.errs)
	}
	b.env = append(b.env, "KUBERNETES_SERVICE_HOST=10.0.0.1")
	if r := b.run("next"); r.code != 0 {
		t.Errorf("with a store: exit code %d, %s", r.code, r.errs)
	}
}

// Two containers have the store's file, mounted by itself, but not its directory:
// each would have journals of its own, and not see the locks of the other.
func TestFileMountedAlone(t *testing.T) {
	t.Parallel()
	shared(t, "touch $there; mount --bind $file $there;")
}

// shared runs the command in two containers, in which a script has made the
// store's file appear at another place.
func shared(t *testing.T, script string) {
	t.Helper()
	container := enter(t, "-m")
	b := newBench(t)
	if r := b.run("next"); r.code != 0 {
		t.Fatal(r.errs)
	}
	var commands [2]*exec.Cmd
	var outs, errs [2]strings.Builder
	for i := range commands {
		there := filepath.Join(t.TempDir(), "ids.db")
		cmd := exec.Command(container[0], append(container[1:], "sh", "-ec",
			"file="+b.path+" there="+there+"; "+script+" exec "+program(t, "firn")+" next -n 1000000 --store sqlite:$there")...)
		cmd.Stdout, cmd.Stderr = &outs[i], &errs[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		commands[i] = cmd
	}
	for i, cmd := range commands {
		code := b.ends(cmd)
		n := b.printed("container "+strconv.Itoa(i), strings.NewReader(outs[i].String()))
		t.Logf("exit code %d, %d ids, %s", code, n, &errs[i])
	}
	b.check()
}
