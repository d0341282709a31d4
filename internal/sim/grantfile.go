package sim

import (
	"github.com/firn-id/firn"
	driver "github.com/firn-id/firn/internal/holder"
)

// A grantFile is what a process leaves for the one that is started in its place.
type grantFile struct {
	inode int // a copy has another
	slot
	unsynced []slot // what the disk may have instead after the system has crashed
}

// A slot is what is in a grant file.
type slot struct {
	driver.Slot
	base  firn.Tick // of the grant, for a mutant
	use   bool
	host  *host // that wrote it,
	boots int   // in which of its boots,
	inode int   // to which file
}

func newGrantFile(w *world) *grantFile {
	w.files++
	return &grantFile{inode: w.files}
}

func (f *grantFile) write(h *holder, s driver.Slot) {
	if f.unsynced = append(f.unsynced, f.slot); len(f.unsynced) > 4 {
		f.unsynced = f.unsynced[1:]
	}
	f.slot = slot{Slot: s, base: h.p.Term.Base, use: !s.Void, host: h.host, boots: h.host.boots, inode: f.inode}
}

// crash loses some of what was not on the disk: a mark is not waited for so long.
func (f *grantFile) crash(w *world) {
	if n := len(f.unsynced); n > 0 && w.chance(0.7) {
		f.slot = f.unsynced[w.rng.IntN(n)]
	}
	f.unsynced = nil
}

// copyOf makes the file a copy of another, as that is now.
func (f *grantFile) copyOf(g *grantFile) {
	f.slot, f.unsynced = g.slot, nil
}

// read returns what is there to go on with.
func (f *grantFile) read(h *holder) (s driver.Slot, ok bool) {
	s, m := f.Slot, h.w.mutant
	if m.fromBase {
		s.Mark = f.base
	}
	rebooted := f.host != h.host || f.boots != h.host.boots
	copied := f.slot.inode != f.inode
	return s, f.use && (!rebooted || m.anyBoot) && (!copied || m.anyCopy)
}
