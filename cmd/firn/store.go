package main

import (
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
)

// addStore adds --store.
func addStore(cmd *cobra.Command) {
	cmd.Flags().String("store", "", "where records are kept: sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE or another of docs/guides/stores.md (a file of this user)")
}

// placeStore makes the path of --store absolute, and says where a URL is from that names no
// store. The path counts from the working directory on a command line, where a person sees
// both. A variable stays when the directory changes, so there a relative path is an error.
func placeStore(cmd *cobra.Command) error {
	f := cmd.Flags().Lookup("store")
	if f == nil || !f.Changed || cmd.Name() == "backfill" && f.Value.String() == noStore {
		return nil
	}
	path, ok := strings.CutPrefix(f.Value.String(), "sqlite:")
	if !ok || path == "" || strings.HasPrefix(path, "//") || filepath.IsAbs(path) {
		if err := config.CheckStore(f.Value.String()); err != nil {
			return badStore(origin(f), err)
		}
		return nil
	}
	if from := origin(f); from != "--store" {
		return badStore(from, config.CheckStore(f.Value.String()))
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return ui.Failed("--store: %w", err)
	}
	return f.Value.Set("sqlite:" + whole)
}

// Stores that hints name: the same words wherever a hint is read. Nobody can type them as they
// are: a store of an example would be another one than the store that is meant.
const (
	hostStore   = "sqlite:/DIRECTORY/ids.db"
	serverStore = "postgres://USER:PASSWORD@HOST/DATABASE"
	nameStore   = "for all processes of this host: --store " + hostStore + "; for several hosts: --store " + serverStore + ", or another server"
)

// sayMade tells a person of a file that was made: ids are unique among the programs
// that use it, and a path mistyped is a store of its own.
func sayMade(errs io.Writer) open.OnMade {
	return func(path string, implicit bool) {
		if implicit {
			ui.PrintNote(errs, "created %s, the file of user %s: ids are unique among your programs on this host that name no other store", path, userName())
		} else {
			ui.PrintNote(errs, "created %s: ids are unique among your programs that use this file", path)
		}
		if text := whichstore.InContainer(path); text != "" {
			ui.PrintWarning(errs, "%s", text)
		}
	}
}

// userName is the name of the user of this process.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Geteuid())
}

// badStore says what is wrong with the URL of a store, and whether a flag or a variable
// says it.
func badStore(from string, err error) error {
	return ui.Bad("%s: %s", from, phrase.WithoutPackage(err.Error())).Hint("how a store is written: docs/guides/stores.md; every process has to name the same one")
}
