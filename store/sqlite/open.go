package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// openTries bounds how often Open starts over because the file appeared or
// vanished under its eyes.
const openTries = 100

// Open opens the store at path, or creates it if there never was one. The path
// must be absolute, and its directory must exist. The file is created for this
// user only (mode 0600).
//
// A file that another process has locked is waited for until ctx ends, at most 5
// seconds. After Open has returned, ctx means nothing to the Store.
//
// It returns a [store.ForgotError] if there was a store and the file is missing
// or another one; that is a [CopyError] where the file is a copy, or was moved
// without its hidden file. It refuses files that are not firn's, or of a newer firn, and
// network file systems, on which SQLite's locks do not work.
func Open(ctx context.Context, path string) (*Store, error) {
	at, err := locate(path)
	if err != nil {
		return nil, err
	}
	if _, err := fileSystem(filepath.Dir(at.file)); err != nil {
		return nil, at.explain(err)
	}
	created := false
	for range openTries {
		if err := ctx.Err(); err != nil {
			return nil, at.explain(err)
		}
		there, left, err := at.there()
		if err != nil {
			return nil, at.explain(err)
		}
		if left != "" {
			return nil, at.forgot("the file was removed; %s says that it was there", left)
		}
		if !there {
			err := at.create()
			if err != nil && !errors.Is(err, os.ErrExist) {
				return nil, at.explain(err)
			}
			created = err == nil
			continue
		}
		before, err := identify(at.file)
		if err != nil {
			continue
		}
		s, err := at.open(ctx)
		if err == nil {
			s.created = created
			return s, nil
		}
		// Whatever went wrong, it is about the file only if that is still there.
		if now, gone := identify(at.file); gone == nil && now.same(before) {
			return nil, err
		}
	}
	return nil, at.explain(errChanged)
}

// errChanged: what was just looked at is not there any more.
var errChanged = errors.New("the file changed while it was opened")

// open opens the file that is there, and compares it with the sidecar.
func (at location) open(ctx context.Context) (*Store, error) {
	// Before SQLite has it: a file that is not the store's is not even opened.
	switch side, err := at.readSidecar(); {
	case missing(err):
	case err != nil:
		return nil, at.explain(err)
	default:
		if err := at.compare(side, side.Store); err != nil {
			return nil, err
		}
	}
	s, err := at.attach(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.settle(ctx); err != nil {
		s.Close()
		return nil, at.explain(err)
	}
	return s, nil
}

// settle makes sure that the sidecar is there and is about the file of s.
func (s *Store) settle(ctx context.Context) error {
	at := s.at
	side, err := at.readSidecar()
	if missing(err) {
		if err := s.finish(ctx); err != nil {
			return err
		}
		side, err = at.readSidecar()
	}
	if err != nil {
		return err
	}
	if err := at.compare(side, s.id); err != nil {
		return err
	}
	if s.noted.in, err = identify(at.sidecar()); err != nil {
		return err
	}
	s.noted.writes = side.writes
	if err := s.compareWrites(ctx, side.writes); err != nil {
		return err
	}
	// Also where this process made neither name: the one that did may not have
	// come to this before its power is cut, and ours is cut with it.
	if err := at.syncDir(); err != nil {
		return err
	}
	return s.check()
}

// finish writes the sidecar of a file that has none, if the file is new. Nobody has
// written a record before the sidecar was there, so a file with records has lost
// it: it was copied, or moved alone.
func (s *Store) finish(ctx context.Context) error {
	var used bool
	err := s.reading(ctx, func(c *session) error { return c.row(sqlUsed, &used) })
	if err != nil {
		return err
	}
	if used {
		// Its creator may have written the sidecar since, and others records.
		if _, err := s.at.readSidecar(); !missing(err) {
			return err
		}
		return s.at.unaccompanied()
	}
	// The sidecar must not outlive a loss of power that the file does not.
	if err := s.at.syncDir(); err != nil {
		return err
	}
	side, err := s.describe(ctx)
	if err != nil {
		return err
	}
	if err := s.at.addSidecar(side); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// describe returns the sidecar of the file that is open.
func (s *Store) describe(ctx context.Context) (sidecar, error) {
	now, err := identify(s.at.file)
	if err != nil {
		return sidecar{}, err
	}
	writes, err := s.countWrites(ctx)
	if err != nil {
		return sidecar{}, err
	}
	// It may have been another file that was there.
	return sidecar{V: sidecarFormat, Store: s.id, identity: now, writes: writes}, s.check()
}

// compare returns a ForgotError if the file at the path, with the id found
// inside it, is not the one side is about.
func (at location) compare(side sidecar, id string) error {
	now, err := identify(at.file)
	switch {
	case missing(err):
		return errChanged
	case err != nil:
		return at.explain(err)
	case side.Lost != "":
		return at.forgot("%s", side.Lost)
	case id != side.Store:
		return at.forgot("the file was replaced: it holds store %s, and %s says %s", id, at.sidecar(), side.Store)
	case !side.identity.same(now):
		return at.copied("it is %s, and %s says %s", now, at.sidecar(), side.identity)
	}
	return nil
}

// attach opens the file that is there as a Store, whatever the sidecar says.
func (at location) attach(ctx context.Context) (*Store, error) {
	db, err := openDB(readWrite(at.file))
	if err != nil {
		return nil, at.explain(err)
	}
	s := &Store{
		at:       at,
		now:      time.Now,
		patience: patience,
		db:       db,
		write:    make(chan *session, 1),
		read:     make(chan *session, readers),
		closing:  make(chan struct{}),
	}
	err = s.watch(at.given)
	switch {
	case missing(err):
		err = errChanged
	case err == nil:
		err = at.recognise(s.open[0].file.Size())
	}
	if err == nil {
		err = s.patiently(ctx, time.Now().Add(patience), s.start)
	}
	if err != nil {
		db.Close()
		return nil, at.explain(err)
	}
	s.write <- nil
	for range readers {
		s.read <- nil
	}
	return s, nil
}

// start opens the anchor and learns the store's id.
func (s *Store) start() (err error) {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	var mode string
	if err := c.row("PRAGMA journal_mode = WAL", &mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("journal_mode is %s and cannot be made wal", mode)
	}
	// The header that recognise saw may be older than what is in the journal.
	var version int64
	if err := c.row("PRAGMA user_version", &version); err != nil {
		return err
	}
	if err := knows(version); err != nil {
		return err
	}
	if err := c.row("SELECT id FROM store", &s.id); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return errors.New("the file has lost its id; restore a backup")
		}
		return err
	}
	// The journals are there from the first read on, as long as the anchor is.
	for _, j := range s.at.journals()[:2] {
		if err := s.watch(j); err != nil {
			s.open = s.open[:1]
			return err
		}
	}
	s.anchor = c.conn
	return nil
}

// recognise returns an error unless the file is a database of this firn or an
// older one. It reads the header without locks and without journals, so that
// it changes nothing about a file that is somebody else's. It reads through
// SQLite because closing a file descriptor of our own would drop the locks that
// SQLite holds on the same file in this process.
func (at location) recognise(size int64) error {
	if _, err := os.Lstat(at.sidecar()); size == 0 && err == nil {
		return at.emptied()
	}
	if size == 0 {
		return errors.New("the file is empty and was not made by firn; remove it if nobody needs it")
	}
	db, err := openDB(source(at.file, "mode=ro", "immutable=1", "_error_rc=1"))
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer conn.Close()
	var app, version int64
	if err := conn.QueryRowContext(context.Background(), "PRAGMA application_id").Scan(&app); err != nil {
		return err
	}
	if err := conn.QueryRowContext(context.Background(), "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if app != applicationID {
		return fmt.Errorf("a SQLite database of another program (application_id %#x, not %#x); name another path, firn does not touch this one", app, applicationID)
	}
	return knows(version)
}

// knows returns an error unless this package reads and writes a user_version.
func knows(version int64) error {
	switch {
	case version > schemaVersion:
		return fmt.Errorf("written by a newer firn (user_version %d, this one knows %d); use that firn", version, schemaVersion)
	case version < schemaVersion:
		return fmt.Errorf("user_version is %d: no released firn wrote it", version)
	}
	return nil
}
