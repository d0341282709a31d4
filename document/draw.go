package document

import (
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// This file decides what a series may give out. It is pure: no clock, no store,
// no goroutine. The driver, or a simulator, asks for numbers with begin, performs
// each action and answers it, until the action is to stop; then there are numbers
// in hand, or an error.
//
// Why nothing repeats:
//
//  1. A count is granted by one compare-and-set that raises the counter of its
//     period. No two such writes that were carried out grant one count.
//  2. It is used only if that write was acknowledged, or if the record was read
//     back and bears the Version of that write.
//  3. There is a counter for each period text, and none is ever removed or made
//     anew. The clock only chooses which one counts on.
//  4. Equal texts have equal period texts and equal counts; see [Pattern].
//  5. A definition that is gone, has another id, or a counter that is below what
//     was acknowledged to this process, is a store that has forgotten: stop.
//  6. A definition names the store that it was made in. If the store that answers calls
//     itself by another name, it is a copy: stop. The two are compared whenever the
//     definition is read or the promise heard.
//  7. On a store that can forget, the instance is looked at after the write was
//     acknowledged and before it is used. Looked at before, an instance that
//     lacks the last writes could still carry out this one.

// An instant is what a process's clocks say.
type instant struct {
	wall time.Time
	mono time.Duration // since some fixed instant; never steps, but may stand still during a suspend
}

// Bounds of what is remembered of a store.
const (
	// The store's clock is read again after so long, or where the date may have
	// changed since.
	sightFor = time.Second
	// How far off it may be meanwhile, by the rates of two clocks.
	slop = 50 * time.Millisecond
	// The definition and the promise are read again after so long.
	trustFor = 30 * time.Second
	// How often a write whose outcome is unknown is tried again.
	attempts = 3
	// So many writes in a row are made without reading the counter before. More
	// would keep others out, who have to read it first: their writes would always
	// come after the next one of this process.
	blindWrites = 3
)

// rules are what a process is told about a series.
type rules struct {
	name    string
	pattern *Pattern
	zone    *time.Location
	step    int64 // counts granted by one write, at least
	lossy   bool  // go on on a store that can forget
}

// A drawer is what a process knows of a series.
type drawer struct {
	rules
	def     definition
	promise store.Durability

	defAt     time.Duration // when they were asked for
	promiseAt time.Duration
	suspect   bool // both are to be read before anything else

	sent  instant // the action under way
	sight sight

	known   held    // record of the current period, as last read or written
	top     grant   // last one acknowledged to this process
	low     grant   // the top of before the last restoration
	hand    grant   // granted, and not given out yet
	spare   []grant // the same, which calls that failed have left; they come after hand
	dropped int     // how often all that was granted before was given up
	proof   grant   // acknowledged, and not in hand yet
	doubt   grant   // a write whose outcome is unknown
	proven  bool    // the promise was heard since proof was acknowledged, or need not be

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

// A sight is the store's clock as it was last read.
type sight struct {
	store time.Time // zero: the store has no clock, or it was not read yet
	sent  instant   // before
	at    instant   // after
	none  bool      // it has no clock: the process's own gives the date
}

// held is a counter, with its Version.
type held struct {
	period  string
	counter counter
	version store.Version
	ok      bool // it is thought to be so
}

// A grant is the counts from next to last of a period.
type grant struct {
	period     string
	next, last int64
	version    store.Version // of the write; "" of what cannot be handed back to the store
	dropped    int           // the drawer's, when it was dealt
}

func (g grant) left() int64 { return g.last - g.next + 1 }

var none = grant{next: 1}

// An op is a kind of action.
type op uint8

const (
	stop op = iota // the draw is over: there are numbers in hand, or err says why not
	get
	put
	ask // for the promise
)

// An action is the one thing to do next.
type action struct {
	op        op
	key       string
	value     []byte
	cond      store.Condition
	conflicts int // in a row: so long it waits before
	grant     grant
}

// An answer is what came of an action.
type answer struct {
	rec     store.Record // of get and put
	promise store.Durability
	err     error
}

// newDrawer returns a drawer of a series that was just read.
func newDrawer(r rules, def definition, p store.Durability, now instant) *drawer {
	return &drawer{
		rules: r, def: def, promise: p, defAt: now.mono, promiseAt: now.mono,
		top: none, low: none, hand: none, proof: none, doubt: none,
	}
}

// begin starts a draw of so many counts. Where there is no room for least it grants none.
func (d *drawer) begin(now instant, want, least int64) action {
	d.restock()
	d.want, d.least = want, least
	d.looked, d.reread = false, false
	d.tries, d.conflicts, d.err = 0, 0, d.final
	return d.send(now)
}

// answer takes what came of the action and says what to do next.
func (d *drawer) answer(now instant, do action, a answer) action {
	var forgot *store.ForgotError
	switch {
	case errors.As(a.err, &forgot):
		d.end(a.err)
	case do.op == put:
		d.written(now, do, a)
	case a.err != nil:
		d.fail(a.err)
	case do.op == ask:
		d.promised(a.promise)
	case do.key == keySeries(d.name):
		d.defined(a.rec)
	default:
		d.found(now, a.rec)
	}
	return d.send(now)
}

// send decides, and remembers when.
func (d *drawer) send(now instant) action {
	do := d.decide(now)
	d.sent = now
	return do
}

// decide says what to do in the state there is.
func (d *drawer) decide(now instant) action {
	switch {
	case d.err != nil:
		return action{}
	case d.suspect && !d.reread:
		return d.readDefinition(now)
	case d.suspect, d.proof.left() > 0 && !d.proven:
		return d.askPromise(now)
	case d.proof.left() > 0:
		if d.hand.left() > 0 { // a call has left it meanwhile
			d.keep(d.hand)
		}
		d.hand, d.proof = d.proof, none
		return action{}
	case now.mono-d.defAt > trustFor:
		return d.readDefinition(now)
	case now.mono-d.promiseAt > trustFor:
		return d.askPromise(now)
	}
	period, sure := d.now(now)
	if d.looked {
		period, sure = d.known.period, true
	}
	if sure && !d.isPeriod(period) { // else the clock is read again
		d.fail(&ClockError{d.name, period})
		return action{}
	}
	if d.hand.left() > 0 && sure {
		if d.hand.period == period {
			return action{}
		}
		d.hand = none // a date that has passed
	}
	if d.blind >= blindWrites && !d.looked {
		d.known.ok = false
	}
	if !sure || !d.known.ok || d.known.period != period || d.doubt.left() > 0 {
		return action{op: get, key: keyCounter(d.name, period), conflicts: d.conflicts}
	}
	return d.take()
}

func (d *drawer) readDefinition(now instant) action {
	d.defAt = now.mono
	return action{op: get, key: keySeries(d.name)}
}

func (d *drawer) askPromise(now instant) action {
	d.promiseAt = now.mono
	return action{op: ask}
}

// take is the write that grants what is wanted.
func (d *drawer) take() action {
	c := d.def.raisedTo(d.known.counter, d.known.version != "", d.known.period)
	if d.low.left() > 0 && d.low.period == d.known.period {
		c.Count = max(c.Count, d.low.last)
	}
	if left := max(d.pattern.max-c.Count, 0); left < max(d.least, 1) {
		d.fail(&EndError{Series: d.name, Pattern: d.pattern.text, Period: d.known.period, Max: d.pattern.max, Left: left})
		return action{}
	}
	d.blind++
	g := grant{period: d.known.period, next: c.Count + 1}
	g.last = c.Count + min(max(d.want, d.step), d.pattern.max-c.Count)
	c = c.counted(g.last)
	return action{
		op: put, key: keyCounter(d.name, g.period), value: record.Encode(c),
		cond: store.Condition{Version: d.known.version}, grant: g,
	}
}

// written takes what came of a write.
func (d *drawer) written(now instant, do action, a answer) {
	g := do.grant
	g.version = a.rec.Version
	switch {
	case errors.Is(a.err, store.ErrConflict):
		d.known.ok, d.looked = false, false
		d.conflicts++
		return
	case a.err != nil:
		// It may have been carried out, or may yet be: what the record says next
		// tells, if it bears this Version.
		d.known.ok, d.looked = false, false
		if g.version != "" {
			d.doubt = g
		}
		if d.tries++; d.tries == attempts || g.version == "" {
			d.fail(a.err)
		}
		return
	}
	d.conflicts = 0
	c, err := readCounter(store.Record{Key: do.key, Value: do.value, Version: a.rec.Version})
	if err != nil {
		d.fail(err)
		return
	}
	d.known = held{g.period, c, a.rec.Version, true}
	d.see(now, a.rec.Read)
	if written := a.rec.Written; !d.looked && !written.IsZero() && d.period(written) != g.period {
		// The store's clock was set meanwhile: another date. The count is lost.
		d.tries++
		d.top = g
		if d.tries == attempts {
			d.fail(&ClockError{d.name, d.period(written)})
		}
		return
	}
	d.granted(g)
}

// granted takes a grant that was acknowledged.
func (d *drawer) granted(g grant) {
	d.top, d.proof = g, g
	d.proven = d.promise.Durable
}

// found takes a counter that was read.
func (d *drawer) found(now instant, rec store.Record) {
	d.see(now, rec.Read)
	period := d.period(rec.Read)
	if d.sight.none {
		period = d.period(now.wall)
	}
	d.known.ok = false
	if rec.Key != keyCounter(d.name, period) {
		// It is another day than was thought. A clock that goes to and fro is
		// not followed for ever.
		if d.tries++; d.tries == 2*attempts {
			d.fail(&ClockError{d.name, period})
		}
		return
	}
	c, err := readCounter(rec)
	switch {
	case err != nil:
		d.fail(err)
		return
	case c.Raised > len(d.def.Raised):
		if d.reread {
			d.forgot(fmt.Sprintf("its counters were raised %d times, and its definition says %d", c.Raised, len(d.def.Raised)))
			return
		}
		d.suspect = true
		return
	case d.top.left() > 0 && d.top.period == period && (c.Count < d.top.last || c.Raised < len(d.def.Raised)):
		if d.reread {
			d.forgot(fmt.Sprintf("%s was counted to %d, and now it is %d", rec.Key, d.top.last, c.Count))
			return
		}
		d.suspect = true
		return
	}
	d.known, d.looked, d.blind = held{period, c, rec.Version, true}, true, 0
	doubt := d.doubt
	d.doubt = none
	if doubt.left() > 0 && doubt.period == period && doubt.version == rec.Version {
		d.granted(doubt)
	}
}

// defined takes the definition as it was read again.
func (d *drawer) defined(rec store.Record) {
	d.reread = true
	if rec.Version == "" {
		d.forgot("it is gone")
		return
	}
	def, err := record.Read[definition](rec)
	switch {
	case err != nil:
		d.fail(err)
	case def.ID != d.def.ID:
		d.forgot("it was begun anew")
	case len(def.Raised) < len(d.def.Raised):
		d.forgot("its definition is an older one")
	case d.elsewhere(def):
	default:
		if len(def.Raised) > len(d.def.Raised) {
			// What was granted before may have been forgotten, and given to others.
			d.low, d.top = d.top, none
			d.drop()
			d.doubt = none
		}
		d.def = def
	}
}

// promised takes the store's promise.
func (d *drawer) promised(p store.Durability) {
	d.promise = p
	switch {
	case d.elsewhere(d.def):
		return
	case p.Durable:
	case !d.lossy:
		d.distrust(&LossyError{d.name, p.Why})
		return
	case p.Instance != d.def.Instance && d.reread:
		d.drop()
		d.distrust(&InstanceError{d.name, p.Instance, d.def.Instance})
		return
	case p.Instance != d.def.Instance:
		d.suspect = true // it may have been accepted since
		return
	}
	d.suspect, d.proven = false, true
}

// forgot ends it all.
func (d *drawer) forgot(what string) {
	d.end(&store.ForgotError{Store: fmt.Sprintf("the store of series %q", d.name), What: what})
}

// elsewhere ends it all if a definition was made in another store than the one that made
// the last promise. It reports whether it has.
func (d *drawer) elsewhere(def definition) bool {
	err := checkOther(d.name, d.promise.Identity, def.Store)
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
	d.proof = none // its promise could not be had: it is never used
}

// see takes a reading of the store's clock.
func (d *drawer) see(now instant, read time.Time) {
	d.sight = sight{store: read, sent: d.sent, at: now, none: read.IsZero()}
}

// now returns the date of the store's clock, and whether that is sure: it was
// read a moment ago, and is not about to change.
func (d *drawer) now(now instant) (period string, sure bool) {
	s := &d.sight
	if d.pattern.date == nil {
		return "", true
	}
	if s.none {
		return d.period(now.wall), true
	}
	if s.store.IsZero() {
		return d.period(now.wall), false
	}
	age := now.mono - s.at.mono
	early, late := s.store.Add(age-slop), s.store.Add(now.mono-s.sent.mono+slop)
	period = d.period(s.store.Add(age))
	// Where the two clocks of this process disagree, it was suspended, or its
	// clock was set.
	asleep := now.wall.Sub(s.at.wall) - age
	sure = now.mono-s.sent.mono <= sightFor && asleep.Abs() <= slop && d.period(early) == period && d.period(late) == period
	return period, sure
}

// deal gives out n counts of those in hand, or as many as there are.
func (d *drawer) deal(n int64) grant {
	g := d.hand
	g.last = min(g.last, g.next+n-1)
	g.dropped = d.dropped
	d.hand.next += g.left()
	return g
}

// undeal takes back what was dealt to a call that has failed: nobody has seen it.
func (d *drawer) undeal(g grant) {
	switch {
	case g.left() <= 0 || g.dropped != d.dropped || d.final != nil:
	case g.version != "" && g.version == d.hand.version && g.last+1 == d.hand.next:
		d.hand.next = g.next
	default:
		d.keep(g)
	}
}

// keep puts counts aside that were granted. Others have counted on since, so they cannot
// be handed back to the store.
func (d *drawer) keep(g grant) {
	g.version = ""
	d.spare = append(d.spare, g)
}

// restock takes in hand what was put aside, where there is nothing else.
func (d *drawer) restock() {
	if d.hand.left() <= 0 && len(d.spare) > 0 {
		d.hand, d.spare = d.spare[0], d.spare[1:]
	}
}

// drop gives up all that is granted and not given out: others may have been granted it.
func (d *drawer) drop() {
	d.hand, d.proof, d.spare = none, none, nil
	d.dropped++
}

// reserved is how many counts are in hand.
func (d *drawer) reserved() int64 {
	n := max(d.hand.left(), 0)
	for _, g := range d.spare {
		n += g.left()
	}
	return n
}

// ready reports whether counts in hand may be given out at this instant without
// asking the store.
func (d *drawer) ready(now instant) bool {
	d.restock()
	if d.hand.left() <= 0 || d.final != nil || d.suspect {
		return false
	}
	period, sure := d.now(now)
	return sure && period == d.hand.period
}

// handBack is the write that gives back what is in hand, once nothing can be
// given out any more: it goes through only if nobody was granted anything since.
func (d *drawer) handBack() action {
	if d.hand.left() <= 0 || d.final != nil || d.hand.version == "" || d.known.version != d.hand.version {
		return action{}
	}
	c := d.known.counter
	c.Reached, c.Count = max(c.Reached, c.Count), d.hand.next-1
	return action{
		op: put, key: keyCounter(d.name, d.hand.period), value: record.Encode(c),
		cond: store.Condition{Version: d.hand.version}, grant: none,
	}
}
