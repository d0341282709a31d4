//go:build linux

package siege

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// sqliteFile is a store that is a file.
func sqliteFile(s *siege) *victim {
	s.found(s.world.url)
	v := &victim{url: s.world.url, harms: slices.Clone(processHarms)}
	if s.Broken == "private" {
		return v // nobody uses the file
	}
	for _, length := range []time.Duration{short, long} {
		var lock *proc
		v.harms = append(v.harms, away("store locked", length,
			func(s *siege) { lock = s.world.locker("immediate") }, func(*siege) { lock.unlock() }))
	}
	copied := s.world.dir + "/copy.db"
	v.save = func() { s.copyStore(copied) }
	v.harms = append(v.harms, putBack(func(*siege) {}, func(*siege) {}, func(s *siege) { s.replaceStore(copied) }))
	return v
}

// copyStore makes a copy of the store, as a backup does.
func (s *siege) copyStore(to string) {
	s.tb.Helper()
	db, err := sql.Open("sqlite", "file:"+s.world.path+"?mode=rw&_pragma=busy_timeout(30000)")
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
	var errs []error
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.Remove(s.world.path + beside); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	b, err := os.ReadFile(copied)
	fresh := s.world.path + ".new"
	errs = append(errs, err, os.WriteFile(fresh, b, 0o600), os.Rename(fresh, s.world.path))
	if err := errors.Join(errs...); err != nil {
		s.tb.Fatal(err)
	}
}
