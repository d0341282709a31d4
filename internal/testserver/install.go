package testserver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Install installs the servers that are missing, if it may: root on a machine
// with apt-get, and FIRN_INSTALL_SERVERS is not 0. It says on stderr what it
// does, and returns an error that names what is still missing.
func Install() error {
	if dir, err := cacheDir(); err == nil {
		os.Remove(filepath.Join(dir, failedNote)) // whoever asks wants it tried
	}
	var some []*kind
	for _, k := range kinds {
		if Long() || !k.long {
			some = append(some, k)
		}
	}
	err := install(some)
	var missing []string
	for _, k := range some {
		missing = append(missing, k.missing()...)
	}
	if len(missing) == 0 {
		return nil
	}
	if err == nil {
		err = errors.New("testserver: installed, but not found")
	}
	return fmt.Errorf("%w (missing: %s)", err, strings.Join(missing, ", "))
}

// A failure to install is noted, and keeps the tests from trying again for a while.
const (
	failedNote = "install.failed"
	failedFor  = 10 * time.Minute
)

// install installs what is missing of some kinds. Of several at once, one does
// and the others wait.
func install(some []*kind) error {
	if os.Getenv(envInstall) == "0" {
		return errors.New("not installed, and " + envInstall + "=0")
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return errors.New("not installed; root on a machine with apt-get would install it")
	}
	dir, err := cacheDir()
	if err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(dir, "install.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	var packages []string
	for _, k := range some {
		if len(k.missing()) > 0 {
			packages = append(packages, k.packages...)
		}
	}
	if len(packages) == 0 {
		return nil // somebody else was first
	}
	failed := filepath.Join(dir, failedNote)
	if info, err := os.Stat(failed); err == nil && time.Since(info.ModTime()) < failedFor {
		b, _ := os.ReadFile(failed)
		return fmt.Errorf("an installation failed %s ago: %s", time.Since(info.ModTime()).Round(time.Second), b)
	}
	if err := aptInstall(apt, packages); err != nil {
		os.WriteFile(failed, []byte(err.Error()), 0o600)
		return err
	}
	os.Remove(failed)
	return nil
}

func aptInstall(apt string, packages []string) error {
	start := time.Now()
	fmt.Fprintf(os.Stderr, "testserver: installing %s for the tests\n", strings.Join(packages, " "))
	restore, err := forbidServices(policyPath)
	if err != nil {
		return err
	}
	defer restore()
	wait := []string{"-q", "-o", "DPkg::Lock::Timeout=300"}
	steps := [][]string{
		append(wait, "update"),
		append(wait, append([]string{"install", "-y", "--no-install-recommends"}, packages...)...),
	}
	for _, args := range steps {
		cmd := exec.Command(apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			text := strings.TrimSpace(out.String())
			return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, text[max(0, len(text)-1000):])
		}
	}
	fmt.Fprintf(os.Stderr, "testserver: installed in %s\n", time.Since(start).Round(time.Second))
	return nil
}

// policyPath is what Debian's packages ask before they start a service.
const policyPath = "/usr/sbin/policy-rc.d"

// forbidServices keeps the packages from starting services while they are
// installed. What it found is put back.
func forbidServices(path string) (restore func(), err error) {
	if denies(path) {
		return func() {}, nil
	}
	aside := path + ".firn-testserver"
	switch err := os.Rename(path, aside); {
	case errors.Is(err, os.ErrNotExist):
		aside = ""
	case err != nil:
		return nil, err
	}
	restore = func() {
		os.Remove(path)
		if aside != "" {
			os.Rename(aside, path)
		}
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
		restore()
		return nil, err
	}
	return restore, nil
}

// denies reports whether the policy says that no service may start.
func denies(path string) bool {
	var exit *exec.ExitError
	err := exec.Command(path, "redis-server", "start").Run()
	return errors.As(err, &exit) && exit.ExitCode() == 101
}

// cacheDir is where this user's templates and locks are; Clean removes it.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "firn-testserver")
	return dir, os.MkdirAll(dir, 0o700)
}

// Clean removes what is kept from one test run to the next, and the servers of
// runs that were killed.
func Clean() error {
	reap()
	dir, err := cacheDir()
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
