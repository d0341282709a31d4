package lease

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/firn-id/firn"
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
	text := fmt.Sprintf("lease: grant file %s: %v", e.Path, e.Err)
	if diskFull(e.Err) {
		text += "; free some space there: ids continue when the file can be written again"
	}
	return text
}

func (e *GrantFileError) Unwrap() error { return e.Err }

// A grantFile holds the grant of one lane and a mark in it: nothing above the
// mark is issued before the mark is written. What is written is there for
// whoever comes after a SIGKILL, since the file is void after a reboot; so it
// need not reach the disk.
//
// The file has two slots. A write goes over the older one, so that the newer one is whole
// at any instant, also after a write that failed.
type grantFile struct {
	path          string
	file          *os.File // locked for life
	boot          string
	device, inode uint64
	serial        uint64
}

// A slot is what one write leaves in the file.
type slot struct {
	V      int    `json:"v"`
	Serial uint64 `json:"serial"` // the slot with the higher one counts
	Boot   string `json:"boot"`   // run of the system
	Device uint64 `json:"device"` // of this file, to tell it from a copy
	Inode  uint64 `json:"inode"`
	Pool   string `json:"pool"`
	Layout string `json:"layout"`
	Shard  int64  `json:"shard"`
	holder.Slot
}

// slotSize is far above what a slot needs: names are bounded by the store.
const slotSize = 4096

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
	g = &grantFile{path: path, file: file, boot: bootID()}
	if g.device, g.inode, err = inode(file); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *grantFile) close() { g.file.Close() }

// read returns the grant that a process before this one left, or why there is
// none to go on with.
func (g *grantFile) read(o *Options) (slot, error) {
	best, found := slot{}, false
	for i := range int64(2) {
		s, ok := g.readSlot(i)
		if ok && (!found || s.Serial > best.Serial) {
			best, found = s, true
		}
	}
	g.serial = best.Serial
	switch {
	case !found:
		return best, errors.New("it is new")
	case best.V != 1:
		return best, fmt.Errorf("it has format %d, written by another firn", best.V)
	case best.Void:
		return best, errors.New("its worker was given back")
	case g.boot == "":
		return best, errors.New("this system does not say when it was started")
	case best.Boot != g.boot:
		return best, errors.New("the system was started again since")
	case best.Device != g.device || best.Inode != g.inode:
		return best, errors.New("it is a copy")
	case best.Pool != o.Pool || o.Layout.IsValid() && best.Layout != o.Layout.String() || best.Shard != o.Shard:
		return best, fmt.Errorf("it is of pool %q, layout %s, shard %d", best.Pool, best.Layout, best.Shard)
	}
	return best, nil
}

func (g *grantFile) readSlot(i int64) (s slot, ok bool) {
	b := make([]byte, slotSize)
	if n, err := g.file.ReadAt(b, i*slotSize); n != slotSize && !errors.Is(err, io.EOF) {
		return s, false
	}
	sum, text, ok := bytes.Cut(bytes.TrimRight(b, "\x00\n"), []byte{' '})
	if !ok || string(sum) != checksum(text) || json.Unmarshal(text, &s) != nil {
		return s, false
	}
	return s, true
}

// write leaves a slot in the file.
func (g *grantFile) write(s slot) error {
	serial := g.serial + 1 // a write that fails is tried again in the same slot
	s.V, s.Serial, s.Boot, s.Device, s.Inode = 1, serial, g.boot, g.device, g.inode
	text, err := json.Marshal(s)
	if err != nil {
		return &GrantFileError{g.path, err}
	}
	b := make([]byte, slotSize)
	if n := copy(b, checksum(text)+" "+string(text)+"\n"); n == slotSize {
		return &GrantFileError{g.path, fmt.Errorf("a grant of %d bytes does not fit", len(text))}
	}
	if _, err := g.file.WriteAt(b, int64(serial%2)*slotSize); err != nil {
		return &GrantFileError{g.path, err}
	}
	g.serial = serial
	return nil
}

func checksum(text []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
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
		s, err := g.read(o)
		if err == nil {
			l, err = firn.ParseLayout(s.Layout)
		}
		if err != nil {
			return p, l, false
		}
		p = s.Durability
	}
	return p, l, len(all) > 0
}
