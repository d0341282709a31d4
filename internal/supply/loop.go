package supply

import (
	"errors"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A World is what a lane asks of the outside. Do, Update and Rest take time, and are called
// from the goroutine that called [Lane.Run]. The others take none, and are called from any,
// some with the mutex of the Supply held: they must not call the Supply.
type World interface {
	// Clocks reads the process's clocks.
	Clocks() block.Now

	// Do does what the machine asks for, be it a request or a Sleep, and returns what came of
	// it. It gives up after patience, and when the series has been closed for grace.
	Do(do block.Action, patience, grace time.Duration) block.Answer

	// Update is [store.Updater]'s, and gives up as Do does.
	Update(key string, patience, grace time.Duration, f func(store.Record) ([]byte, error)) (store.Record, error)

	// Rest returns once Wake was called, after the last Rest or since, or the series is closed; or
	// when d has passed, which it reports. Zero is for ever.
	Rest(d time.Duration) (passed bool)

	// Wake ends the Rest of this lane.
	Wake()

	// Stepped is called when the driver was told an event and has said what to do next, and, with
	// nil, when the lane was opened. Away is since when the store did not answer before that. It
	// is for reports.
	Stepped(e block.Event, do block.Action, away time.Time, now Status)

	// Failed is called once, when the lane has failed for good. It is for reports.
	Failed(err error)
}

// ErrNoTime is why nothing was handed back where the store did not answer in time.
var ErrNoTime = errors.New("the store did not answer in time")

// errNoPut is why nothing is written: the machine does not ask for it.
var errNoPut = errors.New("nothing to write")

// closing is when a lane that closes has no more time, on the boot clock.
type closing struct {
	begun bool
	end   time.Duration
}

// Run keeps the lane in numbers until the series is closed. Then it hands back what is left,
// and returns why it did not, or nil.
func (l *Lane) Run() (kept error) {
	for {
		take, due, over := l.due()
		switch {
		case over:
			for !l.supply.Closed() {
				l.world.Rest(0)
			}
			return l.close()
		case due:
			l.take(l.perform(take))
		case l.world.Rest(l.driver.LookEvery()):
			l.take(l.perform(block.Look{}))
		}
	}
}

// due says what to ask the store for, if anything, and whether the lane issues nothing any more.
func (l *Lane) due() (take block.Take, due, over bool) {
	s := l.supply
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || l.failed != nil {
		return take, false, true
	}
	l.arm()
	have := &l.driver.State.Have
	var want block.Take
	for _, c := range s.queue {
		if c.denied&l.place != 0 {
			continue
		}
		if want.Need == 0 {
			want.Least = l.least(c)
		} else if have.Strict && want.Need+int64(c.want) > have.Left() {
			continue // there is no room for both, and of a strict series nothing is kept
		}
		c.asked |= l.place
		want.Need += int64(c.want)
	}
	l.driver, take, due = l.driver.Due(l.world.Clocks(), want, l.left(), l.issued())
	if due {
		l.now.limit.Store(l.now.count) // nobody has to call while it is asked for
	}
	return take, due, false
}

// least is how few numbers c can use: fewer are not to be granted.
func (l *Lane) least(c *Call) int64 {
	switch {
	case c.Whole:
		return int64(c.want)
	case len(l.supply.lanes) > 1:
		return 0 // another store may have the others
	}
	return int64(c.want) - l.left()
}

// perform does what the machine asks until it has an answer to e, or there is no more time.
func (l *Lane) perform(e block.Event) block.Action {
	do := l.step(e)
	for do.Op != record.None {
		patience, grace := l.times(do)
		switch {
		case patience <= 0:
			return do
		case l.updates && l.driver.State.Crowded():
			do = l.update(do)
		default:
			do = l.step(l.world.Do(do, patience, grace))
		}
	}
	return do
}

// times says how long an action may take, and how much longer once the series is closed.
// Without patience it is not done. A write goes on for a while then: one that is cut off may be
// carried out nevertheless, and then nothing can be handed back.
func (l *Lane) times(do block.Action) (patience, grace time.Duration) {
	most := l.supply.patience
	if do.Op == record.Put {
		grace = most / 5
	}
	switch {
	case l.closing.begun:
		left := l.closing.end - l.world.Clocks().Boot
		if left <= 0 {
			return 0, 0
		}
		return left + grace, left + grace
	case l.supply.Closed():
		return 0, 0
	case do.For == block.ToLook:
		return l.driver.LookEvery(), 0
	}
	return most, grace
}

// step tells the driver what happened, and returns what to do next.
func (l *Lane) step(e block.Event) (do block.Action) {
	now := l.world.Clocks()
	l.supply.mu.Lock()
	defer l.supply.mu.Unlock()
	away := l.driver.Away
	l.driver, do = l.driver.Step(now, e)
	l.world.Stepped(e, do, away, l.status())
	if l.driver.State.Fails > 0 && errors.Is(l.driver.State.Err, store.ErrDenied) {
		l.supply.refuse()
	}
	return do
}

// update performs a Get, and the Put that the machine asks for when it has seen
// the record, with nobody in between.
func (l *Lane) update(do block.Action) block.Action {
	patience, grace := l.times(block.Action{Request: record.Request{Op: record.Put}})
	rec, err := l.world.Update(do.Key, patience, grace, func(r store.Record) ([]byte, error) {
		do = l.step(block.Answer{Record: r})
		if do.Op != record.Put {
			return nil, errNoPut
		}
		return do.Value, nil
	})
	if errors.Is(err, errNoPut) {
		return do
	}
	return l.step(block.Answer{Record: rec, Err: err})
}

// take does with the answer to a Take what is to be done.
func (l *Lane) take(do block.Action) {
	s := l.supply
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed, l.failed != nil:
	case l.driver.State.Over:
		l.fail(do.Err)
	case do.Grant.Count > 0:
		l.deliver(do.Grant, l.driver.State.Have.Strict)
	case do.Err != nil:
		l.deny(do.Err)
	}
}

// close hands back what is left, once nothing of it can be issued any more. All of that, and a write
// that was under way when the series was closed, takes no longer than patience.
func (l *Lane) close() error {
	s := l.supply
	s.mu.Lock()
	used, over := l.highest(), l.failed != nil || l.driver.State.Over
	s.mu.Unlock()
	if over {
		return nil
	}
	l.closing = closing{true, l.world.Clocks().Boot + s.patience - 2*(s.patience/5)}
	l.perform(block.Stop{Used: int64(used)})
	if !l.driver.State.Over {
		return ErrNoTime
	}
	return l.driver.State.Err
}
