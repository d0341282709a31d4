package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard"
)

// A writer writes rows of its own, one transaction after the other, and keeps what it
// was told. It is one goroutine.
type writer struct {
	number int
	shard  shard.Shard
	random *rand.Rand
	rate   float64       // transactions that it begins in a second
	open   time.Duration // how long its transactions are open; 0: as long as they take
	faults bool          // servers are killed
	drafts bool          // it is the one that uses the table draft
	seats  int64         // keys that it has chosen

	rows   map[row]string     // what each of its rows is at
	mine   map[string][]int64 // the keys of those by table, some of which may be gone
	drawn  map[string][]int64 // ids and numbers by source, in the order in which they were acknowledged
	doubts []doubt

	acknowledged int64
	hops         int64 // tries that did not end a transaction
	gaps         []gap
	place        string  // of the last transaction: a server and database
	failed       int64   // transactions that were not committed because a server was killed
	errs         []error // that should not have been
}

// gone is the value of a row that is not there.
const gone = ""

// A change is what a transaction does.
type change struct {
	rows  map[row]string     // what each row is at after it
	drawn map[string][]int64 // by source
	rest  func()             // called once, after a statement
}

// A doubt is a transaction of which nobody knows whether it was committed.
type doubt struct {
	before, after map[row]string // of the same rows
}

// A gap is how long a transaction took.
type gap struct {
	begun time.Time
	until time.Time
	took  time.Duration // without what the transaction rested
	over  bool          // it was on another server than the one before
}

// newKnowledge is a writer that knows nothing, and writes nothing.
func newKnowledge() *writer {
	return &writer{rows: map[row]string{}, mine: map[string][]int64{}, drawn: map[string][]int64{}}
}

func (set settings) newWriter(number int, s shard.Shard) *writer {
	w := newKnowledge()
	w.number, w.shard, w.rate, w.faults = number, s, set.rate, set.faults
	w.random = rand.New(rand.NewPCG(set.seed+uint64(s.Number()), uint64(number)))
	if number == 1 {
		w.open = set.long
	}
	w.drafts = number == min(2, set.writers-1)
	return w
}

// put has the writer know a row.
func (w *writer) put(r row, value string) {
	if value == gone {
		delete(w.rows, r)
		return
	}
	if _, known := w.rows[r]; !known {
		w.mine[r.table] = append(w.mine[r.table], r.key)
	}
	w.rows[r] = value
}

// write writes until ctx ends, which breaks off nothing.
func (w *writer) write(ctx context.Context) {
	time.Sleep(time.Duration(w.random.Float64() / w.rate * float64(time.Second))) // not all at once
	next := time.NewTicker(time.Duration(float64(time.Second) / w.rate))
	defer next.Stop()
	for ctx.Err() == nil && len(w.errs) == 0 {
		begun, was := time.Now(), w.place
		rested := w.transaction(context.WithoutCancel(ctx))
		now := time.Now()
		w.gaps = append(w.gaps, gap{begun, now, now.Sub(begun) - rested, was != "" && was != w.place})
		if w.open > 0 {
			time.Sleep(300 * time.Millisecond) // else no shard with such a writer could ever move
		}
		<-next.C
	}
}

// placeOf is a server and database.
func placeOf(c *pgx.ConnConfig) string { return fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database) }

// pause is for how long the next transaction rests after a statement.
func (w *writer) pause() time.Duration {
	switch {
	case w.open > 0:
		return w.open
	case w.number == 0 && w.random.IntN(20) == 0:
		return 50 * time.Millisecond
	}
	return 0
}

// transaction does one transaction, and returns how long the try that counted rested.
func (w *writer) transaction(ctx context.Context) (rested time.Duration) {
	rest, kind, at := w.pause(), insertItem, row{}
	if chosen := kinds[w.chosen()]; chosen.of == "" {
		kind = chosen.do
	} else if found, ok := w.pick(chosen.of); ok {
		kind, at = chosen.do, found
	}
	tries := int64(0)
	var c change
	err := w.shard.InTx(ctx, func(tx pgx.Tx) error {
		tries++
		w.place = placeOf(tx.Conn().Config())
		c = change{rows: map[row]string{}, drawn: map[string][]int64{}, rest: func() { time.Sleep(rest) }}
		return kind(ctx, w, tx, at, &c)
	})
	w.hops += max(0, tries-1)
	w.settle(c, err)
	return rest
}

// pick is one of the writer's rows, mostly a young one.
func (w *writer) pick(table string) (row, bool) {
	mine := w.mine[table]
	for range 10 {
		n := len(mine)
		if n == 0 {
			break
		}
		if n > 50 && w.random.IntN(10) > 0 {
			n = 50
		}
		r := row{table, mine[len(mine)-1-w.random.IntN(n)]}
		if _, there := w.rows[r]; there {
			return r, true
		}
	}
	return row{}, false
}

// settle takes down what became of a transaction.
func (w *writer) settle(c change, err error) {
	switch {
	case err == nil:
		for r, value := range c.rows {
			w.put(r, value)
		}
		for source, numbers := range c.drawn {
			w.drawn[source] = append(w.drawn[source], numbers...)
		}
		w.acknowledged++
	case errors.Is(err, shard.ErrAmbiguous):
		d := doubt{before: map[row]string{}, after: c.rows}
		for r := range c.rows { // and they are left alone
			d.before[r] = w.rows[r]
			delete(w.rows, r)
			w.drafts = w.drafts && r.table != "draft" // a TRUNCATE would be about rows in doubt
		}
		w.doubts = append(w.doubts, d)
	default:
		w.fault(err)
	}
}

// fault takes down an error after which the transaction is known not to be committed.
func (w *writer) fault(err error) {
	if w.faults && !errors.Is(err, errMissed) {
		w.failed++
		time.Sleep(10 * time.Millisecond)
		return
	}
	w.errs = append(w.errs, err)
}

// errMissed: a row that is there was not found.
var errMissed = errors.New("a statement found no row, where one had been acknowledged")
