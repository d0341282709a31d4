package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// This file says, below the errors of other commands, how a store is made safe again.

// recoverCommand is the command that makes a store safe, with what it needs: counters says
// that the store has some. Where nobody knows, the command itself asks for --numbers.
func recoverCommand(url string, counters bool) string {
	const n = "more than any of them can have given out since the state that is in the store now"
	if counters {
		return fmt.Sprintf("firn store recover%s --numbers N, with N for its segments, tickets and serials: %s", storeFlag(url), n)
	}
	return "firn store recover" + storeFlag(url)
}

// saysRecover reports whether a hint says already how a store is made safe.
func (f *failure) saysRecover() bool {
	return slices.ContainsFunc(f.hints, func(h hint) bool { return strings.Contains(h.text, "firn store recover") })
}

// forgotten adds to the error of a store that forgot what makes it usable again.
func forgotten(cmd *cobra.Command, err error) error {
	var forgot *store.ForgotError
	if !errors.As(err, &forgot) {
		return err
	}
	var f *failure
	if !errors.As(err, &f) {
		f = classify(err)
	}
	var copied *sqlite.CopyError
	if errors.As(err, &copied) {
		for _, hint := range copyHints(copied) {
			f = f.hint("%s", hint)
		}
		return f
	}
	var file *lease.GrantFileError
	if errors.As(err, &file) { // repaired or not, the store will not have that pool again
		return f.hint("if the store was recovered: rm %s", shellWord(file.Path))
	}
	if f.saysRecover() {
		return f
	}
	url := forgot.Store
	if !strings.HasPrefix(url, "sqlite:") { // it is the name of a pool
		set, err := loadSettings(cmd)
		if err == nil {
			url = set.storeURL().text
		}
		if path, err := implicitStore(); url == "" && err == nil {
			url = "sqlite:" + path
		}
	}
	return f.hintRecover(url, "stop all processes that use it, put back what there is, then: "+recoverCommand(url, false))
}

// withBackup is what to do about a missing file of which there is a backup.
func withBackup(url string) string {
	return "if there is a backup: stop all processes that use the store, put the backup back, then: " + recoverCommand(url, false)
}

// hintRecover adds what makes a store safe. Where its file is not there, that is not what
// makes others safe.
func (f *failure) hintRecover(url, text string) *failure {
	texts := []string{text}
	if path, ok := sqliteFile(url); ok && !isFile(path) {
		texts = noFileHints(url, withBackup(url))
	}
	for _, text := range texts {
		f.hint("%s", text)
	}
	return f
}

// isFile reports whether something is at a path, as far as that can be seen.
func isFile(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// copyHints are what to do about a file that may be one of two copies. To recover is
// the last of them: it accepts the file, and knows nothing of the others.
func copyHints(e *sqlite.CopyError) []string {
	hints := []string{"if the original is still there, use that one: two copies of a store make the same ids"}
	switch {
	case e.Left != "":
		hints = []string{"the file was renamed, and its hidden file was not: mv " + shellWord(e.Left) + " " + shellWord(e.Sidecar)}
	case e.Alone:
		hints = append(hints, "if you moved the file from another directory, move it back: its hidden file is still there")
	}
	return append(hints, "only if the original and every other copy are gone for good: stop all processes that use this one, then: "+recoverCommand("sqlite:"+e.Path, false))
}

// noFileHints are what to do where the file of a store is not there. To recover makes no
// file, so without a backup that alone would lead nowhere.
func noFileHints(url, backup string) []string {
	return []string{
		"if the file was moved, have every process use it where it is now: FIRN_STORE=sqlite:PATH with its absolute path",
		backup,
		"only if the file is gone for good, with all its copies, and was not moved: " + recoverCommand(url, false) + " --lost",
	}
}
