package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// This file says, below the errors of other commands, how a store is made safe again.

// recoverCommand is the command that makes a store safe, with what it needs: counters says
// that the store has some. Otherwise it may have some, and says when the command needs more.
func recoverCommand(url string, counters bool) string {
	const n = "more than any of them can have given out since the state that is in the store now"
	command, note := "firn store recover"+storeFlag(url), ""
	if withoutPassword(url) != url { // without --store the command would be about the default file
		command, note = "firn store recover --store URL", maskedNote
	}
	if counters {
		return command + " --numbers N, with N for its sequences, tickets and documents: " + n + note
	}
	return command + " (if the store has sequences, tickets or documents, add --numbers N, with N " + n + ")" + note
}

// saysRecover reports whether a hint says already how a store is made safe.
func saysRecover(f *ui.Failure) bool {
	return slices.ContainsFunc(f.Hints, func(h ui.Hint) bool { return strings.Contains(h.Text, "firn store recover") })
}

// forgotten adds to the error of a store that forgot what makes it usable again.
func forgotten(cmd *cobra.Command, err error) error {
	var forgot *store.ForgotError
	if !errors.As(err, &forgot) {
		return err
	}
	var f *ui.Failure
	if !errors.As(err, &f) {
		f = classify(err)
	}
	var copied *sqlite.CopyError
	if errors.As(err, &copied) {
		for _, hint := range copyHints(copied) {
			f = f.Hint("%s", hint)
		}
		return f
	}
	var file *lease.GrantFileError
	if errors.As(err, &file) { // repaired or not, the store will not have that pool again
		return f.Hint("if the store was recovered: rm %s", phrase.ShellWord(file.Path))
	}
	if saysRecover(f) {
		return f
	}
	url := forgot.Store
	if !strings.HasPrefix(url, "sqlite:") { // it is the name of a pool
		set, err := loadSettings(cmd)
		if err == nil {
			url = set.StoreURL().Text
		}
		if path, err := open.DefaultStore(); url == "" && err == nil {
			url = "sqlite:" + path
		}
	}
	return hintRecover(f, url, "stop all processes that use it, put back what there is, then: "+recoverCommand(url, false))
}

// withBackup is what to do about a missing file of which there is a backup.
func withBackup(url string) string {
	return "if there is a backup: stop all processes that use the store, put the backup back, then: " + recoverCommand(url, false)
}

// hintRecover adds what makes a store safe. Where its file is not there, that is not what
// makes others safe.
func hintRecover(f *ui.Failure, url, text string) *ui.Failure {
	texts := []string{text}
	if path, ok := open.SqliteFile(url); ok && !isFile(path) {
		texts = noFileHints(url, withBackup(url))
	} else if ok && isEmpty(path) {
		texts = []string{withBackup(url), "only if there is no backup: rm " + phrase.ShellWord(path) + "; firn store recover" + storeFlag(url) + " --lost"}
	} else if ok && lostWhileOpen(f) && inOrder(path) {
		texts = []string{inOrderHint, "only if they stop again: " + text}
	}
	for _, text := range texts {
		f.Hint("%s", text)
	}
	return f
}

// isFile reports whether something is at a path, as far as that can be seen.
func isFile(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// isEmpty reports whether a file is there and has no bytes.
func isEmpty(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Size() == 0
}

// inOrderHint is for a program that has lost a file which is there again, such as one that was
// moved away and back. To open it again compares it with its hidden file, and costs nothing.
const inOrderHint = "the file is the one that its hidden file names: restart the programs that stopped (a running server: send SIGHUP)"

// lostWhileOpen reports whether the error is about a file that was removed or moved away while a
// program had it open.
func lostWhileOpen(f *ui.Failure) bool {
	var forgot *store.ForgotError
	return errors.As(f.Err, &forgot) && forgot.What == sqlite.Away
}

// inOrder reports whether the file of a store is there with its hidden file, and is the one that
// the hidden file names, as far as that shows without opening it.
func inOrder(path string) bool {
	f, err := sqlite.Inspect(path)
	return err == nil && f.Database != nil && f.Sidecar != nil
}

// copyHints are what to do about a file that may be one of two copies. To recover is
// the last of them: it accepts the file, and knows nothing of the others.
func copyHints(e *sqlite.CopyError) []string {
	hints := []string{"if the original is still there, use that one: two copies of a store make the same ids"}
	switch {
	case e.Left != "":
		hints = []string{"the file was renamed, and its hidden file was not: mv " + phrase.ShellWord(e.Left) + " " + phrase.ShellWord(e.Sidecar)}
	default:
		hints = append(hints, "only if you moved the file here yourself, it is no copy and no backup, and nothing used the original since: stop all processes that use this one, then: firn store recover"+storeFlag("sqlite:"+e.Path)+" --moved")
	}
	return append(hints, "only if the original and every other copy are gone for good: stop all processes that use this one, then: "+recoverCommand("sqlite:"+e.Path, false))
}

// missingDirectory says what to do where the directory of a store's file does not exist. Only the
// last hint makes a directory: a store may have been there, and a new one makes its ids.
func missingDirectory(e *sqlite.MissingDirectoryError) *ui.Failure {
	url := "sqlite:" + e.Path
	return ui.Failed("%w", ui.Rename(fmt.Sprintf("%s: the directory %s does not exist", e.Path, e.Dir), e)).
		Hint("if your programs use another path, use that one: two stores make the same ids. If its volume is not mounted, mount it").
		Hint("%s", withBackup(url)).
		Hint("%s", lostForGood(url)).
		Hint("only if there never was a store: mkdir -p %s", phrase.ShellWord(e.Dir))
}

// lostForGood is what to do about a file that is lost, and of which there is no backup.
func lostForGood(url string) string {
	return "only if the file is gone for good, with all its copies, and was not moved: firn store recover" + storeFlag(url) + " --lost"
}

// noFileHints are what to do where the file of a store is not there. To recover makes no
// file, so without a backup that alone would lead nowhere.
func noFileHints(url, backup string) []string {
	return []string{
		"if the file was moved, move it back and restart the programs that stopped (a running server: send SIGHUP). Or have every process use it where it is now: write sqlite:PATH, with its absolute path, in place of " + withoutPassword(url) + " wherever that is named (store or stores in firn.yaml, --store, FIRN_STORE), and set FIRN_STORE only where no store is named. If it is on a volume that is not mounted, mount that",
		backup,
		lostForGood(url),
	}
}

// lostStoreHint is what to do about a store that lost writes or is another one, for a log: it names
// the store, as people read a log in another shell.
func lostStoreHint(err error, url string) string {
	f := ui.Failed("%w", err)
	var copied *sqlite.CopyError
	var other *store.OtherStoreError
	switch {
	case errors.As(err, &copied):
		for _, text := range copyHints(copied) {
			f.Hint("%s", text)
		}
	case errors.As(err, &other):
		f = otherStore(err, other, url)
	default:
		hintRecover(f, url, "stop all processes that use it, then: "+recoverCommand(url, false))
	}
	return hinter{}.line(f)
}
