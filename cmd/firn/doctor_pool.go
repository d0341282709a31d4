package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A poolRecords is what a store has of a pool.
type poolRecords struct {
	created bool
	begun   bool // to be created
	pool    term.Pool
	workers map[int64]workerRecord
}

type workerRecord struct {
	term.Record
	free    time.Duration // until its holder is taken for dead, if nobody hears of it
	written time.Time     // zero: the store has no clock
}

// pools checks the records of the store, and each pool.
func (d *doctor) pools(ctx context.Context, s store.Store, set *settings, durability store.Durability) error {
	list, err := s.List(ctx, "")
	if err != nil {
		d.fails("records", err)
		return nil
	}
	found := d.records(list)
	names, err := d.poolNames(found, set)
	if err != nil {
		return err
	}
	for _, name := range names {
		said := set.PoolSaid(name)
		l, err := set.LeasingFrom(name, said, config.Entry{})
		if err != nil {
			d.fails("pool "+name, err)
			continue
		}
		c := &poolCheck{doctor: d, name: name, records: found[name], leasing: l, others: len(found) > 0}
		pools := map[string]term.Pool{}
		for name, r := range found {
			pools[name] = r.pool
		}
		c.crowded = open.CrowdedBy(open.CreatedPools(pools), name, &l.Options)
		c.run(durability)
	}
	d.repeats(found)
	return nil
}

// poolNames are the pools to look at: the one that is asked for; else those of the store
// and of the file; else the one that is meant where none is named.
func (d *doctor) poolNames(found map[string]*poolRecords, set *settings) (names []string, err error) {
	if v, ok := set.Said("pool"); ok { // in the file or not
		return []string{v.Text}, nil
	}
	said, err := set.PoolsInForce()
	if err != nil {
		return nil, err
	}
	inFile := set.File != nil && len(set.File.Pools) > 0
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range said {
		if (inFile || len(found) == 0) && found[name] == nil {
			names = append(names, name)
		}
	}
	return names, nil
}

// records reads all records, and reports those that it cannot read.
func (d *doctor) records(list []store.Record) map[string]*poolRecords {
	found := map[string]*poolRecords{}
	of := func(name string) *poolRecords {
		if found[name] == nil {
			found[name] = &poolRecords{workers: map[int64]workerRecord{}}
		}
		return found[name]
	}
	unread := 0
	for _, rec := range list {
		if err := readRecord(rec, of); err != nil {
			unread++
			d.say(wrong, "records", "restore a backup, then: "+recoverCommand("", false), "%s", phrase.WithoutPackage(err.Error()))
		}
		if rec.Written.After(d.now().Add(term.Skew)) {
			d.say(warning, "clock", "set this host's clock", "record %s was written at %s, which is still to come", rec.Key, phrase.Instant(rec.Written))
		}
	}
	if unread == 0 {
		d.say(fine, "records", "", "%s, all readable", phrase.Plural(len(list), "record"))
	}
	return found
}

// readRecord sorts a record to its pool.
func readRecord(rec store.Record, of func(pool string) *poolRecords) (err error) {
	if rec.Key == term.KeyStore {
		_, err := term.ReadStore(rec)
		return err
	}
	if rec.Key == record.KeyLost {
		return nil
	}
	if strings.HasPrefix(rec.Key, block.Keys) {
		_, err := block.Read(rec)
		return err
	}
	if ours, def, err := dated.Check(rec); ours {
		if err == nil && def != nil {
			_, err = document.ParsePattern(def.Pattern)
		}
		return err
	}
	rest, ok := strings.CutPrefix(rec.Key, term.KeyPools)
	name, rest, below := strings.Cut(rest, "/")
	switch n, isWorker := term.WorkerOf(name, rec.Key); {
	case !ok || name == "" || below && !isWorker && rest != "fresh":
		return fmt.Errorf("record %s is none of firn's, or of a later one", rec.Key)
	case !below:
		var read term.Pool
		if read, err = term.ReadPool(rec); err == nil && !read.Created() && read.Reserved == "" {
			return nil // what is left of one that was refused: there is no such pool
		}
		p := of(name)
		p.pool = read
		p.created = err == nil && read.Created()
		p.begun = err == nil
	case isWorker:
		var r term.Record
		if r, err = term.ReadRecord(rec); err == nil {
			free := time.Duration(r.TTL)*time.Millisecond - rec.Read.Sub(rec.Written)
			of(name).workers[n] = workerRecord{r, max(free, 0), rec.Written}
		}
	}
	return err
}

// A poolCheck checks one pool.
type poolCheck struct {
	*doctor
	name    string
	records *poolRecords // nil: the store has none
	others  bool         // the store has any pool
	leasing *config.Leasing
	crowded *open.CrowdedError // of a pool that the store does not have; nil: it can be created

	layout firn.Layout // the pool's
	rules  term.Rules
	lossy  bool          // the store can forget, or some process has seen that it can
	wait   time.Duration // of each start, if so
}

func (c *poolCheck) say(state, what, do, format string, args ...any) {
	c.doctor.say(state, "pool "+c.name+", "+what, do, format, args...)
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
		c.fails("pool "+c.name+", store", poolFailure(&store.OtherStoreError{What: fmt.Sprintf("pool %q", c.name), Have: durability.Identity, Want: c.records.pool.Store}, poolPlace{url: open.StoreText(c.leasing.URL), from: c.leasing.From, file: c.leasing.File}))
	}
	c.rules = term.Default(c.name, c.layout, durability)
	var pool term.Pool
	if c.records != nil {
		pool = c.records.pool
	}
	c.lossy = !durability.Durable || pool.Lossy != ""
	if pool.Lossy != "" && durability.Durable {
		c.say(warning, "mark", "when it is sure to stay durable: stop all processes, then: "+recoverCommand("", false),
			"by the rules for a store that can forget, whatever it promises now: %s", pool.Lossy)
	}
	c.rules.Outage = o.Outage
	c.wait = startDelay(&c.rules, pool)
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
	years := yearsBetween(now, end)
	const do = "plan a pool with another layout: firn plan"
	switch {
	case !end.After(now):
		c.say(wrong, "years", do, "the layout ended on %s: no more ids can be made", end.Format(time.DateOnly))
	case c.layout.Epoch().After(now):
		c.say(wrong, "years", "set this host's clock", "the layout begins on %s", c.layout.Epoch().Format(time.RFC3339))
	case years < fewYears:
		c.say(warning, "years", do, "%.1f left: the layout ends on %s", years, end.Format(time.DateOnly))
	default:
		c.say(fine, "years", "", "%.0f left: the layout ends on %s", years, end.Format(time.DateOnly))
	}
}

// floor checks whether something keeps the whole pool from issuing.
func (c *poolCheck) floor() {
	floor := c.layout.Time(c.records.pool.Floor + 1)
	if left := floor.Sub(c.now()); c.records.pool.Floor > 0 && left > 0 {
		c.say(warning, "start", "wait", "ids start at %s, in %s: the pool was created by firn pool ensure, or recovered, not long ago",
			phrase.Instant(floor), left.Round(time.Second))
		return
	}
	c.say(fine, "start", "", "ids have started")
}

// workers counts who has what.
func (c *poolCheck) workers() {
	first, count, ok := strings.Cut(c.records.pool.Workers, "-")
	low, err := config.ParseNumber(first)
	high, err2 := config.ParseNumber(count)
	if !ok || err != nil || err2 != nil || high < low {
		c.say(wrong, "workers", "do other hosts have a later version of firn?", "%q is no range", c.records.pool.Workers)
		return
	}
	held, falling := 0, 0
	gone := ""               // what is said of holders that may be gone
	soon := time.Duration(0) // until the first falls free
	for n, w := range c.records.workers {
		if n < low || n > high {
			continue
		}
		free := max(w.free, c.until(w.Horizon))
		switch {
		case w.Owner != "" && w.free > 0:
			if held++; w.written.IsZero() {
				gone = " or left by who is gone"
			}
		case free > 0:
			falling++
		default:
			continue
		}
		if soon == 0 || free < soon {
			soon = free
		}
	}
	all := high - low + 1
	text := fmt.Sprintf("%d to %d: %d held%s, %d falling free, %d free", low, high, held, gone, falling, all-int64(held+falling))
	if int64(held+falling) >= all {
		c.say(warning, "workers", "to see who holds them: firn worker ls", "%s; the first falls free in %s", text, soon.Round(time.Second))
		return
	}
	if int64(held)*2 > all {
		c.say(warning, "workers", fmt.Sprintf("if all processes start anew at once there are too few: firn pool set %s --workers A-B", phrase.ShellWord(c.name)),
			"%s; more than half are held", text)
		return
	}
	c.say(fine, "workers", "", "%s", text)
}

// startDelay is how long each process waits that starts, where the store can
// forget; r.Outage is what was asked for.
func startDelay(r *term.Rules, pool term.Pool) time.Duration {
	return max(r.Quarantine(pool), r.Budget(pool, true)+2*r.Skew)
}

// until is how long it takes until a worker with this horizon can be issued from.
func (c *poolCheck) until(horizon firn.Tick) time.Duration {
	return max(c.layout.Time(horizon+1).Sub(c.now()), 0)
}

// outage says how long ids go on without the store.
func (c *poolCheck) outage() {
	begin, full := c.ramp()
	text := fmt.Sprintf("ids continue for %s while the store is away", phrase.Duration(c.rules.Outage))
	if begin < c.rules.Outage {
		text += fmt.Sprintf(", %s when a process has just started and all of it after %s", phrase.Duration(begin), phrase.Duration(full.Round(time.Second)))
	}
	c.say(fine, "outage", "", "%s", text)
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
			if w.Owner == "" || w.free == 0 {
				continue
			}
			if free := max(w.free, c.until(w.Horizon)); free > longest || free == longest && n < worker {
				longest, worker = free, n
			}
		}
	}
	if longest > 0 {
		text += fmt.Sprintf("; now that would be %s for worker %d, %s", longest.Round(time.Second), worker, c.records.workers[worker].Name)
	}
	if c.leasing.Options.GrantFile != "" {
		text += "; one that starts again on its host goes on at once, from its grant file"
	}
	c.say(fine, "crash", "", "%s", text)
}

// failover says what it costs if the store forgets.
func (c *poolCheck) failover() {
	pause := phrase.Duration(max(c.rules.Outage, term.OutageDurable) + 2*c.rules.Skew) // as store recover has it
	if c.lossy {
		c.say(fine, "failover", "", "each start of a process waits for %s, so that one that lost writes costs nothing further", phrase.Duration(c.wait))
		return
	}
	c.say(fine, "failover", "", "if the store forgets, or a backup is put back, firn store recover is needed, and nothing is issued for %s", pause)
}
