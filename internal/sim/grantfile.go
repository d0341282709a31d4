package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/firn-id/firn/internal/grantfile"
	driver "github.com/firn-id/firn/internal/holder"
)

// A grantFile is what a process leaves for the one that is started in its place, in the format that
// package lease writes, on a disk that fails.
type grantFile struct {
	w     *world
	inode uint64 // a copy has another one
	content

	unsynced []content     // what the disk may have instead after the system has crashed
	full     time.Duration // it cannot be written before; it is as it was
	torn     time.Duration // part of a write is carried out, and it fails, before
	unread   time.Duration // it cannot be read before
}

// A content is what is in a grant file.
type content struct {
	data  []byte // never changed in place
	inode uint64 // of the file that it was written to
}

func newGrantFile(w *world) *grantFile {
	w.files++
	return &grantFile{w: w, inode: w.files}
}

var (
	errFull = errors.New("no space left on device")
	errDisk = errors.New("input/output error")
)

// WriteAt writes the whole of the file, or fails.
func (f *grantFile) WriteAt(b []byte, _ int64) (int, error) {
	if f.full > f.w.now {
		return 0, errFull
	}
	if f.unsynced = append(f.unsynced, f.content); len(f.unsynced) > 4 {
		f.unsynced = f.unsynced[1:]
	}
	was := f.data
	f.data = append([]byte(nil), bytes.TrimRight(b, "\x00")...)
	if f.torn <= f.w.now {
		f.content.inode = f.inode
		return len(b), nil
	}
	n := f.w.rng.IntN(len(f.data))
	f.data = f.data[:n]
	if n < len(was) {
		f.data = append(f.data, was[n:]...)
	}
	return n, errDisk
}

func (f *grantFile) ReadAt(b []byte, _ int64) (int, error) {
	if f.unread > f.w.now {
		return 0, errDisk
	}
	return copy(b, f.data), io.EOF
}

// place is where the file is for a process on a host, and owner whose grants it has.
func (f *grantFile) place(h *host) grantfile.Place {
	return grantfile.Place{Boot: fmt.Sprint(h.id, ".", h.boots), Inode: f.inode}
}

func (h *holder) owner() grantfile.Owner {
	return grantfile.Owner{Pool: h.pool.name, Layout: h.rules.Layout.String()}
}

// left returns what the process before this one left, if its grant can be continued.
func (h *holder) left() (left driver.Handover, ok bool) {
	f := h.file
	if f == nil {
		return left, false
	}
	left, _, err := grantfile.Read(f, f.place(h.host), h.owner())
	return left, err == nil
}

// Mark leaves a handover there.
func (h *holder) Mark(left driver.Handover) error {
	return grantfile.Write(h.file, h.file.place(h.host), h.owner(), left)
}

// crash loses some of what was not on the disk: a mark is not waited for so long.
func (f *grantFile) crash() {
	if n := len(f.unsynced); n > 0 && f.w.chance(0.7) {
		f.content = f.unsynced[f.w.rng.IntN(n)]
	}
	f.unsynced = nil
}

// copyOf makes the file a copy of another, as that is now.
func (f *grantFile) copyOf(g *grantFile) {
	f.content, f.unsynced = g.content, nil
}

// spoil draws what happens to the disk that has the file.
func (f *grantFile) spoil() {
	w := f.w
	until := w.now + w.span()
	switch w.rng.IntN(4) {
	case 0:
		w.total.Faults[filled]++
		f.full = until
		w.logf("grant file %d cannot be written for %s", f.inode, until-w.now)
		return
	case 1:
		f.torn = until
		w.logf("writes of grant file %d are torn for %s", f.inode, until-w.now)
	case 2:
		f.unread = until
		w.logf("grant file %d cannot be read for %s", f.inode, until-w.now)
	default:
		if len(f.data) == 0 {
			return
		}
		f.data = append([]byte(nil), f.data...)
		at := w.rng.IntN(len(f.data))
		if mark := []byte(`"mark":`); w.chance(0.5) && bytes.Contains(f.data, mark) { // where it hurts
			at = min(bytes.Index(f.data, mark)+len(mark)+w.rng.IntN(10), len(f.data)-1)
		}
		f.data[at] ^= 1 << w.rng.IntN(8)
		w.logf("a bit of grant file %d is another", f.inode)
	}
	w.total.Faults[spoiled]++
}
