package dated

import (
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A drawer decides what a series may give out. [Series], which drives it, asks for numbers with
// begin, performs each action and answers it, until none is left; then there are
// numbers in hand, or an error. This file decides what to do next; read.go has what follows from
// what was read and heard, write.go what is written, sight.go which date it is, and hand.go
// the counts in hand.
//
// Why nothing repeats:
//
//  1. A count is granted by one compare-and-set that raises the counter of its
//     period. No two such writes that were carried out grant one count.
//  2. It is used only if that write was acknowledged, or if the record was read
//     back and bears the Version of that write. 1 and 2 are those of any counter: see
//     [block.Own].
//  3. There is a counter for each period text, of a template one for each name and period
//     text, and none is ever removed or made anew. The clock only chooses which one counts on.
//  4. Equal texts have equal period texts and equal counts: see the patterns of package
//     document.
//  5. A definition that is gone, has another id, or a counter that is below what
//     was acknowledged to this process, is a store that has forgotten: stop.
//  6. A definition names the store that it was made in. If the store that answers calls
//     itself by another name, it is a copy: stop. The two are compared whenever the
//     definition is read or the store says its durability.
//  7. On a lossy store, the instance is looked at after the write was
//     acknowledged and before it is used. Looked at before, an instance that
//     lacks the last writes could still carry out this one.

// An Instant is what a process's clocks say.
type Instant struct {
	Wall time.Time
	Mono time.Duration // since some fixed instant; never steps, but may stand still during a suspend
}

// Bounds of what is remembered of a store.
const (
	// The store's clock is read again after so long, or where the date may have
	// changed since.
	sightFor = time.Second
	// How far off it may be meanwhile, by the rates of two clocks.
	slop = 50 * time.Millisecond
	// The definition and the durability are read again after so long.
	trustFor = 30 * time.Second
	// How often a write whose outcome is unknown is tried again.
	attempts = 3
	// So many writes in a row are made without reading the counter before. More
	// would keep others out, who have to read it first: their writes would always
	// come after the next one of this process.
	blindWrites = 3
)

// A drawer is what a process knows of a series.
type drawer struct {
	Rules
	def        Definition
	durability store.Durability

	defAt   time.Duration // when they were asked for
	heardAt time.Duration
	suspect bool // both are to be read before anything else

	sent  Instant // the action under way
	sight sight

	known   held      // record of the current period, as last read or written
	own     block.Own // what its writes were granted since the last restoration
	before  block.Own // and before that
	hand    Grant     // granted, and not given out yet
	spare   []Grant   // the same, which calls that failed have left; they come after hand
	dropped int       // how often all that was granted before was given up
	proof   Grant     // acknowledged, and not in hand yet
	proven  bool      // the durability was heard since proof was acknowledged, or need not be

	// The draw under way.
	want      int64
	least     int64 // fewer are of no use to the call that has waited longest
	looked    bool  // the clock was read in it, and known is of the period that it gave
	reread    bool  // the definition was read in it
	tries     int
	conflicts int
	blind     int // writes in a row without reading the counter before
	err       error
	final     error // nothing is given out any more
}

// held is a counter, with its Version.
type held struct {
	period  string
	counter Counter
	version store.Version
	ok      bool // it is thought to be so
}

// A purpose is what an action is for, and so what its answer means.
type purpose uint8

const (
	toRest     purpose = iota // the draw is over: there are numbers in hand, or err says why not
	toDefine                  // get: whether the definition is what it was
	toRead                    // get: where the counter is, and what came of the write in doubt
	toGrant                   // put: grants counts
	toProve                   // ask: whether the store is still the one that granted
	toHandBack                // put: hands back what was not used
)

// An Action is the one thing to do next.
type Action struct {
	record.Request
	Pause time.Duration // wait for a random part of it first, so that those who contend come apart

	is    purpose
	grant Grant // of toGrant
}

// newDrawer returns a drawer of a series that was just read.
func newDrawer(r Rules, def Definition, p store.Durability, now Instant) drawer {
	return drawer{
		Rules: r, def: def, durability: p, defAt: now.Mono, heardAt: now.Mono,
		hand: none, proof: none,
	}
}

// begin starts a draw of so many counts. Where there is no room for least it grants none.
func (d *drawer) begin(now Instant, want, least int64) Action {
	d.restock()
	d.want, d.least = want, least
	d.looked, d.reread = false, false
	d.tries, d.conflicts, d.err = 0, 0, d.final
	return d.send(now)
}

// answer takes what came of the action and says what to do next.
func (d *drawer) answer(now Instant, do Action, a record.Answer) Action {
	var forgot *store.ForgotError
	switch {
	case errors.As(a.Err, &forgot):
		d.end(a.Err)
	case do.is == toGrant:
		d.written(now, do, a)
	case a.Err != nil:
		d.fail(a.Err)
	case do.is == toProve:
		d.heard(a.Durability)
	case do.is == toDefine:
		d.defined(a.Record)
	case do.is == toRead:
		d.found(now, a.Record)
	}
	return d.send(now)
}

// send decides, and remembers when.
func (d *drawer) send(now Instant) Action {
	do := d.decide(now)
	d.sent = now
	return do
}

// decide says what to do in the state there is.
func (d *drawer) decide(now Instant) Action {
	switch {
	case d.err != nil:
		return Action{}
	case d.suspect && !d.reread:
		return d.readDefinition(now)
	case d.suspect, d.proof.Left() > 0 && !d.proven:
		return d.askPromise(now)
	case d.proof.Left() > 0:
		if d.hand.Left() > 0 { // a call has left it meanwhile
			d.keep(d.hand)
		}
		d.hand, d.proof = d.proof, none
		return Action{}
	case now.Mono-d.defAt > trustFor:
		return d.readDefinition(now)
	case now.Mono-d.heardAt > trustFor:
		return d.askPromise(now)
	}
	period, sure := d.now(now)
	if d.looked {
		period, sure = d.known.period, true
	}
	if sure && !d.isPeriod(period) { // else the clock is read again
		d.fail(&Refusal{Why: WrongClock, Period: period})
		return Action{}
	}
	if d.hand.Left() > 0 && sure {
		if d.hand.Period == period {
			return Action{}
		}
		d.hand = none // a date that has passed
	}
	if d.blind >= blindWrites && !d.looked {
		d.known.ok = false
	}
	if !sure || !d.known.ok || d.known.period != period || d.own.InDoubt() {
		return Action{Request: record.Request{Op: record.Get, Key: d.Counter(period)}, Pause: d.pause(), is: toRead}
	}
	return d.take()
}

func (d *drawer) readDefinition(now Instant) Action {
	d.defAt = now.Mono
	return Action{Request: record.Request{Op: record.Get, Key: d.Definition()}, is: toDefine}
}

func (d *drawer) askPromise(now Instant) Action {
	d.heardAt = now.Mono
	return Action{Request: record.Request{Op: record.Ask}, is: toProve}
}

// pause is how long to wait before the counter is read again, at most.
func (d *drawer) pause() time.Duration {
	if d.conflicts == 0 {
		return 0
	}
	return time.Millisecond << min(d.conflicts, 5)
}

// forgot ends it all.
func (d *drawer) forgot(what string) {
	d.end(&store.ForgotError{Store: fmt.Sprintf("the store of series %q", d.Name), What: what})
}

// elsewhere ends it all if a definition was made in another store than the one that made
// the last answer about durability. It reports whether it has.
func (d *drawer) elsewhere(def Definition) bool {
	err := CheckOther(d.Name, d.durability.Identity, def.Store)
	if err != nil {
		d.end(err)
	}
	return err != nil
}

// end gives up all that is in hand, and nothing is given out any more.
func (d *drawer) end(err error) {
	d.drop()
	d.final, d.err = err, err
}

// distrust ends the draw, and the next begins with reading everything again.
func (d *drawer) distrust(err error) {
	d.suspect = true
	d.fail(err)
}

// fail ends the draw.
func (d *drawer) fail(err error) {
	d.err = err
	d.proof = none // its durability could not be had: it is never used
}
