package sqlite

import (
	"fmt"
	"os"

	"github.com/firn-id/firn/store"
)

// A watched file is one that is open and must stay at its path: SQLite itself
// removes a journal only when nobody has the database open.
type watched struct {
	path string
	file os.FileInfo
}

// watch adds the file that is at path now.
func (s *Store) watch(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	s.open = append(s.open, watched{path, fi})
	return nil
}

// An AwayError says that the file was removed or moved away while it was open. Its Unwrap is a
// [store.ForgotError].
type AwayError struct {
	*store.ForgotError
	path string
	file os.FileInfo
}

// Unwrap returns what it means for programs that use the store.
func (e *AwayError) Unwrap() error { return e.ForgotError }

// Back reports whether the same file is at its path again. It can be opened again then, which
// another file at that path cannot: it knows nothing of the ids and numbers of the first.
func (e *AwayError) Back() bool {
	fi, err := os.Stat(e.path)
	return err == nil && os.SameFile(fi, e.file)
}

// check returns an error unless each path still leads to the file that is open.
func (s *Store) check() error {
	if f := s.forgot.Load(); f != nil {
		return *f
	}
	for i, w := range s.open {
		fi, err := os.Stat(w.path)
		switch {
		case err == nil && os.SameFile(fi, w.file):
		case err != nil && !missing(err):
			// Not seen is not gone: the next call looks again.
			return s.at.explain(err)
		case i > 0:
			return s.forgetJournal(w.path)
		case err != nil:
			return s.forget(&AwayError{s.at.forgot("the file was removed or moved away"), w.path, w.file})
		default:
			return s.forget(s.at.forgot("the file was replaced while it was open"))
		}
	}
	return nil
}

// forget returns the error of a store that forgot, from now on.
func (s *Store) forget(err error) error {
	s.forgot.CompareAndSwap(nil, &err)
	return *s.forgot.Load()
}

// forgetJournal is forgetFor of a journal that is gone.
func (s *Store) forgetJournal(path string) error {
	return s.forgetFor(fmt.Sprintf("its journal %s was removed while it was open, with the last writes in it", path))
}

// forgetFor returns the error of a store that forgot, from now on, and writes it down for
// those who come later: they may find a database that tells them nothing.
func (s *Store) forgetFor(what string) error {
	first := error(s.at.forgot("%s", what))
	if s.forgot.CompareAndSwap(nil, &first) {
		if side, err := s.at.readSidecar(); err == nil && side.Store == s.id && side.Lost == "" {
			side.Lost = what
			s.at.replaceSidecar(side) // as well as it goes: this Store stops in any case
		}
	}
	return *s.forgot.Load()
}
