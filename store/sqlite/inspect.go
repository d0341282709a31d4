package sqlite

import (
	"os"
	"path/filepath"
	"strings"
)

// Names of files that nobody reads: what temporary makes has the one inside, and
// a journal that Restored has put aside ends in the other.
const (
	temporaryInfix = ".new-"
	asideSuffix    = ".old"
)

// Files are what lies at the path of a store and beside it. What is not there is
// nil.
type Files struct {
	Path     string      // of the database, without symbolic links
	Database os.FileInfo // the records
	Sidecar  os.FileInfo // the hidden file that says which database it is
	Log      os.FileInfo // SQLite's write-ahead log: some process has the database open, or was killed

	// Left are files that nobody reads any more: of processes that died while
	// they made a store, and journals that Restored put aside.
	Left []string

	FileSystem string
	Volatile   bool // the file system forgets when the host restarts
}

// Inspect says what lies at path, and what Open would say before it opens the
// database: a [store.ForgotError] if it was there and is not, or is another one,
// and that as a [CopyError] if it may be one of two copies.
// It writes nothing and makes nothing. With an error it returns what it has seen.
func Inspect(path string) (Files, error) {
	at, err := locate(path)
	if err != nil {
		return Files{}, err
	}
	f := Files{Path: at.file}
	dir, base := filepath.Dir(at.file), filepath.Base(at.file)
	fs, err := fileSystem(dir)
	if err != nil {
		return f, at.explain(err)
	}
	f.FileSystem, f.Volatile = fs.name, fs.volatile
	entries, err := os.ReadDir(dir)
	if err != nil {
		return f, at.explain(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), at.temporaryPrefix()) || strings.HasPrefix(e.Name(), base+"-") && strings.HasSuffix(e.Name(), asideSuffix) {
			f.Left = append(f.Left, filepath.Join(dir, e.Name()))
		}
	}
	for name, into := range map[string]*os.FileInfo{
		at.file: &f.Database, at.sidecar(): &f.Sidecar, at.journals()[0]: &f.Log,
	} {
		fi, err := os.Stat(name)
		if err == nil {
			*into = fi
		} else if !missing(err) {
			return f, at.explain(err)
		}
	}
	return f, at.explain(at.judge())
}

// judge is what open says before it opens the file, and nil if there never was one.
func (at location) judge() error {
	there, left, err := at.there()
	switch {
	case err != nil:
		return err
	case left != "":
		return at.forgot("the file was removed; %s says that it was there", left)
	case !there:
		return nil
	}
	side, err := at.readSidecar()
	switch {
	case missing(err):
		if used, err := at.used(); err == nil && used {
			return at.unaccompanied()
		}
		return nil // new, or Open says what is wrong with it
	case err != nil:
		return err
	}
	if fi, err := os.Stat(at.file); err == nil && fi.Size() == 0 {
		return at.emptied()
	}
	return at.compare(side, side.Store)
}

// used says whether the file has records, as far as that can be seen without
// locks and without journals, so that nothing is written.
func (at location) used() (used bool, err error) {
	db, err := openDB(source(at.file, "mode=ro", "immutable=1", "_error_rc=1"))
	if err != nil {
		return false, err
	}
	defer db.Close()
	err = db.QueryRow(sqlUsed).Scan(&used)
	return used, err
}
