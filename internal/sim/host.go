package sim

import "time"

// A host has the clocks that its processes read: a wall clock that may step,
// drift and stand still, and a boot clock that does none of that. A reboot ends
// its processes, and begins another boot.
type host struct {
	w       *world
	id      int
	offset  time.Duration // of the wall clock from true time, at since
	drift   float64       // what it gains, as a part of the time since
	since   time.Duration
	frozen  bool
	ago     time.Duration // boot clock when the schedule begins
	stretch float64       // what the boot clock gains
	boots   int           // which boot this is
}

func newHost(w *world) *host {
	h := &host{w: w, id: len(w.hosts), ago: w.upTo(1000 * time.Hour)}
	switch {
	case w.honest():
		h.offset = w.withinSkew()
	case !w.faults.clocks:
		h.offset = w.upTo(20*time.Millisecond) - 10*time.Millisecond
	default:
		h.offset = w.anyOffset()
		h.stretch = (w.rng.Float64() - 0.5) * 4e-4
	}
	return h
}

// honest reports whether something rests on a bound of the clocks' error: on a
// store that forgets, where it is repaired, or founded anew, by other clocks than its
// own, and where other programs issue.
func (w *world) honest() bool {
	return w.held || w.kind.lossy() || (w.faults.restore || w.faults.remove || w.faults.drop || w.faults.unpool) && w.kind != clocked
}

// withinSkew draws an error that a clock may have where uniqueness rests on a
// bound: often the most.
func (w *world) withinSkew() time.Duration {
	s := w.rules.Skew
	if w.held { // it is between any two of them
		s /= 2
	}
	return pick(w.rng, -s, s, 0, w.upTo(2*s)-s)
}

// storeSkew is that of a store's clock, mostly such that no process is refused.
func (w *world) storeSkew() time.Duration {
	if w.held {
		return w.withinSkew()
	}
	return pick(w.rng, w.rules.Skew, w.rules.Skew, w.rules.Skew, w.withinSkew())
}

// anyOffset draws an error that a clock may have where nothing rests on it.
func (w *world) anyOffset() time.Duration {
	d := pick(w.rng, 0, 10*time.Millisecond, time.Second, w.rules.Skew, 3*w.rules.Skew, time.Hour)
	if w.chance(0.5) {
		d = -d
	}
	return d + w.upTo(time.Millisecond)
}

func (h *host) wall() time.Time {
	return h.w.origin.Add(h.reading())
}

func (h *host) reading() time.Duration {
	d := h.w.now - h.since
	if h.frozen {
		return h.since + h.offset
	}
	return h.since + h.offset + d + time.Duration(float64(d)*h.drift)
}

// set makes the wall clock differ from true time by offset, and drift from now on.
func (h *host) set(offset time.Duration, drift float64, frozen bool) {
	h.offset, h.drift, h.frozen, h.since = offset, drift, frozen, h.w.now
}

// step draws what happens to a wall clock.
func (h *host) step() {
	w := h.w
	now := h.reading() - w.now
	switch {
	case w.honest():
		h.set(w.withinSkew(), 0, false)
	case w.chance(0.2):
		h.set(now, 0, true)
	case w.chance(0.2):
		h.set(now, (w.rng.Float64()-0.5)*0.02, false)
	case w.chance(0.3):
		h.set(w.anyOffset(), 0, false)
	default:
		h.set(now+w.anyOffset(), 0, false)
	}
	w.logf("a clock is off by %s, drift %g, frozen %v", h.offset, h.drift, h.frozen)
}

func (h *host) boot() time.Duration { return h.bootAt(h.w.now) }

func (h *host) bootAt(t time.Duration) time.Duration {
	return h.ago + t + time.Duration(float64(t)*h.stretch)
}

// when is the first instant at which the boot clock says boot.
func (h *host) when(boot time.Duration) time.Duration {
	t := time.Duration(float64(boot-h.ago) / (1 + h.stretch))
	for h.bootAt(t) < boot {
		t += time.Microsecond
	}
	return t
}

// reboot ends all that runs on the host. Mostly another boot begins, and what was not on the disk
// yet may be lost. Else it is a container that begins, in the same boot, with a boot clock of its own.
func (h *host) reboot() {
	w, contained := h.w, h.w.chance(0.2)
	w.logf("a host is started again, contained: %t", contained)
	for _, p := range w.procs {
		if p.host != h {
			continue
		}
		if p.holder != nil && p.holder.file != nil && !contained {
			p.holder.file.crash()
		}
		if p.alive {
			w.restart(p, p.kill)
		}
	}
	ago := h.ago
	h.ago = time.Second - time.Duration(float64(w.now)*(1+h.stretch))
	if contained {
		h.ago += w.upTo(ago - h.ago)
	} else {
		h.boots++
	}
	if w.chance(0.5) && w.faults.clocks {
		h.step()
	}
}
