package sqlite

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
//     finds F without S and without records (its creator has not come so far, or
//     has crashed) writes S from what F says; everybody would write the same, and
//     one link succeeds.
//   - F has records, S is missing: S was removed, or F is a copy, or was moved
//     alone, because nobody writes a record before S is there. The second look at S
//     must come after the look at the records: the creator and its records may have
//     come in between.
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
//     The journals are watched in the same way, since those who open F after one
//     was removed write another; whoever notices says so in S.
//   - F is overwritten in place with an older copy of itself, as cp does: F counts its
//     writes, and S says how many were acknowledged, or fewer, since that is written
//     without a sync. An F that has made fewer was put back. Where SQLite's log, or the
//     memory of a process, still has newer pages of F, the count may be the newest and the
//     records older: the sums in F tell, at each read (sums.go).
//   - Both are removed: the next Open makes a new store, and nobody can tell.
//     The processes that had it open still can, and stop.
//
// An inode number alone would not do, since file systems hand it out again at
// once. While a Store is open its file keeps the number; between processes the
// time of birth tells the two apart, where the file system has one.

const (
	// applicationID ("firn") and schemaVersion are in the header of the file.
	applicationID = 0x6669726e
	schemaVersion = 2

	schema = `
CREATE TABLE store (id TEXT NOT NULL, writes INTEGER NOT NULL, sums BLOB NOT NULL) STRICT;
CREATE TABLE record (
	key     TEXT NOT NULL PRIMARY KEY,
	value   TEXT NOT NULL,
	version TEXT NOT NULL,
	written INTEGER NOT NULL,
	bucket  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX record_bucket ON record (bucket);`
)

// there says whether the file is there, and if not, what is left of it: the name
// of a file that would not be there if it had never been.
func (at location) there() (there bool, left string, err error) {
	return at.look(at.stat)
}

// look is there, for a way to look at the file.
func (at location) look(stat func() (bool, error)) (there bool, left string, err error) {
	if there, err = stat(); there || err != nil {
		return there, "", err
	}
	for _, name := range append([]string{at.sidecar()}, at.journals()...) {
		if _, err := os.Lstat(name); missing(err) {
			continue
		} else if err != nil {
			return false, "", err
		}
		// It may have been created between the two looks, but not after both.
		there, err := stat()
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
		return false, &UnfitFileError{Path: at.given, Directory: fi.IsDir(), Why: fmt.Sprintf("is a %s, not a file", kind(fi.Mode()))}
	case mountedAlone(at.file):
		return false, &UnfitFileError{Path: at.given, Why: "is mounted by itself, and what SQLite writes beside it would be on another file system; mount its directory"}
	case links(fi) > 1:
		err := at.onlyName()
		return !missing(err), present(err)
	}
	return true, nil
}

// present is err, but nil where that says that the file is missing.
func present(err error) error {
	if missing(err) {
		return nil
	}
	return err
}

// onlyName refuses a file that has another name (a hard link): each name would
// have journals of its own, and neither see what is written by the other. A
// name that creation gave it, and takes away again, is none.
func (at location) onlyName() error {
	all, err := os.ReadDir(filepath.Dir(at.file))
	if err != nil {
		return err
	}
	this, err := os.Stat(at.file)
	if err != nil {
		return err
	}
	temporary := 0
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), at.temporaryPrefix()) {
			continue
		}
		if fi, err := os.Stat(filepath.Join(filepath.Dir(at.file), e.Name())); err == nil && os.SameFile(fi, this) {
			temporary++
		}
	}
	// After the names: one of them may be gone by now, and none is new.
	fi, err := os.Stat(at.file)
	if err != nil {
		return err
	}
	if n := links(fi) - temporary; n > 1 {
		return fmt.Errorf("has %d names (hard links), and what SQLite writes beside each would not be seen by the others; remove all but one", n)
	}
	return nil
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
		fmt.Sprintf("INSERT INTO store (id, writes, sums) VALUES ('%s', 0, zeroblob(%d))", hex.EncodeToString(id[:]), sumsSize),
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
