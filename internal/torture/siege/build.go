//go:build linux

package siege

import (
	"crypto/sha256"
	"encoding/hex"
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
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
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

// overlay writes what "go build -overlay" takes, and returns its path. It lies where it
// lay the last time, so that the build cache has what was built with it.
func overlay(goroot string) (string, error) {
	original := filepath.Join(goroot, "src", "time", "time.go")
	src, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	changed, err := grafted(string(src))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(goroot + changed + shift))
	dir := filepath.Join(cache, "firn-torture", hex.EncodeToString(sum[:8]))
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": changed, "shift.go": shift} {
		path := filepath.Join(dir, name)
		if err := keep(path, []byte(text)); err != nil {
			return "", err
		}
		replace[filepath.Join(filepath.Dir(original), name)] = path
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, keep(path, b)
}

// keep writes a file in one step, as others may do the same at the same time.
func keep(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "part-")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
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

var errAnchor = errors.New("package time of " + runtime.Version() + " is not as this package knows it: the line that reads " +
	"the clock is not the first of Now, or not the only one; look at time.Now, and correct anchor in build.go")

// build builds the program and the command, once for all worlds.
var build = sync.OnceValues(func() (dir string, err error) {
	if dir, err = testserver.MakeDir("torture-programs"); err != nil {
		return "", err
	}
	builtIn = dir
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	file, err := overlay(strings.TrimSpace(string(goroot)))
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-overlay", file, "-o", dir+"/", module+"/internal/torture/holder", module+"/cmd/firn")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if DetectRaces {
		cmd.Args = slices.Insert(cmd.Args, 2, "-race")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, nil
})

const module = "github.com/firn-id/firn"

// DetectRaces has the programs built with the race detector. It is to be set before
// anything is started.
var DetectRaces bool

var builtIn string // is removed at the end

// RemovePrograms removes the programs that were built. Nothing can be started after it.
func RemovePrograms() error { return os.RemoveAll(builtIn) }

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
