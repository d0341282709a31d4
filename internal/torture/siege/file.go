//go:build linux

package siege

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// sqliteFile is a store that is a file.
func sqliteFile(s *siege) *victim {
	s.found(s.world.url)
	v := &victim{url: s.world.url, harms: slices.Clone(processHarms), cut: func() {}, mend: func() {}, held: func() bool { return heldFile(s.world.path) }}
	if s.Broken == "private" {
		return v // nobody uses the file
	}
	for _, length := range []time.Duration{short, long} {
		var lock *proc
		v.harms = append(v.harms, away("store locked", fileLock, length,
			func(s *siege) { lock = s.world.locker("immediate") }, func(*siege) { lock.unlock() }))
	}
	copied, other := s.world.dir+"/copy.db", s.world.dir+"/other.db"
	v.save = func() {
		s.copyStore(s.world.path, copied)
		path := s.world.dir + "/another.db"
		s.found("sqlite:" + path)
		s.copyStore(path, other)
	}
	putBackCopy := func(s *siege) { s.replaceStore(copied) }
	v.harms = append(v.harms, putBack(putBackCopy))
	v.losses = []loss{
		{name: "file removed", nothing: true, do: func(s *siege) { s.removeStore() }},
		{name: "store put back", do: putBackCopy},
		recordRemoved,
		{name: "file replaced by an empty one", nothing: true, do: func(s *siege) { s.replaceStore(os.DevNull) }},
		{name: "file replaced by another store", do: func(s *siege) { s.replaceStore(other) }},
	}
	return v
}

// heldFile reports whether somebody has kept all others from writing to a file for two seconds.
func heldFile(path string) bool {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=rw&_pragma=busy_timeout(2000)&_txlock=immediate")
	if err != nil {
		return false
	}
	defer db.Close()
	tx, err := db.Begin()
	if err == nil {
		err = tx.Rollback()
	}
	return err != nil && strings.Contains(err.Error(), "SQLITE_BUSY")
}

// copyStore makes a copy of a store, as a backup does.
func (s *siege) copyStore(from, to string) {
	s.tb.Helper()
	db, err := sql.Open("sqlite", "file:"+from+"?mode=rw&_pragma=busy_timeout(30000)")
	if err != nil {
		s.tb.Fatal(err)
	}
	defer db.Close()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		s.tb.Fatal(err)
	}
}

// replaceStore puts a copy in the store's place.
func (s *siege) replaceStore(copied string) {
	s.tb.Helper()
	b, err := os.ReadFile(copied)
	fresh := s.world.path + ".new"
	err = errors.Join(err, os.WriteFile(fresh, b, 0o600), removeFiles(s.world.path+"-wal", s.world.path+"-shm"), os.Rename(fresh, s.world.path))
	if err != nil {
		s.tb.Fatal(err)
	}
}

// removeStore removes the store, and what SQLite has beside it.
func (s *siege) removeStore() {
	s.tb.Helper()
	if err := removeFiles(s.world.path, s.world.path+"-wal", s.world.path+"-shm"); err != nil {
		s.tb.Fatal(err)
	}
}

// removeFiles removes files that may be there.
func removeFiles(paths ...string) error {
	var errs []error
	for _, path := range paths {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
