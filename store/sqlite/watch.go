package sqlite

import (
	"fmt"
	"os"
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

// Away is the What of the [store.ForgotError] about a file that was removed or moved away while
// it was open. Moved back, the same file can be opened again.
const Away = "the file was removed or moved away"

// check returns an error unless each path still leads to the file that is open.
func (s *Store) check() error {
	if f := s.forgot.Load(); f != nil {
		return f
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
			return s.forget(Away)
		default:
			return s.forget("the file was replaced while it was open")
		}
	}
	return nil
}

// forget returns the error of a store that forgot, from now on.
func (s *Store) forget(format string, args ...any) error {
	s.forgot.CompareAndSwap(nil, s.at.forgot(format, args...))
	return s.forgot.Load()
}

// forgetJournal is forgetFor of a journal that is gone.
func (s *Store) forgetJournal(path string) error {
	return s.forgetFor(fmt.Sprintf("its journal %s was removed while it was open, with the last writes in it", path))
}

// forgetFor returns the error of a store that forgot, from now on, and writes it down for
// those who come later: they may find a database that tells them nothing.
func (s *Store) forgetFor(what string) error {
	first := s.at.forgot("%s", what)
	if s.forgot.CompareAndSwap(nil, first) {
		if side, err := s.at.readSidecar(); err == nil && side.Store == s.id && side.Lost == "" {
			side.Lost = what
			s.at.replaceSidecar(side) // as well as it goes: this Store stops in any case
		}
	}
	return s.forgot.Load()
}
