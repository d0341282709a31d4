package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

// addStore adds --store.
func addStore(cmd *cobra.Command) {
	cmd.Flags().String("store", "", "where records are kept: sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE or another of docs/stores.md (a file of this user)")
}

// placeStore makes the path of --store absolute, and says where a URL is from that names no
// store. The path counts from the working directory on a command line, where a person sees
// both. A variable stays when the directory changes, so there a relative path is an error.
func placeStore(cmd *cobra.Command) error {
	f := cmd.Flags().Lookup("store")
	if f == nil || !f.Changed || cmd.Name() == "encode" && f.Value.String() == noStore {
		return nil
	}
	path, ok := strings.CutPrefix(f.Value.String(), "sqlite:")
	if !ok || path == "" || strings.HasPrefix(path, "//") || filepath.IsAbs(path) {
		if err := checkStore(f.Value.String()); err != nil {
			return badStore(origin(f), err)
		}
		return nil
	}
	if from := origin(f); from != "--store" {
		return badStore(from, checkStore(f.Value.String()))
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

var errNoStore = errors.New("there is no store")

// An onMade is told of a SQLite file that was made, and whether it is the implicit one.
type onMade func(path string, implicit bool)

// openURL opens the store of --store, or the implicit one. Without an onMade there
// must be one already.
func openURL(ctx context.Context, url string, made onMade) (*open.Store, error) {
	implicit := url == ""
	if implicit {
		path, err := implicitStore()
		if err != nil {
			return nil, err
		}
		url = "sqlite:" + path
	}
	if strings.HasPrefix(url, "memory:") {
		return nil, ui.Bad("%s forgets with this process: the next would make the same ids", url).Hint(nameStore)
	}
	path, embedded := sqliteFile(url)
	if embedded && made == nil {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			f := ui.Failed("%w %s", errNoStore, url).
				Hint("if your programs use another one, name that: two stores make the same ids. If its volume is not mounted, mount it").
				Hint("if it was lost: firn store recover --store %s", phrase.ShellWord(url))
			file, err := sqlite.Inspect(path)
			var none *sqlite.MissingDirectoryError
			if errors.As(err, &none) && !implicit { // the first id makes that of the implicit one
				f.Hints = missingDirectory(none).Hints
			} else if !errors.As(err, new(*store.ForgotError)) && file.Sidecar == nil { // the hidden file says that there was one
				f.Hint("only if there never was one, the first id makes it: firn next --store %s", phrase.ShellWord(url))
			}
			return nil, f
		}
	}
	if implicit && made != nil {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, ui.Failed("no --store given, and the directory of this user's default file cannot be made: %w", err).
				Hint("let this user enter and write that directory: another file makes the same ids")
		}
	}
	s, err := open.URL(ctx, url)
	if err != nil {
		return nil, err
	}
	if file, ok := s.Store.(*sqlite.Store); ok && file.Created() && made != nil {
		made(path, implicit)
	}
	return s, nil
}

// sayMade tells a person of a file that was made: ids are unique among the programs
// that use it, and a path mistyped is a store of its own.
func sayMade(errs io.Writer) onMade {
	return func(path string, implicit bool) {
		if implicit {
			fmt.Fprintf(errs, "created %s, the file of user %s: ids are unique among your programs on this host that name no other store\n", path, userName())
		} else {
			fmt.Fprintf(errs, "created %s: ids are unique among your programs that use this file\n", path)
		}
		if text := madeInContainer(path); text != "" {
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

// madeInContainer says that a file which was made is seen by one container only, or is "".
func madeInContainer(path string) string {
	if f, err := sqlite.Inspect(path); err != nil || f.FileSystem != "overlay" {
		return ""
	}
	return path + " is on overlay, as the files of a container are: it ends with the container, and each container has its own file and makes the same ids; " +
		"name one store for all containers, as " + serverStore
}

// badStore says what is wrong with the URL of a store, and whether a flag or a variable
// says it.
func badStore(from string, err error) error {
	return ui.Bad("%s: %s", from, ui.WithoutPackage(err.Error())).Hint("how a store is written: docs/stores.md; every process has to name the same one")
}

// implicitStore returns the path of the store that is used where none is named:
// the default file of this user, which programs open by sqlite.OpenDefault.
func implicitStore() (string, error) {
	path, err := sqlite.DefaultPath()
	var none *sqlite.NoDefaultError
	switch {
	case errors.As(err, &none) && none.Container != "":
		return "", ui.Failed("no --store given, and this looks like a container (%s): each container would have a file of its own, and make the same ids", none.Container).
			Hint("one store for all containers: --store %s, or another server", serverStore).
			Hint("only if all processes that make these ids are on this host, in containers that mount one directory of the host as /ids: --store sqlite:/ids/ids.db")
	case err != nil:
		return "", ui.Failed("no --store given, and this user has no home directory").Hint(nameStore)
	}
	return path, nil
}
