package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A poolRecords is what a store has of a pool.
type poolRecords struct {
	created bool
	begun   bool // to be created
	later   bool // the pool's record is of a later firn
	pool    term.Pool
	workers map[int64]workerRecord
}

type workerRecord struct {
	term.Record
	of store.Record // without a time where the store has no clock
}

// records checks the records of the store, its counters, and each pool.
func (e *exam) records(ctx context.Context, s store.Store, durability store.Durability) {
	list, err := s.List(ctx, "")
	if err != nil {
		e.fails("records", err)
		return
	}
	found := e.read(list)
	for _, rec := range list {
		e.still(rec, durability)
	}
	e.pools(found, durability)
	e.repeats(found)
}

// read reads all records, and reports those that it cannot read.
func (e *exam) read(list []store.Record) map[string]*poolRecords {
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
			e.say(Bad, "records", readable(err), "%s", phrase.WithoutPackage(err.Error()))
		}
	}
	for _, rec := range list {
		if rec.Written.After(e.now().Add(term.Skew)) {
			e.say(Warning, "clock", remedy.WrongClock+e.meanwhile(rec, found), "record %s was written at %s, which is still to come", rec.Key, phrase.Instant(rec.Written))
		}
	}
	if unread == 0 {
		e.say(OK, "records", "", "%s, all readable", phrase.Plural(len(list), "record"))
	}
	return found
}

// readable says what makes a record readable.
func readable(err error) string {
	if isLater(err) {
		return remedy.OfLater
	}
	return "restore a backup, then: " + remedy.Recover("")
}

// isLater reports whether a record cannot be read because a later firn wrote it.
func isLater(err error) bool {
	var format *store.FormatError
	return errors.As(err, &format) && remedy.Later(format)
}

// meanwhile says what becomes of a record that a clock has written which was ahead, once all clocks are
// right: nobody has to do anything, and the warning does not end before its time has come.
func (e *exam) meanwhile(rec store.Record, found map[string]*poolRecords) string {
	text := "; if both are right by now, the record may stay, and this warning ends at that time, or when the record is written again"
	name, _, _ := strings.Cut(strings.TrimPrefix(rec.Key, term.KeyPools), "/")
	n, isWorker := term.WorkerOf(name, rec.Key)
	p := found[name]
	if !isWorker || p == nil {
		return text
	}
	l, err := firn.ParseLayout(p.pool.Layout)
	if err != nil {
		return text
	}
	if until := l.Time(max(p.workers[n].Horizon, p.pool.Floor) + 1); until.After(e.now()) {
		text += fmt.Sprintf("; worker %d of pool %s is out of use until %s", n, name, phrase.Instant(until))
	}
	return text
}

// readRecord sorts a record to its pool.
func readRecord(rec store.Record, of func(pool string) *poolRecords) (err error) {
	if rec.Key == term.KeyStore {
		_, err := term.ReadStore(rec)
		return err
	}
	if rec.Key == record.KeyLost {
		return record.CheckLost(rec)
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
		p.begun, p.later = err == nil, isLater(err)
	case isWorker:
		var r term.Record
		if r, err = term.ReadRecord(rec); err == nil {
			of(name).workers[n] = workerRecord{r, rec}
		}
	}
	return err
}
