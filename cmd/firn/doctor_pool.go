package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/segment/block"
	"github.com/firn-id/firn/serial"
	"github.com/firn-id/firn/store"
)

// A poolRecords is what a store has of a pool.
type poolRecords struct {
	founded bool
	pool    term.Pool
	workers map[int64]workerRecord
}

type workerRecord struct {
	term.Record
	free    time.Duration // until its holder is taken for dead, if nobody hears of it
	written time.Time     // zero: the store has no clock
}

// pools checks the records of the store, and each pool.
func (d *doctor) pools(ctx context.Context, s store.Store, set *settings, promise store.Promise) error {
	list, err := s.List(ctx, "")
	if err != nil {
		d.fails("records", err)
		return nil
	}
	found := d.records(list)
	names, asked, err := d.poolNames(found, set)
	if err != nil {
		return err
	}
	for _, name := range names {
		said := set.poolSaid(name)
		l, err := set.leasingFrom(name, said, entry{})
		if err != nil {
			d.fails("pool "+name, err)
			continue
		}
		c := &poolCheck{doctor: d, name: name, records: found[name], leasing: l}
		c.run(promise, said != nil || asked && l.from["layout"] != byDefault)
	}
	return nil
}

// poolNames are the pools to look at: the one that is asked for, by --pool or by
// its layout; else those of the store and of the file; else the one that the next
// process would found.
func (d *doctor) poolNames(found map[string]*poolRecords, set *settings) (names []string, asked bool, err error) {
	if f := set.flags.Lookup("pool"); f.Changed { // in the file or not
		return []string{f.Value.String()}, true, nil
	}
	said, err := set.poolsInForce()
	inFile := set.file != nil && len(set.file.pools) > 0
	if asked = set.flags.Changed("layout") && !inFile; asked || err != nil {
		return said, asked, err
	}
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range said {
		if (inFile || len(found) == 0) && found[name] == nil {
			names = append(names, name)
		}
	}
	return names, false, nil
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
			d.say(wrong, "records", "restore a backup, then: firn store recover", "%s", withoutPackage(err.Error()))
		}
		if rec.Written.After(d.now().Add(term.Skew)) {
			d.say(warning, "clock", "set this host's clock", "record %s was written at %s, which is still to come", rec.Key, instant(rec.Written))
		}
	}
	if unread == 0 {
		d.say(fine, "records", "", "%s, all readable", plural(len(list), "record"))
	}
	return found
}

// readRecord sorts a record to its pool.
func readRecord(rec store.Record, of func(pool string) *poolRecords) (err error) {
	if rec.Key == term.KeyStore {
		_, err := term.ReadStore(rec)
		return err
	}
	if rec.Key == segment.KeyRestored {
		return nil
	}
	if strings.HasPrefix(rec.Key, segment.KeyPrefix) {
		_, err := block.Read(rec)
		return err
	}
	if ours, err := serial.CheckRecord(rec); ours {
		return err
	}
	rest, ok := strings.CutPrefix(rec.Key, term.KeyPools)
	name, rest, below := strings.Cut(rest, "/")
	switch n, isWorker := term.WorkerOf(name, rec.Key); {
	case !ok || name == "" || below && !isWorker && rest != "fresh":
		return fmt.Errorf("record %s is none of firn's, or of a later one", rec.Key)
	case !below:
		p := of(name)
		p.pool, err = term.ReadPool(rec)
		p.founded = err == nil
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
	leasing *leasing

	layout firn.Layout // the pool's
	rules  term.Rules
	lossy  bool          // the store can forget, or some process has seen that it can
	wait   time.Duration // of each start, if so
}

func (c *poolCheck) say(state, what, do, format string, args ...any) {
	c.doctor.say(state, "pool "+c.name+", "+what, do, format, args...)
}

// run checks the pool; with named, its layout is to be the one of the settings.
func (c *poolCheck) run(promise store.Promise, named bool) {
	o := c.leasing.options
	c.layout = o.Layout
	if c.records == nil || !c.records.founded {
		if c.records != nil && len(c.records.workers) > 0 {
			c.say(wrong, "layout", "restore a backup, then: firn store recover", "the record of the pool is missing or unreadable, and it has %s",
				plural(len(c.records.workers), "worker"))
			return
		}
		c.say(fine, "layout", c.firstUse(promise), "not founded yet; the first lease founds it with %s", layoutName(c.layout))
	} else {
		l, err := firn.ParseLayout(c.records.pool.Layout)
		switch {
		case err != nil:
			c.say(wrong, "layout", "is this an older firn than others have?", "%s cannot be read: %v", c.records.pool.Layout, err)
			return
		case named && l != c.layout:
			c.say(wrong, "layout", "a pool's layout never changes: take another pool", "it is %s, and %s is asked for", layoutName(l), layoutName(c.layout))
		default:
			c.say(fine, "layout", "", "%s", layoutName(l))
		}
		c.layout = l
	}
	c.rules = term.Default(c.name, c.layout, promise)
	var pool term.Pool
	if c.records != nil {
		pool = c.records.pool
	}
	c.lossy = promise.Class != store.Strict || pool.Lossy != ""
	if pool.Lossy != "" && promise.Class == store.Strict {
		c.say(warning, "mark", "when it is sure to stay strict: stop all processes, firn store restored",
			"by the rules for a store that can forget, whatever it promises now: %s", pool.Lossy)
	}
	c.rules.Outage = o.Outage
	c.wait = startDelay(&c.rules, pool)
	c.rules.Outage = c.rules.Budget(pool, c.lossy)
	c.rules.Renew = cmp.Or(o.Renew, c.rules.Renew)
	c.rules.TTL = cmp.Or(o.TTL, c.rules.TTL)
	c.years()
	if c.records != nil && c.records.founded {
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
		c.say(warning, "floor", "wait", "nothing is issued before %s, in %s, after firn store restored or the founding of the pool",
			instant(floor), left.Round(time.Second))
		return
	}
	c.say(fine, "floor", "", "none ahead")
}

// workers counts who has what.
func (c *poolCheck) workers() {
	first, count, ok := strings.Cut(c.records.pool.Workers, "-")
	low, err := parseNumber(first)
	high, err2 := parseNumber(count)
	if !ok || err != nil || err2 != nil || high < low {
		c.say(wrong, "workers", "is this an older firn than others have?", "%q is no range", c.records.pool.Workers)
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
		c.say(warning, "workers", "firn workers ls shows who holds them", "%s; the first falls free in %s", text, soon.Round(time.Second))
		return
	}
	c.say(fine, "workers", "", "%s", text)
}

// firstUse is what to do before the first process founds a pool on a store that it
// cannot tell from one that lost everything.
func (c *poolCheck) firstUse(promise store.Promise) string {
	if promise.Embedded {
		return ""
	}
	rules := term.Default(c.name, c.layout, promise)
	rules.Outage = c.leasing.options.Outage
	return fmt.Sprintf("if nobody ever used this store, firn store init --new first: else ids begin after at least %s",
		durationText(rules.Budget(term.Pool{}, promise.Class != store.Strict)+rules.Skew))
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
	text := fmt.Sprintf("ids go on for %s while the store is away", durationText(c.rules.Outage))
	if begin < c.rules.Outage {
		text += fmt.Sprintf(", %s when a process has just started and all of it after %s", durationText(begin), durationText(full.Round(time.Second)))
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
		durationText(max(c.rules.Outage, c.rules.TTL)), durationText(begin))
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
	if c.leasing.options.File != "" {
		text += "; one that starts again on its host goes on at once, from its grant file"
	}
	c.say(fine, "crash", "", "%s", text)
}

// failover says what it costs if the store forgets.
func (c *poolCheck) failover() {
	pause := durationText(max(c.rules.Outage, term.OutageStrict) + c.rules.Skew) // as store restored has it
	if c.lossy {
		c.say(fine, "failover", "", "each start of a process waits for %s, so that one that lost writes costs nothing further", durationText(c.wait))
		return
	}
	c.say(fine, "failover", "", "if the store forgets, or a backup is put back, firn store restored is needed, and nothing is issued for %s", pause)
}
