package testserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// arm64Kind is what builds programs for arm64, and runs them.
var arm64Kind = &kind{
	name: "arm64", packages: []string{"qemu-user-static", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"},
	binaries: []string{"qemu-aarch64-static", "aarch64-linux-gnu-gcc", "/usr/aarch64-linux-gnu/include/stdio.h"},
	long:     true,
}

// arm64Suite is the suite of Debian that tests run programs of. It has Python 3.11, PHP 8.2, Node 18 and Java 17.
const arm64Suite = "bookworm"

// Arm64 runs programs for arm64 under qemu-user on this machine, which is an amd64.
type Arm64 struct {
	CC   string // the compiler
	Root string // a directory with the packages of Debian for arm64: interpreters, libraries and headers
}

// NewArm64 returns an Arm64. It fetches some 120 packages once, and keeps them.
func NewArm64(tb testing.TB) *Arm64 {
	tb.Helper()
	if runtime.GOARCH != "amd64" {
		skip(tb, arm64Kind, "tests run it under qemu on amd64 only")
	}
	require(tb, arm64Kind)
	root, err := arm64Root()
	if err != nil {
		skip(tb, arm64Kind, err.Error())
	}
	return &Arm64{CC: program("aarch64-linux-gnu-gcc"), Root: root}
}

// Command returns a command that runs a program as a processor that qemu knows, such as cortex-a57 or neoverse-n1.
func (a *Arm64) Command(ctx context.Context, cpu, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, program("qemu-aarch64-static"), append([]string{"-cpu", cpu, "-L", a.Root, name}, args...)...)
}

func arm64Root() (string, error) {
	dir, err := keptDir()
	if err != nil {
		return "", err
	}
	home := filepath.Join(dir, "arm64-"+arm64Suite)
	unlock, err := lock(home + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	return home, once(home, func(work string) error {
		apt, err := newApt(work, arm64Suite, "arm64")
		if err != nil {
			return err
		}
		err = errors.Join(
			apt.install("python3", "php8.2-cli", "nodejs", "openjdk-17-jre-headless"),
			apt.fetch("libpython3.11-dev", "php8.2-dev", "libnode-dev"), // headers: what they need is for building more
		)
		if err != nil {
			return err
		}
		if err := apt.unpack(); err != nil {
			return err
		}
		return linkWithin(work)
	})
}

// linkWithin makes absolute symbolic links below a directory point into it.
func linkWithin(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		to, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(to, "/") {
			return err
		}
		to, err = filepath.Rel(filepath.Dir(path), filepath.Join(root, to))
		if err != nil {
			return fmt.Errorf("testserver: %s: %w", path, err)
		}
		return errors.Join(os.Remove(path), os.Symlink(to, path))
	})
}
