package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/beside"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/plan"
	"github.com/firn-id/firn/store"
)

// pools checks each pool.
func (e *exam) pools(found map[string]*poolRecords, durability store.Durability) {
	names, err := e.poolNames(found)
	if err != nil {
		e.fails("config", err)
	}
	pools := map[string]term.Pool{}
	for name, r := range found {
		pools[name] = r.pool
	}
	for _, name := range names {
		l, err := e.set.LeasingFrom(name, e.set.PoolSaid(name), config.Entry{})
		if err != nil {
			e.fails("pool "+name, err)
			continue
		}
		c := &poolCheck{exam: e, name: name, records: found[name], leasing: l, others: len(found) > 0}
		c.wider = beside.WiderOf(pools, name)
		c.crowded = beside.CheckRecords(pools, name, &l.Options)
		c.run(durability)
	}
}

// poolNames are the pools to look at: the one that is asked for; else those of the store
// and of the file; else the one that is meant where none is named.
func (e *exam) poolNames(found map[string]*poolRecords) (names []string, err error) {
	if v, ok := e.set.Said("pool"); ok { // in the file or not
		return []string{v.Text}, nil
	}
	said, err := e.set.PoolsInForce()
	if err != nil {
		return nil, err
	}
	inFile := e.set.File != nil && len(e.set.File.Pools) > 0
	names = slices.Sorted(maps.Keys(found))
	for _, name := range said {
		if (inFile || len(found) == 0) && found[name] == nil {
			names = append(names, name)
		}
	}
	return names, nil
}

// A poolCheck checks one pool.
type poolCheck struct {
	*exam
	name    string
	records *poolRecords // nil: the store has none
	others  bool         // the store has any pool
	leasing *config.Leasing
	crowded *beside.CrowdedError // of a pool that the store does not have; nil: it can be created

	wider string // the range that the pool can have, such as 0-15; "": it can have no more workers

	layout firn.Layout // the pool's
	claim  term.Range  // its workers
	rules  term.Rules
	lossy  bool          // the store is lossy, or some process has seen that it is
	wait   time.Duration // of each start, if so
}

func (c *poolCheck) say(state State, what, do, format string, args ...any) {
	c.exam.say(state, "pool "+c.name+", "+what, do, format, args...)
}

// run checks the pool.
func (c *poolCheck) run(durability store.Durability) {
	o := c.leasing.Options
	c.layout = o.Layout
	if !c.layout.IsValid() {
		c.layout = firn.Default()
	}
	if c.records == nil || !c.records.created {
		if !c.missing(durability) {
			return
		}
	} else if !c.compare() {
		return
	} else if c.records.pool.Elsewhere(durability.Identity) {
		f := failure("pool "+c.name+", store", &store.OtherStoreError{What: fmt.Sprintf("pool %q", c.name), Have: durability.Identity, Want: c.records.pool.Store})
		f.Pool = c.leasing
		c.report(f)
	}
	c.rules = term.Default(c.name, c.layout, durability)
	var pool term.Pool
	if c.records != nil {
		pool = c.records.pool
	}
	c.lossy = !durability.Durable || pool.Lossy != ""
	if pool.Lossy != "" && durability.Durable {
		c.say(Warning, "mark", "when it is sure to stay durable: stop all processes, then: "+remedy.Recover("")+"; "+remedy.NothingLost,
			"by the rules for a lossy store, whatever it promises now: %s", pool.Lossy)
	}
	c.rules.Outage = o.Outage
	c.wait = c.rules.StartDelay(pool)
	c.rules.Outage = c.rules.Budget(pool, c.lossy)
	c.rules.Renew = cmp.Or(o.Renew, c.rules.Renew)
	c.rules.TTL = cmp.Or(o.TTL, c.rules.TTL)
	c.years()
	if c.records != nil && c.records.created {
		c.floor()
		c.workers()
	}
	c.outage()
	c.crash()
	c.failover()
}

// years checks how long the layout lasts.
func (c *poolCheck) years() {
	now, end := c.now(), c.layout.End()
	years := plan.YearsBetween(now, end)
	const do = "plan a pool with another layout: firn plan"
	switch {
	case !end.After(now):
		c.say(Bad, "years", do, "the layout ended on %s: no more ids can be made", end.Format(time.DateOnly))
	case c.layout.Epoch().After(now):
		c.say(Bad, "years", "set this host's clock", "the layout begins on %s", c.layout.Epoch().Format(time.RFC3339))
	case years < plan.FewYears:
		c.say(Warning, "years", do, "%.1f left: the layout ends on %s", years, end.Format(time.DateOnly))
	default:
		c.say(OK, "years", "", "%.0f left: the layout ends on %s", years, end.Format(time.DateOnly))
	}
}

// startsIn is how long the pool has no ids yet, whichever worker a process takes.
func (c *poolCheck) startsIn() time.Duration {
	if c.records.pool.Floor == 0 {
		return 0
	}
	return c.layout.Time(c.records.pool.Floor + 1).Sub(c.now())
}

// floor checks whether something keeps the whole pool from issuing.
func (c *poolCheck) floor() {
	if left := c.startsIn(); left > 0 {
		c.say(Warning, "start", "wait", "ids start at %s, in %s: %s", phrase.Instant(c.layout.Time(c.records.pool.Floor+1)), left.Round(time.Second),
			cmp.Or(c.records.pool.Ahead, "the pool was created by firn pool ensure, or recovered, not long ago"))
		return
	}
	c.say(OK, "start", "", "ids have started")
}

// workers counts who has what.
func (c *poolCheck) workers() {
	held, unusable := 0, 0
	gone := ""               // what is said of holders that may be gone
	soon := time.Duration(0) // until the first falls free
	for n, w := range c.records.workers {
		if !c.claim.Has(n) {
			continue
		}
		left, past := c.left(w), c.rules.Unusable(w.Horizon, c.now())
		free := max(left, past)
		switch {
		case left > 0:
			if held++; w.of.Written.IsZero() {
				gone = " or left by processes that are gone"
			}
		case past > 0:
			unusable++
		default:
			continue
		}
		if soon == 0 || free < soon {
			soon = free
		}
	}
	all := c.claim.Count()
	text := fmt.Sprintf("%d to %d: %d held%s, %d unusable, %d free", c.claim.First, c.claim.Last, held, gone, unusable, all-int64(held+unusable))
	if int64(held+unusable) >= all {
		c.full(held, text, soon.Round(time.Second))
		return
	}
	if int64(held)*2 > all {
		c.say(Warning, "workers", fmt.Sprintf("if all processes start anew at once there are too few: firn pool set %s --workers A-B", phrase.ShellWord(c.name)),
			"%s; more than half are held", text)
		return
	}
	c.say(OK, "workers", "", "%s", text)
}

// full says that no worker is free: one more process cannot start.
func (c *poolCheck) full(held int, text string, soon time.Duration) {
	more := fmt.Sprintf("to give the pool more workers (of workers that several stores share: only its own): firn pool set %s --workers %s", phrase.ShellWord(c.name), c.wider)
	switch {
	case held == 0 && c.startsIn() > 0: // said above
		c.say(Warning, "workers", "wait; to see up to when each may have issued ids: firn worker ls", "%s; the first can be leased in %s", text, soon)
	case held == 0: // no process holds any
		do := "wait; to see up to when each may have issued ids: firn worker ls"
		if c.wider != "" {
			do = "wait, or " + more + "; to see up to when each may have issued ids: firn worker ls"
		}
		c.say(Bad, "workers", do, "%s; no process can start, and the first worker can be leased in %s", text, soon)
	case c.layout.Workers() == 1: // by its layout such a pool has one process at a time
		c.say(Warning, "workers", "to see which process holds it: firn worker ls", "%s; no other process can start", text)
	case c.wider == "":
		c.say(Bad, "workers", "end a process that is not needed; to see them: firn worker ls; the pool can have no more workers: other pools have or had those beside them, or its layout has no more, or its workers are being changed. To see the pools: firn pool ls",
			"%s; no other process can start", text)
	default:
		c.say(Bad, "workers", more+"; to see which processes hold them: firn worker ls",
			"%s; no other process can start", text)
	}
}

// left is how long the holder of a worker has it if it does not write again, as firn worker ls says.
func (c *poolCheck) left(w workerRecord) time.Duration {
	return w.Left(w.of, c.records.pool.Lossy != "")
}

// until is how long it takes until a worker with this horizon can be issued from.
func (c *poolCheck) until(horizon firn.Tick) time.Duration {
	return max(c.layout.Time(horizon+1).Sub(c.now()), 0)
}

// outage says how long ids continue without the store.
func (c *poolCheck) outage() {
	begin, full := c.ramp()
	text := fmt.Sprintf("ids continue for %s while the store is away", phrase.Duration(c.rules.Outage))
	if begin < c.rules.Outage {
		text += fmt.Sprintf(", %s when a process has just started and all of it after %s", phrase.Duration(begin), phrase.Duration(full.Round(time.Second)))
	}
	c.say(OK, "outage", "", "%s", text)
}

// ramp is how far the first grant of a process reaches, and after how long a
// grant reaches all of the budget.
func (c *poolCheck) ramp() (begin, full time.Duration) {
	begin = min(term.Reach, c.rules.Outage)
	for reach := begin; reach < c.rules.Outage; reach *= 2 {
		full += min(reach/3, c.rules.Renew)
	}
	return begin, full
}

// crash says for how long a worker is of no use after its process has died.
func (c *poolCheck) crash() {
	begin, _ := c.ramp()
	text := fmt.Sprintf("a process that dies takes its worker out of use for %s at most, %s if it had just started",
		phrase.Duration(max(c.rules.Outage, c.rules.TTL)), phrase.Duration(begin))
	longest, worker := time.Duration(0), int64(0)
	if c.records != nil {
		for n, w := range c.records.workers {
			left := c.left(w)
			if left == 0 {
				continue
			}
			if free := max(left, c.until(w.Horizon)); free > longest || free == longest && n < worker {
				longest, worker = free, n
			}
		}
	}
	if longest > 0 {
		text += fmt.Sprintf("; now that would be %s for worker %d, %s", longest.Round(time.Second), worker, c.records.workers[worker].Name)
	}
	if c.leasing.Options.GrantFile != "" {
		text += "; one that starts again on its host continues at once, from its grant file"
	}
	c.say(OK, "crash", "", "%s", text)
}

// failover says what it costs if the store forgets.
func (c *poolCheck) failover() {
	pause := phrase.Duration(max(c.rules.Outage, term.OutageDurable) + 2*c.rules.Skew) // as store recover has it
	if c.lossy {
		c.say(OK, "failover", "", "each start of a process waits for %s, so that one that lost writes costs nothing further", phrase.Duration(c.wait))
		return
	}
	c.say(OK, "failover", "", "if the store loses writes, or a backup is put back, firn store recover is needed, and nothing is issued for %s", pause)
}
