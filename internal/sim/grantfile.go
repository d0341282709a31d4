package sim

import (
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
)

// A grantFile is what a process leaves for the one that is started in its place,
// by the rules of package lease.
type grantFile struct {
	inode int // a copy has another
	slot
	unsynced []slot // what the disk may have instead after the system has crashed
}

// A slot is what is in a grant file.
type slot struct {
	saved term.Saved
	mark  firn.Tick
	base  firn.Tick // of the grant, for a mutant
	of    string    // owner of the grant that it has
	use   bool
	host  *host // that wrote it,
	boots int   // in which of its boots,
	inode int   // to which file
}

func newGrantFile(w *world) *grantFile {
	w.files++
	return &grantFile{inode: w.files}
}

func (f *grantFile) write(s slot) {
	if f.unsynced = append(f.unsynced, f.slot); len(f.unsynced) > 4 {
		f.unsynced = f.unsynced[1:]
	}
	f.slot = s
}

func (f *grantFile) void() { f.write(slot{}) }

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

// adopt returns the grant to go on with.
func (f *grantFile) adopt(h *holder) (v term.Saved, mark firn.Tick, ok bool) {
	r, m := &h.rules, h.w.mutant
	ok = f.use && !f.saved.Lossy && f.saved.Since <= h.host.boot() &&
		!(r.Choice == term.Insist && f.saved.Worker != r.Worker) &&
		r.Delay(f.mark, h.now().Wall) <= r.Wait
	switch {
	case (f.host != h.host || f.boots != h.host.boots) && !m.anyBoot,
		f.slot.inode != f.inode && !m.anyCopy:
		return v, 0, false
	case m.fromBase:
		return f.saved, f.base, ok
	}
	return f.saved, f.mark, ok
}

// marked raises the mark, and returns the tick up to which may be issued.
func (f *grantFile) marked(h *holder, g firn.Grant) firn.Tick {
	const ahead = time.Second
	saved, _ := h.s.Saved()
	mark := f.mark
	if f.of != saved.Record.Owner {
		mark = g.Base
	}
	now, l := h.now().Wall, h.rules.Layout
	if due := min(l.Tick(now.Add(ahead/2)), g.Horizon); f.of == saved.Record.Owner && mark >= due {
		return f.mark
	}
	f.write(slot{
		saved: saved, of: saved.Record.Owner, use: true, mark: max(min(l.Tick(now.Add(ahead)), g.Horizon), mark), base: g.Base,
		host: h.host, boots: h.host.boots, inode: f.inode,
	})
	if h.w.mutant.lateMark {
		return g.Horizon
	}
	return f.mark
}
