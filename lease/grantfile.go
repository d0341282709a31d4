package lease

import (
	"errors"
	"fmt"
	"os"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/grantfile"
	"github.com/firn-id/firn/internal/holder"
	"github.com/firn-id/firn/store"
)

var errLocked = errors.New("another process uses it")

// A GrantFileError says that a grant file cannot be used. Name another file, or correct what
// Err says: another process has the file, it cannot be written, or it is of another pool.
type GrantFileError struct {
	Path string
	Err  error
}

func (e *GrantFileError) Error() string {
	if diskFull(e.Err) {
		return fmt.Sprintf("lease: grant file %s: its disk is full (%v); free some space there: ids continue when the file can be written again", e.Path, e.Err)
	}
	return fmt.Sprintf("lease: grant file %s: %v", e.Path, e.Err)
}

func (e *GrantFileError) Unwrap() error { return e.Err }

// A grantFile holds the grant of one lane and a mark in it: nothing above the
// mark is issued before the mark is written. What is written is there for
// whoever comes after a SIGKILL, since the file is void after a reboot; so it
// need not reach the disk.
type grantFile struct {
	path string
	file *os.File // locked for life
	at   grantfile.Place
}

// openGrantFile locks the file of a lane, for life: the file itself, by whatever name or
// mount it is reached, and not one beside it, which anybody may remove.
func openGrantFile(path string) (g *grantFile, err error) {
	defer func() {
		if err != nil {
			err = &GrantFileError{Path: path, Err: err}
		}
	}()
	file, err := lockFile(path)
	if err != nil {
		return nil, err
	}
	g = &grantFile{path: path, file: file, at: grantfile.Place{Boot: bootID()}}
	if g.at.Device, g.at.Inode, err = inode(file); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *grantFile) close() { g.file.Close() }

// owner is whose grants the file has.
func (o *Options) owner() grantfile.Owner {
	of := grantfile.Owner{Pool: o.Pool, Shard: o.Shard}
	if o.Layout.IsValid() {
		of.Layout = o.Layout.String()
	}
	return of
}

// read returns what a process before this one left and the layout of its ids, or why there is
// nothing to continue.
func (g *grantFile) read(o *Options) (holder.Handover, string, error) {
	return grantfile.Read(g.file, g.at, o.owner())
}

// write leaves a handover in the file.
func (g *grantFile) write(o *Options, left holder.Handover) error {
	if err := grantfile.Write(g.file, g.at, o.owner(), left); err != nil {
		return &GrantFileError{g.path, err}
	}
	return nil
}

// ofAnotherPool is the error of a term that ended because the store's pool is not the one
// of the grant file: whoever starts again goes on with the file, and ends likewise, until it
// is removed.
func (g *grantFile) ofAnotherPool(err error) error {
	return &GrantFileError{g.path, fmt.Errorf("it is of another pool; if the store was restored, remove the file and start again: %w", err)}
}

// grantFiles are those of a lease's lanes; none where Options.GrantFile is empty.
type grantFiles []*grantFile

func (o *Options) openFiles() (grantFiles, error) {
	if o.GrantFile == "" {
		return nil, nil
	}
	var all grantFiles
	for i := range o.Lanes {
		path := o.GrantFile
		if i > 0 {
			path = fmt.Sprintf("%s.%d", o.GrantFile, i)
		}
		g, err := openGrantFile(path)
		if err != nil {
			all.close()
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

func (all grantFiles) of(lane int) *grantFile {
	if all == nil {
		return nil
	}
	return all[lane]
}

func (all grantFiles) close() {
	for _, g := range all {
		g.close()
	}
}

// saved returns what the store promised the process before this one, and the pool's
// layout, if every lane can go on with that one's grant.
func (all grantFiles) saved(o *Options) (p store.Durability, l firn.Layout, ok bool) {
	for _, g := range all {
		left, layout, err := g.read(o)
		if err == nil {
			l, err = firn.ParseLayout(layout)
		}
		if err != nil {
			return p, l, false
		}
		p = left.Durability
	}
	return p, l, len(all) > 0
}
