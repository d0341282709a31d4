package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/firn-id/firn/store"
)

// How a store comes to be, and how its loss is noticed.
//
// Two names matter: the database F and the sidecar S, which names the id of the
// store (also inside F) and F's inode and time of birth. Both are made complete
// under another name, synced, and then linked: link fails if the name is taken,
// so each name appears at once, whole, by exactly one process. F comes first,
// and no Open returns before S is durable. It follows:
//
//   - Two creators: one link of F succeeds, the others open that F. Whoever
//     finds F without S (its creator has not come so far, or has crashed) writes
//     S from what F says; everybody would write the same, and one link succeeds.
//   - A crash before F is linked leaves a temporary file, which nobody reads. A
//     crash between F and S leaves an F that nobody was handed, so that nothing
//     in it was acknowledged, or to a process that wrote S itself.
//   - F is missing, S is there: F was removed, because S is never there before F.
//     The look at F must come after the look at S: a process that sees no F, then
//     is slow, then sees S, may have slept through the creation. The same holds
//     for SQLite's journals, which also are never there before F. They matter
//     by themselves: a journal of a file that is gone would be replayed into a
//     new one of the same name.
//   - F is removed between its creation and that of S: the creator's S then
//     names a file that is gone; or S comes after another creator's F and then
//     the link fails and the ids differ. Both are reported, and both stay so.
//   - F is removed while it is open: each call compares the file that is open
//     with the one at the path. A new connection never creates F (mode=rw).
//     SQLite itself leaves the journals alone on closing a file that has moved.
//   - Both are removed: the next Open makes a new store, and nobody can tell.
//     The processes that had it open still can, and stop.
//
// An inode number alone would not do, since file systems hand it out again at
// once. While a Store is open its file keeps the number; between processes the
// time of birth tells the two apart, where the file system has one.

const (
	// applicationID ("firn") and schemaVersion are in the header of the file.
	applicationID = 0x6669726e
	schemaVersion = 1

	schema = `
CREATE TABLE store (id TEXT NOT NULL) STRICT;
CREATE TABLE record (
	key     TEXT NOT NULL PRIMARY KEY,
	value   TEXT NOT NULL,
	version TEXT NOT NULL,
	written INTEGER NOT NULL
) STRICT, WITHOUT ROWID;`
)

// openTries bounds how often Open starts over because the file appeared or
// vanished under its eyes.
const openTries = 100

// Open opens the store at path, or creates it if there never was one. The
// directory must exist. The file is created for this user only (mode 0600).
//
// It returns a [store.ForgotError] if there was a store and the file is missing
// or another one. It refuses files that are not firn's, or of a newer firn, and
// network file systems, on which SQLite's locks do not work.
func Open(path string) (*Store, error) {
	at, err := locate(path)
	if err != nil {
		return nil, err
	}
	if _, err := fileSystem(filepath.Dir(at.file)); err != nil {
		return nil, at.explain(err)
	}
	for range openTries {
		there, left, err := at.there()
		if err != nil {
			return nil, at.explain(err)
		}
		if left != "" {
			return nil, at.forgot("the file was removed; %s says that it was there", left)
		}
		if !there {
			if err := at.create(); err != nil && !errors.Is(err, os.ErrExist) {
				return nil, at.explain(err)
			}
			continue
		}
		before, err := identify(at.file)
		if err != nil {
			continue
		}
		s, err := at.open()
		if err == nil {
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

// Restored accepts the database that is at path now as the store that was
// there, or creates an empty one if none is. It does nothing else: whoever
// calls it must first have stopped all who use the store and must afterwards,
// before anything is issued from it, raise what the protocols above took from
// records that may be older than the last ones acknowledged.
func Restored(path string) error {
	at, err := locate(path)
	if err != nil {
		return err
	}
	if _, err := fileSystem(filepath.Dir(at.file)); err != nil {
		return at.explain(err)
	}
	there, _, err := at.there()
	if err != nil {
		return at.explain(err)
	}
	if !there {
		// Not needed by anything any more, and deadly to a new file.
		for _, j := range at.journals() {
			if err := os.Rename(j, j+".old"); err != nil && !missing(err) {
				return at.explain(err)
			}
		}
		if err := at.create(); err != nil {
			return at.explain(err)
		}
	}
	if err := at.journalFits(); err != nil {
		return at.explain(err)
	}
	s, err := at.attach(context.Background())
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := identify(at.file)
	if err != nil {
		return at.explain(err)
	}
	if err := at.writeSidecar(sidecar{V: sidecarFormat, Store: s.id, identity: c}, os.Rename); err != nil {
		return at.explain(err)
	}
	if err := s.check(); err != nil {
		return err
	}
	return at.explain(at.syncDir())
}

// journalFits refuses a file with a journal if that may be another file's.
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
	for _, j := range at.journals() {
		if fi, err := os.Stat(j); err == nil && fi.Size() > 0 {
			return fmt.Errorf("%s is beside the file: if it is left from the file that was there before, remove it and %s-shm; if it was copied with this one, open and close the file with sqlite3 once", j, at.file)
		}
	}
	return nil
}

// there says whether the file is there, and if not, what is left of it: the name
// of a file that would not be there if it had never been.
func (at location) there() (there bool, left string, err error) {
	if there, err = at.stat(); there || err != nil {
		return there, "", err
	}
	for _, name := range append([]string{at.sidecar()}, at.journals()...) {
		if _, err := os.Lstat(name); missing(err) {
			continue
		} else if err != nil {
			return false, "", err
		}
		// It may have been created between the two looks, but not after both.
		there, err := at.stat()
		if there || err != nil {
			return there, "", err
		}
		return false, name, nil
	}
	return false, "", nil
}

func (at location) stat() (there bool, err error) {
	fi, err := os.Stat(at.file)
	switch {
	case missing(err):
		return false, nil
	case err != nil:
		return false, err
	case !fi.Mode().IsRegular():
		return false, fmt.Errorf("is a %s, not a file", kind(fi.Mode()))
	}
	return true, nil
}

func kind(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&os.ModeNamedPipe != 0:
		return "pipe"
	case m&os.ModeSocket != 0:
		return "socket"
	case m&os.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// create makes a new database and gives it its name, or returns an error that
// is os.ErrExist if another process was faster.
func (at location) create() error {
	name := at.temporary()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	// The name goes in any case; the file stays under the one it was linked to.
	defer os.Remove(name)
	defer f.Close()
	if err := build(name); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Link(name, at.file); err != nil {
		return fmt.Errorf("giving the new database its name: %w", err)
	}
	return at.syncDir()
}

// build writes an empty store into the empty file name.
func build(name string) error {
	db, err := openDB(source(name, "mode=rw", "_pragma=journal_mode(MEMORY)", "_pragma=synchronous(OFF)"))
	if err != nil {
		return err
	}
	defer db.Close()
	var id [16]byte
	rand.Read(id[:])
	conn, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, q := range []string{
		"BEGIN",
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", schemaVersion),
		schema,
		fmt.Sprintf("INSERT INTO store (id) VALUES ('%s')", hex.EncodeToString(id[:])),
		"COMMIT",
	} {
		if _, err := conn.ExecContext(context.Background(), q); err != nil {
			return fmt.Errorf("writing a new database: %w", err)
		}
	}
	var mode string
	if err := conn.QueryRowContext(context.Background(), "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return fmt.Errorf("writing a new database: %w", err)
	}
	if mode != "wal" {
		return fmt.Errorf("the file system allows no write-ahead log (journal_mode=%s)", mode)
	}
	return nil
}

// open opens the file that is there, and compares it with the sidecar.
func (at location) open() (*Store, error) {
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
	s, err := at.attach(context.Background())
	if err != nil {
		return nil, err
	}
	if err := s.settle(); err != nil {
		s.Close()
		return nil, at.explain(err)
	}
	return s, nil
}

// settle makes sure that the sidecar is there and is about the file of s.
func (s *Store) settle() error {
	at := s.at
	side, err := at.readSidecar()
	if missing(err) {
		now, err := identify(at.file)
		if err != nil {
			return err
		}
		if err := s.check(); err != nil {
			return err // now may be about another file
		}
		side = sidecar{V: sidecarFormat, Store: s.id, identity: now}
		if err := at.writeSidecar(side, os.Link); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		side, err = at.readSidecar()
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if err := at.compare(side, s.id); err != nil {
		return err
	}
	// Also where this process made neither name: the one that did may not have
	// come to this before its power is cut, and ours is cut with it.
	if err := at.syncDir(); err != nil {
		return err
	}
	return s.check()
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
	case id != side.Store:
		return at.forgot("the file was replaced: it holds store %s, and %s says %s", id, at.sidecar(), side.Store)
	case !side.identity.same(now):
		return at.forgot("the file was replaced: it is %s, and %s says %s", now, at.sidecar(), side.identity)
	}
	return nil
}

// attach opens the file that is there as a Store, whatever the sidecar says.
func (at location) attach(ctx context.Context) (*Store, error) {
	before, err := os.Stat(at.given)
	if err != nil {
		if missing(err) {
			return nil, errChanged
		}
		return nil, at.explain(err)
	}
	if err := at.recognise(before.Size()); err != nil {
		return nil, at.explain(err)
	}
	db, err := openDB(readWrite(at.file))
	if err != nil {
		return nil, at.explain(err)
	}
	s := &Store{
		at:       at,
		opened:   before,
		now:      time.Now,
		patience: patience,
		db:       db,
		write:    make(chan *session, 1),
		read:     make(chan *session, readers),
		closing:  make(chan struct{}),
	}
	err = s.patiently(ctx, s.start)
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
	if err := c.row("SELECT id FROM store", &s.id); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return errors.New("the file has lost its id; restore a backup")
		}
		return err
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
	switch {
	case app != applicationID:
		return fmt.Errorf("a SQLite database of another program (application_id %#x, not %#x); name another path, firn does not touch this one", app, applicationID)
	case version > schemaVersion:
		return fmt.Errorf("written by a newer firn (user_version %d, this one knows %d); use that firn", version, schemaVersion)
	case version < schemaVersion:
		return fmt.Errorf("user_version is %d, which no firn wrote", version)
	}
	return nil
}

var _ store.Store = (*Store)(nil)
