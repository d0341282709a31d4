package remedy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/store/sqlite"
)

// This file is about stores that are SQLite files: a file can be moved, copied and removed.

// Lost is what to do about a store that err says has lost something: text, unless the store is a
// file that is not there, is empty, or was only moved away for a while.
func Lost(err error, url, text string) []string {
	path, ok := whichstore.File(url)
	switch {
	case ok && !IsFile(path):
		return append(NoFile(url, Backup(url)), beginAgain)
	case ok && IsEmpty(path):
		return []string{Backup(url), "only if there is no backup: rm " + phrase.ShellWord(path) + "; firn store recover" + StoreFlag(url) + " --lost (" + ifLonger + ")"}
	case ok && isBack(err):
		return []string{restart, "only if they stop again: " + text}
	}
	return []string{text}
}

// beginAgain is for a developer who has removed the file in order to begin again.
const beginAgain = `only on a laptop or the like, where no id or number that was made with the store is kept: docs/guides/stores.md, "Begin again on a laptop"`

// restart is for a program that has lost a file which is there again: it was moved away and back.
// To open it again compares it with its hidden file, and costs nothing.
const restart = "the same file is back: restart the programs that stopped (a running server: send SIGHUP)"

// IsFile reports whether something is at a path, as far as that can be seen.
func IsFile(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// IsEmpty reports whether a file is there and has no bytes.
func IsEmpty(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Size() == 0
}

// isBack reports whether err is about a file that was moved away while a program had it open, and
// is at its path again. Another file there, such as one that firn made meanwhile, is not that one.
func isBack(err error) bool {
	var away *sqlite.AwayError
	return errors.As(err, &away) && away.Back()
}

// Copied is what to do about a file that may be one of two copies. To recover is
// the last of them: it accepts the file, and knows nothing of the others.
func Copied(e *sqlite.CopyError) []string {
	texts := []string{"if the original is still there, use that one: two copies of a store make the same ids"}
	switch {
	case e.Left != "":
		was := filepath.Join(filepath.Dir(e.Path), strings.TrimSuffix(strings.TrimPrefix(filepath.Base(e.Left), "."), ".id"))
		texts = []string{
			"the file was renamed, and its hidden file was not: mkdir " + phrase.ShellWord(was) + " && mv " + phrase.ShellWord(e.Left) + " " + phrase.ShellWord(e.Sidecar),
			"have each program name the new path. One that names the old path would make a second store there, which gives the same ids: the directory keeps it from that",
		}
	default:
		texts = append(texts, "only if you moved the file here yourself, it is no copy and no backup, and nothing used the original since: stop all processes that use this one, then: firn store recover"+StoreFlag("sqlite:"+e.Path)+" --moved")
	}
	return append(texts, "only if no process will use the original or another copy again, as after you put a backup back: stop all processes that use this one, then: "+Recover("sqlite:"+e.Path))
}

// NoFile is what to do where the file of a store is not there. To recover makes no
// file, so without a backup that alone would lead nowhere.
func NoFile(url, backup string) []string {
	return []string{
		"if the file was moved, or its volume is not mounted: put it back, and restart the programs that stopped (a running server: send SIGHUP). To keep it elsewhere, write its new path wherever " + url + " is named",
		backup,
		LostForGood(url),
	}
}

// LostForGood is what to do about a file that is lost, and of which there is no backup.
func LostForGood(url string) string {
	return "only if the file and all its copies are lost, and it was not moved: firn store recover" + StoreFlag(url) + " --lost (" + ifLonger + ")"
}
