package sim

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A clerk gives out the texts of a series of documents. It runs the driver that package document
// runs: each call, Draw and Close is a task.
type clerk struct {
	*process
	accepts bool             // a lossy store
	at      dated.Place      // of its series
	series  *dated.Series    // nil: it is not open
	tasks   []*task          // under way
	draws   int              // tasks that draw, or are about to
	resting []*task          // Close, which waits for them
	late    bool             // the time for Close is over
	done    bool             // closed
	served  time.Duration    // when it got the last text, or was started
	def     dated.Definition // as it knows it
	lost    string           // what it was told that shows that the store has forgotten
}

func newClerk(p *process) *clerk {
	return &clerk{process: p, accepts: p.w.kind.lossy() && p.w.chance(0.9)}
}

// boot opens the series, by the code of package document.
func (k *clerk) boot() {
	k.over()
	k.done, k.late, k.served, k.lost = false, false, k.w.now, ""
	w := k.w
	if k.at = w.names()[0]; w.template && w.chance(0.5) {
		k.at = w.names()[1]
	}
	o := document.Options{
		Pattern: w.paper().text, Zone: w.paper().zone, Template: k.at.Template, Cache: w.cache, MayRepeat: k.accepts,
		Logger: slog.New(slog.DiscardHandler),
	}
	if w.chance(0.2) && !w.begins {
		o.Pattern, o.Zone = "", ""
	}
	var def dated.Definition
	var seen store.Durability
	w.do(&errand{by: k.process, what: k.name + " opens the series"}, func(ctx context.Context, s store.Store) (err error) {
		series, err := document.Open(ctx, s, k.at.Name, &o)
		if err != nil {
			return err
		}
		if seen, err = s.Durability(ctx); err == nil { // as it read them, or newer
			def, err = definition(s.Get(ctx, w.keySeries()))
		}
		return errors.Join(err, series.Close()) // nothing is in hand
	}, func(err error) {
		if err != nil {
			k.failsByItself()
			return
		}
		r := w.paper().rules
		r.Place, r.Step, r.Lossy, r.Max = k.at, max(w.cache, 1), k.accepts, min(r.Max, w.most)
		k.def, k.series = def, dated.NewSeries(r, def, seen, k.clocks())
		k.write()
	})
}

// clocks are the process's.
func (k *clerk) clocks() dated.Instant {
	return dated.Instant{Wall: k.host.wall(), Mono: k.w.now - k.slept}
}

// write does what a program does: it wants some texts now and then, by several calls at once, and
// gives up some of them.
func (k *clerk) write() {
	w := k.w
	k.after(w.around(w.think), func() {
		if k.series == nil || k.wish && w.chance(0.5) {
			return
		}
		for n := 1 + w.rng.IntN(3); n > 0 && len(k.tasks) < 10; n-- {
			k.call(pick(w.rng, 1, 1, 1, 2, 1+w.rng.Int64N(12), 1+w.rng.Int64N(120)))
		}
		k.write()
	})
}

// call is one of the program's.
func (k *clerk) call(n int64) {
	w := k.w
	t, begun := &task{clerk: k}, w.now
	var got []dated.Grant
	var err error
	switch w.rng.IntN(12) {
	case 0:
		t.gone = errStopped
	case 1, 2:
		k.after(w.around(w.think), func() {
			t.gone = errStopped
			t.poke()
		})
	}
	t.begin(func() { got, err = k.series.Take(t, n) }, func() {
		w.check.papers.answered(k, n, got, begun, err)
		var forgot *store.ForgotError
		var other *store.OtherStoreError
		if errors.As(err, &forgot) || errors.As(err, &other) || errors.As(err, new(*dated.Refusal)) && w.chance(0.05) {
			k.failsByItself() // the program ends
		}
	})
}

// quit closes the series. That it does not take much longer than its time is a promise.
func (k *clerk) quit() {
	w := k.w
	if k.series == nil {
		k.finish()
		return
	}
	for range pick(w.rng, 1, 1, 2) { // now and then twice
		if k.done {
			return
		}
		t := &task{clerk: k}
		t.begin(func() { _, _ = k.series.Close(t) }, func() {
			if !k.done {
				k.finish()
			}
		})
	}
	k.after(dated.Farewell, func() { // what is under way is broken off
		k.late = true
		for _, t := range slices.Clone(k.tasks) {
			t.hear(reply{err: errStopped, tried: t.tried})
			if t.pauses {
				t.resume()
			}
		}
		k.after(time.Millisecond, func() {
			if !k.done {
				w.fail(misstep, "p%d: does not close its series", k.id)
			}
		})
	})
}

func (k *clerk) finish() {
	k.over()
	k.done = true
	k.closed()
}

// over: the process has ended, and its tasks end where they stand.
func (k *clerk) over() {
	tasks := k.tasks
	k.tasks, k.series, k.draws, k.resting = nil, nil, 0, nil
	for _, t := range tasks {
		t.code.end()
	}
}

// A task is code of the driver under way, and the world of that code.
type task struct {
	*clerk
	code   coroutine
	then   func()
	waits  bool          // for its numbers
	gone   error         // why the caller waits no longer
	pauses bool          // before a request
	asks   bool          // a request is under way,
	tried  store.Version // and writes this
	answer record.Answer
}

// begin runs work until it waits, and then afterwards.
func (t *task) begin(work, then func()) {
	t.then = then
	t.code.begin(t.w.threads, work)
	t.tasks = append(t.tasks, t)
	t.resume()
}

func (t *task) resume() {
	if !t.code.resume() {
		t.tasks = slices.DeleteFunc(t.tasks, func(o *task) bool { return o == t })
		t.then()
	}
}

// resumeAfter resumes it after a while, unless somebody else does before.
func (t *task) resumeAfter(d time.Duration) {
	turn := t.code.turn
	t.after(d, func() {
		if turn == t.code.turn {
			t.resume()
		}
	})
}

func (t *task) Clocks() dated.Instant { return t.clocks() }

// Ask sends a request to the store. Of what comes back the first counts.
func (t *task) Ask(do dated.Action) record.Answer {
	w, k := t.w, t.clerk
	w.total.Steps++
	if k.lost != "" {
		w.fail(unnoticed, "p%d: does not notice that %s", k.id, k.lost)
	}
	if k.late {
		return record.Answer{Err: errStopped}
	}
	if w.trace != nil {
		w.logf("p%d: series: next %s %s %s", k.id, counterOps[do.Op], do.Key, do.Value)
	}
	if do.Pause > 0 {
		t.pauses = true
		t.resumeAfter(w.upTo(do.Pause))
		t.code.stand()
		if t.pauses = false; k.late {
			return record.Answer{Err: errStopped}
		}
	}
	t.asks, t.tried = true, ""
	turn, life := t.code.turn, k.life
	rq := request{kind: asked[do.Op], key: do.Key, value: do.Value, cond: do.Cond}
	if w.chance(0.01) { // it is not even sent
		w.after(w.upTo(time.Second), func() { t.heard(life, turn, reply{err: errReset}) })
	} else if v := w.send(k.process, rq, w.patience, func(r reply) { t.heard(life, turn, r) }); do.Op == record.Put {
		t.tried = v
		s := w.check.papers.span(v)
		s.by, s.life = k, k.life
	}
	t.code.stand()
	t.asks = false
	w.check.papers.told(k, do, t.answer)
	return t.answer
}

var asked = map[record.Op]kind{record.Get: get, record.Put: put, record.Ask: promise}

// heard: this came of a request, if that is the one under way.
func (t *task) heard(life, turn int, r reply) {
	if life == t.life && turn == t.code.turn {
		t.clerk.soon(life, func() {
			if turn == t.code.turn {
				t.hear(r)
			}
		})
	}
}

// hear gives the task the answer that it waits for.
func (t *task) hear(r reply) {
	if t.asks {
		t.answer = record.Answer(r.ofBlock())
		t.resume()
	}
}

// Go lets a task draw.
func (t *task) Go() {
	k := t.clerk
	k.draws++
	k.after(0, func() {
		d := &task{clerk: k}
		d.begin(func() { k.series.Draw(d) }, func() {
			if k.draws--; k.draws == 0 {
				for _, c := range k.resting {
					c.resumeAfter(0)
				}
				k.resting = nil
			}
		})
	})
}

// Rest waits until none draws.
func (t *task) Rest() {
	if t.draws > 0 {
		t.resting = append(t.resting, t)
		t.code.stand()
	}
}

func (t *task) Gone() error { return t.gone }

// Wait waits until the call has its numbers, or the caller gives up.
func (t *task) Wait() {
	t.waits = true
	t.code.stand()
}

func (t *task) Wake() { t.poke() }

func (t *task) poke() {
	if t.waits {
		t.waits = false
		t.resumeAfter(0)
	}
}
