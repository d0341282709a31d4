//go:build linux

package torture

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// The programs are built with a package time whose Now is off by what a file
// says, a file for each process. Nothing else of them is touched.

// clockFile names the environment variable with the path of a process's file:
// 8 bytes, the offset in nanoseconds.
const clockFile = "CLOCK_OFFSET_FILE"

// shiftedNow is where Now reads the clock, and what is added there.
const (
	anchor = "\tsec, nsec, mono := runtimeNow()\n"
	graft  = "\tsec, nsec = shifted(sec, nsec)\n"
)

// shift goes into package time.
const shift = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var clockOffset *int64

func init() {
	path, ok := syscall.Getenv("` + clockFile + `")
	if !ok {
		return
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic(path + ": " + err.Error())
	}
	mem, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(path + ": " + err.Error())
	}
	syscall.Close(fd)
	clockOffset = (*int64)(unsafe.Pointer(&mem[0]))
}

func shifted(sec int64, nsec int32) (int64, int32) {
	if clockOffset == nil {
		return sec, nsec
	}
	n := int64(nsec) + atomic.LoadInt64(clockOffset)
	sec += n / 1e9
	if n %= 1e9; n < 0 {
		n += 1e9
		sec--
	}
	return sec, int32(n)
}
`

// overlay writes what "go build -overlay" takes to dir, and returns its path.
func overlay(dir, goroot string) (string, error) {
	original := filepath.Join(goroot, "src", "time", "time.go")
	src, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	changed, err := grafted(string(src))
	if err != nil {
		return "", err
	}
	files := map[string]string{"time.go": changed, "shift.go": shift}
	replace := map[string]string{}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(filepath.Dir(original), name)] = path
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o600)
}

// grafted adds to time.go what shifts Now. It returns an error unless there is
// exactly one place for it, inside Now.
func grafted(src string) (string, error) {
	before, now, ok := strings.Cut(src, "\nfunc Now() Time {\n")
	if n := strings.Count(src, anchor); n != 1 || !ok || !strings.HasPrefix(now, anchor) {
		return "", errAnchor
	}
	return before + "\nfunc Now() Time {\n" + anchor + graft + now[len(anchor):], nil
}

var errAnchor = errors.New("package time of " + runtime.Version() + " is not as this test knows it: the line that reads " +
	"the clock is not the first of Now, or not the only one; look at time.Now, and correct anchor in overlay_test.go")

// build builds the program and the command, once for all tests.
var build = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "firn-torture-build-"); err != nil {
		return "", err
	}
	builtIn = dir
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	file, err := overlay(dir, strings.TrimSpace(string(goroot)))
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-overlay", file, "-o", dir+"/", "./holder", "../../cmd/firn")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if os.Getenv("FIRN_TORTURE_RACE") != "" {
		cmd.Args = slices.Insert(cmd.Args, 2, "-race")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, nil
})

var builtIn string // is removed at the end

// program returns the path of a program.
func program(t testing.TB, name string) string {
	t.Helper()
	begun := time.Now()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begun); d > time.Second {
		t.Logf("building took %s", d.Round(100*time.Millisecond))
	}
	return filepath.Join(dir, name)
}

// A skew is how far a process's clock is off. Set it at any time.
type skew struct {
	path string
	mem  []byte
}

func newSkew(t testing.TB, path string) *skew {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(8); err != nil {
		t.Fatal(err)
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(mem) })
	return &skew{path, mem}
}

func (s *skew) set(d time.Duration) {
	atomic.StoreInt64(word(s.mem), int64(d))
}

func (s *skew) get() time.Duration { return time.Duration(atomic.LoadInt64(word(s.mem))) }

func word(mem []byte) *int64 { return (*int64)(unsafe.Pointer(&mem[0])) }

func TestOverlayIsLoud(t *testing.T) {
	for _, src := range []string{
		"",
		"package time\n\nfunc Now() Time {\n\tsec, nsec, mono := now()\n}\n",
		"package time\n\nfunc Now() Time {\n" + anchor + "}\n\nfunc Then() Time {\n" + anchor + "}\n",
		"package time\n\nfunc Then() Time {\n" + anchor + "}\n\nfunc Now() Time {\n}\n",
	} {
		if _, err := grafted(src); err == nil {
			t.Errorf("a package time with nowhere to put the shift was accepted:\n%s", src)
		}
	}
}
