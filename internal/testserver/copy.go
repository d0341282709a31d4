package testserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Copy returns a copy of what a server that does not run has on disk, for PutBack: a
// backup. It goes with the server.
func (s *Server) Copy(tb testing.TB) (dir string) {
	tb.Helper()
	s.own(tb)
	if !s.process.exited() {
		tb.Fatalf("testserver: %s runs", s.kind.name)
	}
	dir, err := os.MkdirTemp(s.dir, "copy-")
	if err == nil {
		dir = filepath.Join(dir, "home")
		err = copyTree(s.home, dir, s.account)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

// PutBack gives a server that does not run what it had when a copy was made: the next
// Start begins with that.
func (s *Server) PutBack(tb testing.TB, dir string) {
	tb.Helper()
	s.own(tb)
	if !s.process.exited() {
		tb.Fatalf("testserver: %s runs", s.kind.name)
	}
	forgetMemory(s.home)
	if err := errors.Join(os.RemoveAll(s.home), copyTree(dir, s.home, s.account)); err != nil {
		tb.Fatal(err)
	}
}

// Installed returns nil if the programs of a kind of server, by its name in messages, are
// on this machine, and else an error that names those that are not.
func Installed(name string) error {
	if !supported {
		return errUnsupported
	}
	k := kinds[slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })]
	if missing := k.missing(); len(missing) > 0 {
		return fmt.Errorf("testserver: %s is not installed (missing: %s)", name, strings.Join(missing, ", "))
	}
	return nil
}
