package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	codes "modernc.org/sqlite/lib"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/advice"
)

// ifLonger is what the commands that make a store safe need besides.
const ifLonger = "(add --outage if any process had an outage budget of more than 5 min)"

var errClosed = errors.New("the store is closed")

// missing says whether err means that nothing is at a path, for certain.
func missing(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// A CopyError says that a file has the records of a store, and is not the file in
// which they were written: it is a copy, or a backup that was put back, or it was
// moved without the hidden file beside it. Whoever uses it while the original or
// another copy is in use too makes the same ids. Its Unwrap is a
// [store.ForgotError].
type CopyError struct {
	Path    string // of the database
	Sidecar string // of the hidden file beside it
	Alone   bool   // the hidden file is missing
	Left    string // the hidden file beside it that is about this very file, under the name that it had; empty: there is none
	Why     string // what was seen
}

func (e *CopyError) Error() string {
	return fmt.Sprintf("store/sqlite: %s is a copy, or has forgotten what it acknowledged: %s", e.Path, e.Why)
}

// Unwrap returns what it means for whoever uses the store.
func (e *CopyError) Unwrap() error {
	return &store.ForgotError{Store: "sqlite:" + e.Path, What: e.Why}
}

func (at location) copied(format string, args ...any) error {
	return &CopyError{Path: at.given, Sidecar: at.sidecar(), Why: fmt.Sprintf(format, args...)}
}

// emptied is the error of a file without a byte whose sidecar says that it had records.
func (at location) emptied() error {
	return at.forgot("the file was emptied; %s says that it was a store", at.sidecar())
}

// unaccompanied is the error of a file with records and no sidecar.
func (at location) unaccompanied() error {
	return &CopyError{
		Path: at.given, Sidecar: at.sidecar(), Alone: true, Left: at.leftSidecar(),
		Why: fmt.Sprintf("it has records, and %s is missing, which firn keeps beside the original", at.sidecar()),
	}
}

// explain says which file err is about and, where it can be told, what to do.
// What is already an error of this package or its contract comes back as it is.
func (at location) explain(err error) error {
	if err == nil || advice.Done(err) || errors.As(err, new(*MissingDirectoryError)) {
		return err
	}
	return at.explained(at.advice(err), err)
}

func (at location) explained(what string, err error) error {
	return &advice.Error{Where: "sqlite: " + at.given, Advice: what, Err: err}
}

// explainDir is explain for an error about the directory the file is to be in.
func (at location) explainDir(dir string, err error) error {
	switch {
	case missing(err) && slices.ContainsFunc(strings.Split(filepath.ToSlash(dir), "/"), func(s string) bool { return strings.HasPrefix(s, "~") }):
		return at.explained(fmt.Sprintf("the directory %s does not exist: nothing replaces ~ by your home directory here; write the whole path, in a shell as sqlite:$HOME/...", dir), err)
	case missing(err):
		return &MissingDirectoryError{Path: at.given, Dir: dir, cause: err}
	case errors.Is(err, os.ErrPermission):
		return at.explained(fmt.Sprintf("this user may not enter the directory %s, or one above it; let it: another file makes the same ids", dir), err)
	}
	return at.explain(err)
}

// A MissingDirectoryError says that the directory of a store does not exist. A store may have been
// there: then an empty one in a new directory makes the same ids, and nothing can notice that. So
// no program makes the directory.
type MissingDirectoryError struct {
	Path  string // of the database
	Dir   string // that does not exist
	cause error
}

func (e *MissingDirectoryError) Error() string {
	return fmt.Sprintf("store/sqlite: %s: the directory %s does not exist: if other programs use another path, use that one, and if its volume is not mounted, mount it; "+
		"if the directory was lost with the store: firn store recover --store %s --lost "+ifLonger+"; only if there never was a store: mkdir -p %s", e.Path, e.Dir, phrase.ShellWord("sqlite:"+e.Path), phrase.ShellWord(e.Dir))
}

// Unwrap returns what the operating system said.
func (e *MissingDirectoryError) Unwrap() error { return e.cause }

// An UnfitFileError says that what is at the path of a store cannot be its file. A directory may be
// there on purpose: it keeps the place of a file that was moved, so that no program makes another
// file there, and the same ids.
type UnfitFileError struct {
	Path      string // of the database
	Directory bool   // a directory is there
	Why       string
}

func (e *UnfitFileError) Error() string { return e.Why }

// Retryable is false: somebody has to change what is at the path, or name another store; see firn.Retryable.
func (*UnfitFileError) Retryable() bool { return false }

func (at location) advice(err error) string {
	switch code(err) {
	case codes.SQLITE_BUSY, codes.SQLITE_PROTOCOL:
		return "locked by another process, for example a backup or an open transaction in a shell; it must end first"
	case codes.SQLITE_FULL:
		return "the disk is full, or a quota or size limit is reached; free some space"
	case codes.SQLITE_CORRUPT:
		return `the file is damaged; stop all who use it, restore a backup, then run "firn store recover" ` + ifLonger
	case codes.SQLITE_NOTADB:
		return `the file is not a SQLite database; if it was firn's, restore a backup, then run "firn store recover" ` + ifLonger + `; if it is another program's, name a path of firn's own`
	case codes.SQLITE_READONLY, codes.SQLITE_CANTOPEN, codes.SQLITE_PERM, codes.SQLITE_IOERR:
		// SQLite does not say which of its files the system refused, and why.
		if refused := at.refusal(); refused != "" {
			return refused
		}
		// Nor that the disk has no space for its log, or for the memory that goes with it.
		if dir := filepath.Dir(at.file); code(err) == codes.SQLITE_IOERR && full(dir) {
			return fmt.Sprintf("the disk is full that has %s; free some space", dir)
		}
	}
	switch code(err) {
	case codes.SQLITE_READONLY:
		return "the file or a journal beside it was opened when it could not be written; try again"
	case codes.SQLITE_CANTOPEN, codes.SQLITE_PERM:
		return "the file or a journal beside it cannot be opened; this user must be able to read and write the files beside it, and free file handles and disk space must be left (ls -l, ulimit -n, df)"
	case codes.SQLITE_IOERR:
		return "the disk reports an error; see whether it is full or fails (df, and dmesg or the log of the host), mend that, then try again. Do not copy or remove the file"
	}
	switch {
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only; make it writable"
	case errors.Is(err, os.ErrPermission):
		if refused := at.refusal(); refused != "" {
			return refused
		}
		return fmt.Sprintf("no permission; this user must be able to write the file and the directory %s", filepath.Dir(at.file))
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Sprintf("the disk is full that has %s; free some space", filepath.Dir(at.file))
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "too many files are open; raise the limit"
	}
	return ""
}

// refusal says which of the files that SQLite writes this user may not write,
// or "". It opens none of them: closing one would drop SQLite's locks on it.
func (at location) refusal() string {
	for _, name := range append([]string{filepath.Dir(at.file), at.file, at.sidecar()}, at.journals()...) {
		err := writable(name)
		switch {
		case errors.Is(err, syscall.EROFS):
			return "the file system is read-only; make it writable"
		case errors.Is(err, os.ErrPermission):
			if name == at.sidecar() {
				return fmt.Sprintf("%s is read-only for this user, and tells whether the file was put back to an earlier state; give it the owner and group of %s, and as many rights. %s", name, at.file, at.sharing())
			}
			return fmt.Sprintf("%s is read-only for this user; make it writable: another file makes the same ids. %s", name, at.sharing())
		}
	}
	return ""
}

// sharing is how users share the store: all that they have to be able to write, in one command.
// A directory that keeps its group gives it to the journals that SQLite makes.
func (at location) sharing() string {
	dir, files := phrase.ShellWord(filepath.Dir(at.file)), ""
	for _, name := range append([]string{at.file, at.sidecar()}, at.journals()...) {
		if _, err := os.Lstat(name); !missing(err) {
			files += " " + phrase.ShellWord(name)
		}
	}
	command := "chgrp GROUP " + dir + files + " && chmod g+rwxs " + dir
	if files != "" {
		command += " && chmod 660" + files
	}
	return "Users share a file by a GROUP that all of them are in and that may write the directory, the file and the hidden file. Its owner, or root, types: " + command
}
