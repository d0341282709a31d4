package sim

import (
	"fmt"
	"time"
)

// A process is a program on a host. It holds a worker, draws numbers, or both;
// and it is stopped, paused, killed and started again.
type process struct {
	w      *world
	id     int
	host   *host
	name   string
	async  bool    // a shifting store does not wait until what it writes is safe
	store  *memory // that it has open
	holder *holder // nil: it wants no ids
	drawer *drawer // nil: it wants no numbers
	clerk  *clerk  // nil: it wants no texts

	life     int // number of this run; what belongs to an earlier one is dropped
	alive    bool
	paused   bool
	backlog  []func()      // what came while it was paused
	apart    time.Duration // the store is out of its reach before
	denied   time.Duration // the store refuses what it asks before
	slept    time.Duration // Go's monotonic clock has stood still for so long
	wish     bool          // to be closed
	strays   bool          // when it is started it opens the copy of the store
	operates bool          // it is an operator
	again    bool          // and to be started once it is
}

func newProcess(w *world, id int, h *host) *process {
	p := &process{w: w, id: id, host: h, name: fmt.Sprintf("p%d", id)}
	if w.chance(0.2) {
		p.name = "twin"
	}
	p.async = w.kind == shifting && w.chance(0.15)
	if w.leases {
		p.holder = newHolder(p)
	}
	if w.series {
		p.drawer = newDrawer(p)
	}
	if w.documents {
		p.clerk = newClerk(p)
	}
	return p
}

// after does something later unless this run is over by then. A process that is
// paused does it when it goes on.
func (p *process) after(d time.Duration, do func()) {
	life := p.life
	p.w.after(d, func() { p.soon(life, do) })
}

func (p *process) soon(life int, do func()) {
	switch {
	case life != p.life:
	case p.paused:
		p.backlog = append(p.backlog, do)
	default:
		do()
	}
}

// boot starts the process, if it is not running.
func (p *process) boot() {
	if p.alive {
		p.again = p.wish
		return
	}
	p.life++
	p.alive, p.paused, p.backlog, p.slept, p.wish, p.again = true, false, nil, 0, false, false
	p.store = p.w.store
	if p.strays && p.w.copy != nil {
		p.store = p.w.copy
	}
	if p.w.trace != nil {
		p.w.logf("p%d starts at %s (true %s)", p.id, p.host.wall().Format("15:04:05.000"), p.w.instant().Format("15:04:05.000"))
	}
	life := p.life
	if p.holder != nil {
		p.holder.boot()
	}
	if p.drawer != nil && p.life == life && p.alive {
		p.drawer.boot()
	}
	if p.clerk != nil && p.life == life && p.alive {
		p.clerk.boot()
	}
}

// kill ends the process at once.
func (p *process) kill() {
	p.w.logf("p%d is killed", p.id)
	if p.holder != nil {
		p.holder.killed()
	}
	p.end()
}

// exit ends a process that has nothing more to do.
func (p *process) exit() {
	p.w.logf("p%d exits", p.id)
	again := p.again
	p.end()
	if again {
		p.w.after(0, p.boot)
	}
}

func (p *process) end() {
	p.life++
	p.alive, p.paused, p.backlog, p.again = false, false, nil, false
	if p.holder != nil {
		p.holder.over()
	}
	if p.drawer != nil {
		p.drawer.over()
	}
	if p.clerk != nil {
		p.clerk.over()
	}
}

// fails ends a process that cannot go on, and starts it again some time after.
func (p *process) fails() {
	p.failsUntil(0)
}

// failsByItself is fails of a program whose series ends it: not for want of a worker.
func (p *process) failsByItself() {
	if p.holder != nil {
		p.holder.gaveUp = nil
	}
	p.fails()
}

// failsUntil is fails of one that knows for how long it is of no use.
func (p *process) failsUntil(d time.Duration) {
	p.again = false
	p.exit()
	p.w.after(max(time.Second+p.w.around(2*time.Second), d), p.boot)
}

// pause stops the process for a while; suspend stops Go's monotonic clock too.
func (p *process) pause(d time.Duration, suspend bool) {
	if !p.alive || p.paused {
		return
	}
	p.w.logf("p%d is paused for %s", p.id, d)
	p.paused = true
	life, since := p.life, p.w.now
	p.w.after(d, func() {
		if life == p.life && p.paused {
			if suspend {
				p.slept += p.w.now - since
			}
			p.resume()
		}
	})
}

func (p *process) resume() {
	p.w.logf("p%d goes on", p.id)
	p.paused = false
	if p.holder != nil && p.holder.gen != nil { // before its keeper looks at the clock
		p.holder.gen.issue()
	}
	if p.drawer != nil && p.w.chance(0.5) {
		p.drawer.call()
	}
	backlog, life := p.backlog, p.life
	p.backlog = nil
	if p.w.chance(0.5) {
		p.w.rng.Shuffle(len(backlog), func(i, j int) { backlog[i], backlog[j] = backlog[j], backlog[i] })
	}
	for _, do := range backlog {
		p.soon(life, do)
	}
}

// close asks the process to stop.
func (p *process) close() {
	p.soon(p.life, func() {
		if !p.alive || p.wish {
			return
		}
		p.wish = true
		p.w.logf("p%d closes", p.id)
		life := p.life
		if p.holder != nil {
			p.holder.quit()
		}
		if p.drawer != nil && p.life == life {
			p.drawer.quit()
		}
		if p.clerk != nil && p.life == life {
			p.clerk.quit()
		}
		p.closed()
	})
}

// closed ends a process that closes once all of it is closed.
func (p *process) closed() {
	if p.alive && p.wish && (p.holder == nil || p.holder.done) && (p.drawer == nil || p.drawer.done) && (p.clerk == nil || p.clerk.done) {
		p.exit()
	}
}
