package sqlite

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Restored accepts the database that is at path now as the store that was
// there. It returns an error if no file is at path, and creates none: the file may have
// been moved, and a second one would make its ids again. [CreateLost] is for a file that
// no longer exists. Whoever calls Restored must first have stopped all who use the store.
// The path must be absolute. A file that another process has locked is waited for until
// ctx ends, at most 5 seconds.
//
// It opens the database and calls raise, which is to raise what the protocols
// above took from records that may be older than the last ones acknowledged. Only
// if that returns no error is the database accepted: so after an error or a crash
// it is refused as before.
func Restored(ctx context.Context, path string, raise func(*Store) error) error {
	at, there, err := find(path)
	switch {
	case err != nil:
		return err
	case !there:
		return at.explain(fmt.Errorf("there is no file at %s: if it was moved, use it where it is now; CreateLost makes an empty one in place of a lost file: %w", at.file, fs.ErrNotExist))
	}
	return at.accept(ctx, raise)
}

// CreateLost creates an empty database at path, in place of one that is lost with
// all its copies, calls raise as [Restored] does, and accepts the database. It returns an
// error if a file is at path. After any other error call Restored if a file is there by
// then, else CreateLost again.
func CreateLost(ctx context.Context, path string, raise func(*Store) error) error {
	at, there, err := find(path)
	switch {
	case err != nil:
		return err
	case there:
		return at.explain(fmt.Errorf("a file is at %s: Restored accepts it: %w", at.file, fs.ErrExist))
	}
	// Not needed by anything any more, and deadly to a new file.
	for _, j := range at.journals() {
		if err := os.Rename(j, j+asideSuffix); err != nil && !missing(err) {
			return at.explain(err)
		}
	}
	if err := at.create(); err != nil {
		return at.explain(err)
	}
	return at.accept(ctx, raise)
}

// find returns the location of a path, and whether a file is there.
func find(path string) (at location, there bool, err error) {
	if at, err = locate(path); err != nil {
		return at, false, err
	}
	if _, err := fileSystem(filepath.Dir(at.file)); err != nil {
		return at, false, at.explain(err)
	}
	there, _, err = at.there()
	return at, there, at.explain(err)
}

// accept opens the database, calls raise, and makes the database the store.
func (at location) accept(ctx context.Context, raise func(*Store) error) error {
	if err := at.journalFits(); err != nil {
		return at.explain(err)
	}
	s, err := at.attach(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.refuseMeanwhile(ctx); err != nil {
		return at.explain(err)
	}
	if err := raise(s); err != nil {
		return err
	}
	side, err := s.describe(ctx)
	if err != nil {
		return at.explain(err)
	}
	if err := at.replaceSidecar(side); err != nil {
		return at.explain(err)
	}
	if err := s.check(); err != nil {
		return err
	}
	return at.explain(at.syncDir())
}

// refuseMeanwhile has a database that was put back to an earlier state, in whole or in part,
// refused until it is accepted, though what raise writes makes up for the writes that it
// lacks. Its records count as they are from then on.
func (s *Store) refuseMeanwhile(ctx context.Context) error {
	side, err := s.at.readSidecar()
	known := err == nil // what is missing or damaged is refused as it is
	writes, err := s.countWrites(ctx)
	if err != nil {
		return err
	}
	refuse := func(what string) error {
		if !known || side.Lost != "" {
			return nil
		}
		side.Lost = what
		if err := s.at.replaceSidecar(side); err != nil {
			return err
		}
		return s.at.syncDir()
	}
	if known && writes < side.writes {
		if err := refuse(putBack(writes, side.writes)); err != nil {
			return err
		}
	}
	return s.sumAnew(ctx, func() error { return refuse(mixed) })
}

// sumAnew makes the sums those of the records that there are. Before it changes them it calls
// refuse.
func (s *Store) sumAnew(ctx context.Context, refuse func() error) error {
	deadline := time.Now().Add(s.patience)
	c, err := s.acquire(ctx, s.write)
	if err != nil {
		return err
	}
	defer func() { s.write <- c }()
	if err := s.patiently(ctx, deadline, func() error { return s.begin(&c) }); err != nil {
		return err
	}
	said, is, err := c.sums()
	if err == nil && said != is {
		if err = refuse(); err == nil {
			err = c.exec(`REINDEX record_bucket`)
		}
		if err == nil {
			_, err = c.count(&is)
		}
		if err == nil {
			err = c.exec(sqlCommit)
		}
		if err == nil {
			return nil
		}
	}
	c = c.abandon(err != nil)
	return err
}

// journalFits refuses a file with a journal if that may be another file's. The -shm file
// does not count: SQLite makes it anew when nobody has it open.
func (at location) journalFits() error {
	side, err := at.readSidecar()
	if err != nil {
		if missing(err) {
			return nil
		}
		// Unreadable is what Restored repairs; it knows nothing then.
		side = sidecar{}
	}
	now, err := identify(at.file)
	if err != nil || side.identity.same(now) {
		return err
	}
	for _, j := range at.rows() {
		if fi, err := os.Stat(j); err == nil && fi.Size() > 0 {
			return fmt.Errorf("%s is beside the file, and may be another file's: if it is left from the file that was there before, remove it; if it was copied with this one, have sqlite3 read the file once (sqlite3 FILE 'SELECT count(*) FROM sqlite_master'); then do the same again", j)
		}
	}
	return nil
}
