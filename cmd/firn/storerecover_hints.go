package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// This file says, below the errors of other commands, how a store is made safe again.

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
		return addHints(f, remedy.Copied(copied))
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
		if path, err := whichstore.Default(); url == "" && err == nil {
			url = "sqlite:" + path
		}
	}
	return hintLost(f, url, "stop all processes that use it, put back what there is, then: "+remedy.Recover(url))
}

// hintLost adds what makes a store safe that has lost something, which is text for any but a file.
func hintLost(f *ui.Failure, url, text string) *ui.Failure {
	return addHints(f, remedy.Lost(f.Err, url, text))
}

// addHints adds a line for each text.
func addHints(f *ui.Failure, texts []string) *ui.Failure {
	for _, text := range texts {
		f.Hint("%s", text)
	}
	return f
}

// missingDirectory says what to do where the directory of a store's file does not exist. Only the
// last hint makes a directory: a store may have been there, and a new one makes its ids.
func missingDirectory(e *sqlite.MissingDirectoryError) *ui.Failure {
	url := "sqlite:" + e.Path
	return ui.Failed("%w", ui.Rename(fmt.Sprintf("%s: the directory %s does not exist", e.Path, e.Dir), e)).
		Hint("if your programs use another path, use that one: two stores make the same ids. If its volume is not mounted, mount it").
		Hint("%s", remedy.Backup(url)).
		Hint("%s", remedy.LostForGood(url)).
		Hint("only if there never was a store: mkdir -p %s", phrase.ShellWord(e.Dir))
}

// lostStore is what to do about a store that lost writes or is another one, for a log: it names
// the store, as people read a log in another shell.
func (h hinter) lostStore(err error, url string) string {
	f := ui.Failed("%w", err)
	var copied *sqlite.CopyError
	var other *store.OtherStoreError
	switch {
	case errors.As(err, &copied):
		addHints(f, remedy.Copied(copied))
	case errors.As(err, &other):
		f = otherStore(err, other, url)
	default:
		hintLost(f, url, "stop all processes that use it, then: "+remedy.Recover(url))
	}
	return h.line(f)
}
