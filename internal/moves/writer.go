package main

import (
	"context"
	"errors"
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

	items map[int64]int64   // what each of its rows is at
	mine  []int64           // the ids of those, some of which may be gone
	logs  map[int64]int64   // which item each row of the log is about
	ids   []int64           // in the order in which they were acknowledged
	maybe map[int64][]int64 // rows of which nobody knows: what each may be at; gone is -1

	acknowledged int64
	hops         int64 // tries that did not end a transaction
	gaps         []gap
	port         uint16  // of the server that the last transaction was on
	failed       int64   // transactions that were not committed because a server was killed
	errs         []error // that should not have been
}

// gone is what a row that is not there is at.
const gone = -1

// A gap is how long a transaction took.
type gap struct {
	begun time.Time
	until time.Time
	took  time.Duration // without what the transaction rested
	over  bool          // it was on another server than the one before
}

func (set settings) newWriter(number int, s shard.Shard) *writer {
	w := &writer{
		number: number, shard: s, random: rand.New(rand.NewPCG(set.seed+uint64(s.Number()), uint64(number))), rate: set.rate, faults: set.faults,
		items: map[int64]int64{}, logs: map[int64]int64{}, maybe: map[int64][]int64{},
	}
	if number == 1 {
		w.open = set.long
	}
	return w
}

// write writes until ctx ends, which breaks off nothing.
func (w *writer) write(ctx context.Context) {
	time.Sleep(time.Duration(w.random.Float64() / w.rate * float64(time.Second))) // not all at once
	next := time.NewTicker(time.Duration(float64(time.Second) / w.rate))
	defer next.Stop()
	for ctx.Err() == nil && len(w.errs) == 0 {
		begun, was := time.Now(), w.port
		rested := w.transaction(context.WithoutCancel(ctx))
		now := time.Now()
		w.gaps = append(w.gaps, gap{begun, now, now.Sub(begun) - rested, was != 0 && was != w.port})
		if w.open > 0 {
			time.Sleep(300 * time.Millisecond) // else no shard with such a writer could ever move
		}
		<-next.C
	}
}

// pause is for how long the next transaction rests after its first statement.
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
	rest := w.pause()
	tries := int64(0)
	in := func(f func(pgx.Tx) error) error {
		err := w.shard.InTx(ctx, func(tx pgx.Tx) error {
			tries++
			w.port = tx.Conn().Config().Port
			return f(tx)
		})
		w.hops += max(0, tries-1)
		return err
	}
	what := w.random.Float64()
	id, ok := w.pick()
	switch {
	case what < 0.6 || !ok:
		w.insert(ctx, in, rest)
	case what < 0.9:
		w.change(ctx, in, rest, id, "UPDATE item SET n = n + 1 WHERE id = $1", w.items[id]+1)
	default:
		w.change(ctx, in, rest, id, "DELETE FROM item WHERE id = $1", gone)
	}
	return rest
}

// pick is one of the writer's rows, mostly a young one.
func (w *writer) pick() (int64, bool) {
	for range 10 {
		n := len(w.mine)
		if n == 0 {
			break
		}
		if n > 50 && w.random.IntN(10) > 0 {
			n = 50
		}
		id := w.mine[len(w.mine)-1-w.random.IntN(n)]
		if _, there := w.items[id]; there {
			return id, true
		}
	}
	return 0, false
}

type within func(func(pgx.Tx) error) error

// insert makes a row and one that is about it.
func (w *writer) insert(ctx context.Context, in within, rest time.Duration) {
	var item, log int64
	err := in(func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "INSERT INTO item (writer, n, pad) VALUES ($1, 0, repeat('y', 100)) RETURNING id", w.number).Scan(&item); err != nil {
			return err
		}
		time.Sleep(rest)
		return tx.QueryRow(ctx, "INSERT INTO log (item, note) VALUES ($1, 'made') RETURNING id", item).Scan(&log)
	})
	switch {
	case err == nil:
		w.items[item], w.logs[log] = 0, item
		w.mine = append(w.mine, item)
		w.ids = append(w.ids, item, log)
		w.acknowledged++
	case errors.Is(err, shard.ErrAmbiguous):
		w.maybe[item] = []int64{0, gone}
		w.maybe[log] = []int64{item, gone}
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

// change changes a row to what it is at then.
func (w *writer) change(ctx context.Context, in within, rest time.Duration, id int64, sql string, to int64) {
	err := in(func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sql, id)
		if err == nil && tag.RowsAffected() != 1 {
			err = errMissed
		}
		if err == nil {
			time.Sleep(rest)
		}
		return err
	})
	switch {
	case err == nil && to == gone:
		delete(w.items, id)
		w.acknowledged++
	case err == nil:
		w.items[id] = to
		w.acknowledged++
	case errors.Is(err, shard.ErrAmbiguous):
		w.maybe[id] = []int64{w.items[id], to}
		delete(w.items, id) // and it is left alone
	default:
		w.fault(err)
	}
}
