package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

// addStore adds --store.
func addStore(cmd *cobra.Command) {
	cmd.Flags().String("store", "", "where records are kept: sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE or another of docs/stores.md (a file in your state directory)")
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
	whole, err := filepath.Abs(path)
	if err != nil {
		return failed("--store: %w", err)
	}
	url := "sqlite:" + whole
	if from := origin(f); from != "--store" {
		return bad("%s: %q is a relative path, which is another file in each working directory", from, f.Value).
			hint("%s=%s", from, shellWord(url))
	}
	return f.Value.Set(url)
}

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
	path, embedded := sqliteFile(url)
	if embedded && made == nil {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, failed("%w %s", errNoStore, url).hint("if there never was one, to create it with its first id: firn next --store %s", shellWord(url))
		}
	}
	if implicit && made != nil {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, failed("no --store given, and the state directory cannot be made: %w", err).hint("--store sqlite:PATH")
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
// that use it, and a path mistyped is a store of its own. Of the implicit one only
// somebody who looks at a terminal is told; a script has not chosen it.
func sayMade(errs io.Writer) onMade {
	return func(path string, implicit bool) {
		if implicit && !isTerminal(errs) {
			return
		}
		fmt.Fprintf(errs, "created %s: ids are unique among your programs that use this file\n", path)
	}
}

// badStore says what is wrong with the URL of a store, and whether a flag or a variable
// says it.
func badStore(from string, err error) error {
	form := "--store sqlite:ids.db"
	if from != "--store" {
		form = from + "=sqlite:/var/lib/app/ids.db"
	}
	return bad("%s: %s", from, withoutPackage(err.Error())).hint("%s, or postgres://USER:PASSWORD@HOST/DATABASE; docs/stores.md has them all", form)
}

// implicitStore returns the path of the store that is used where none is named:
// the default file of this user, which programs open by sqlite.OpenDefault.
func implicitStore() (string, error) {
	path, err := sqlite.DefaultPath()
	var none *sqlite.NoDefaultError
	switch {
	case errors.As(err, &none) && none.Container != "":
		return "", failed("no --store given, and this looks like a container (%s): its state directory would be "+
			"empty for every new one, and two would take the same worker", none.Container).
			hint("--store sqlite:%s to insist", none.Path)
	case err != nil:
		return "", failed("no --store given, and this user has no home directory").hint("--store sqlite:PATH")
	}
	return path, nil
}
