package doctor

import (
	"errors"
	"runtime"
	"strings"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// Free space on a disk, and size of a write-ahead log, at which that is said.
const (
	littleSpace = 100 << 20
	noSpace     = 1 << 20
	longLog     = 64 << 20
)

// file checks what a SQLite store lies on. It returns whether it can be opened
// without making anything.
func (e *exam) file(path, url string) bool {
	f, err := sqlite.Inspect(path)
	if err != nil {
		e.unusable(err, url)
		return false
	}
	e.disk(&f)
	for _, name := range f.Left {
		e.say(Warning, "file", "remove it", "%s is left over, and nobody reads it", name)
	}
	switch {
	case f.Database == nil:
		do := append([]string{"if there never was one: the first id makes it"}, remedy.NoFile(url, remedy.Backup(url))...)
		e.say(Warning, "file", strings.Join(do, "; "), "there is no file %s", f.Path)
		return false
	case f.Sidecar == nil:
		e.say(Warning, "file", "the first id writes it, or says what is wrong with the file",
			"the hidden file beside %s is missing, by which it is noticed that it was removed or replaced", f.Path)
		return false
	}
	state, do := OK, ""
	if runtime.GOOS != "windows" && f.Database.Mode().Perm()&0o002 != 0 {
		state, do = Warning, "every user of this host can write it: chmod o-w "+phrase.ShellWord(f.Path)
	}
	log := "no write-ahead log"
	if f.Log != nil {
		log = "a write-ahead log of " + phrase.Count(f.Log.Size()) + " bytes"
		if f.Log.Size() > longLog {
			state, do = Warning, "some process reads without an end, or was stopped"
		}
	}
	e.say(state, "file", do, "%s, %s bytes, mode %04o, with its hidden file and %s", f.Path, phrase.Count(f.Database.Size()), f.Database.Mode().Perm(), log)
	return true
}

// unusable reports a file that is no store, or not the one that it was.
func (e *exam) unusable(err error, url string) {
	f := failure("file", err)
	var forgot *store.ForgotError
	var copied *sqlite.CopyError
	switch {
	case errors.As(err, &copied):
		f.Do = strings.Join(remedy.Copied(copied), "; ")
	case errors.As(err, &forgot):
		f.Do = strings.Join(remedy.Lost(err, url, "stop all processes that use it, put back what there is, then: "+remedy.Recover(url)), "; ")
	}
	e.report(f)
}

// disk checks the file system.
func (e *exam) disk(f *sqlite.Files) {
	if f.FileSystem == "overlay" {
		e.say(Warning, "disk", "in a container, put it on a volume", "%s is on overlay, which ends with its container", f.Path)
	}
	free, ok := diskFree(f.Path)
	switch {
	case !ok:
		e.say(OK, "disk", "", "%s", f.FileSystem)
	case free < noSpace:
		e.say(Bad, "disk", "free some space", "%s, with %s bytes free", f.FileSystem, phrase.Count(free))
	case free < littleSpace:
		e.say(Warning, "disk", "free some space", "%s, with %s MB free", f.FileSystem, phrase.Count(free>>20))
	default:
		e.say(OK, "disk", "", "%s, with %s MB free", f.FileSystem, phrase.Count(free>>20))
	}
}
