package testserver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Programs in other languages, which the tests run as clients of our own server.
var (
	pythonKind = &kind{
		name: "python", packages: []string{"python3", "python3-redis", "python3-psycopg"},
		binaries: []string{python, "/usr/lib/python3/dist-packages/redis", "/usr/lib/python3/dist-packages/psycopg"},
	}
	nodeKind = &kind{name: "node", packages: []string{"nodejs", "npm"}, binaries: []string{"node", "npm"}}
	jdkKind  = &kind{name: "jdk", packages: []string{"openjdk-17-jdk-headless"}, binaries: []string{"java", "javac"}}
	toolKind = &kind{name: "redis-tools", packages: []string{"redis-tools"}, binaries: []string{"redis-cli"}}
	curlKind = &kind{name: "curl", packages: []string{"curl"}, binaries: []string{"curl"}}
	spinKind = &kind{name: "spin", packages: []string{"spin", "gcc", "tcc", "libc6-dev"}, binaries: []string{"spin", "gcc", "tcc"}}
)

// python is Debian's interpreter, which has the libraries that Debian's packages bring.
const python = "/usr/bin/python3"

// Python returns the path of an interpreter that has redis-py.
func Python(tb testing.TB) string {
	tb.Helper()
	require(tb, pythonKind)
	return python
}

// Curl returns the path of curl.
func Curl(tb testing.TB) string {
	tb.Helper()
	require(tb, curlKind)
	return program("curl")
}

// Spin returns the path of the model checker spin, and of two C compilers for what it
// writes: one whose programs are fast, and one that is.
func Spin(tb testing.TB) (spin, cc, quick string) {
	tb.Helper()
	require(tb, spinKind)
	return program("spin"), program("gcc"), program("tcc")
}

// Java returns the path of a Java that runs a source file.
func Java(tb testing.TB) string {
	tb.Helper()
	require(tb, jdkKind)
	return program("java")
}

// RedisCLI returns the path of redis-cli.
func RedisCLI(tb testing.TB) string {
	tb.Helper()
	require(tb, toolKind)
	return program("redis-cli")
}

// JavaScript returns the path of Node.js and the NODE_PATH of the modules that the
// package-lock.json in dir names. They are installed once for each such file, into
// this user's cache.
func JavaScript(tb testing.TB, dir string) (node, path string) {
	tb.Helper()
	require(tb, nodeKind)
	path, err := nodeModules(dir)
	if err != nil {
		skip(tb, nodeKind, err.Error())
	}
	return program("node"), path
}

func nodeModules(dir string) (string, error) {
	locked, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(cache, "npm.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	sum := sha256.Sum256(locked)
	home := filepath.Join(cache, "node-"+hex.EncodeToString(sum[:8]))
	modules := filepath.Join(home, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	if os.Getenv(envInstall) == "0" {
		return "", fmt.Errorf("the modules of %s are not installed, and %s=0", dir, envInstall)
	}
	return modules, npmInstall(dir, home)
}

// npmInstall installs what dir's lock file says into home, or nothing. No script of
// a module is run.
func npmInstall(dir, home string) error {
	start := time.Now()
	work := home + ".part"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(work, name), b, 0o600); err != nil {
			return err
		}
	}
	cmd := exec.Command(program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		text := strings.TrimSpace(string(out))
		return fmt.Errorf("npm ci: %w: %s", err, text[max(0, len(text)-1000):])
	}
	fmt.Fprintf(os.Stderr, "testserver: installed the modules of %s in %s\n", dir, time.Since(start).Round(time.Second))
	return os.Rename(work, home)
}
