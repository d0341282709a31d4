package move

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

const (
	lockTime   = 30 * time.Millisecond  // how long writers, or who else locks, are kept waiting by others that have a lock
	leastTime  = 5 * time.Millisecond   // and for what can as well be left
	cutTime    = 2 * time.Second        // how long what follows may take, when nobody else can be in the way
	markPause  = 2 * time.Millisecond   // between two looks for the mark
	countPause = 300 * time.Millisecond // for which a shard that has just moved has the servers for itself
	firstWait  = 50 * time.Millisecond  // after a try that failed; then longer and longer,
	lastWait   = time.Second            // up to that
	takeTime   = time.Minute            // how long a shard that was let go is worked on by who was told to stop
	idleTime   = 5 * time.Second        // how long a mover that says nothing holds what it has locked: longer than cutTime
)

// keepPlans has a transaction run the plans that firn.prepare_session has made.
const keepPlans = "SET LOCAL plan_cache_mode = force_generic_plan; "

// cut moves a shard over: the source lets it go, and the target takes it. It is tried
// when nobody has a lock on the shard for longer than a try may take.
func (m *Mover) cut(ctx context.Context, g goal, p pairOf) error {
	from, to := m.ends(g)
	m.say(Progress{Phase: Cutting})
	// Both again when nobody writes, by sessions that have then planned all that they run.
	if err := m.checkSchemas(ctx, g, p); err != nil {
		return err
	}
	for _, e := range []*end{from, to} {
		if err := e.call(ctx, "SELECT firn.prepare_session()"); err != nil {
			return err
		}
	}
	a, _ := p.sides(g)
	l, err := loadOf(ctx, from.conn, a.schema)
	if err != nil {
		return from.fault(err)
	}
	c := newCounting(m, g, p)
	defer c.close()
	if err := c.open(ctx); err != nil {
		return err
	}
	begun := time.Now()
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		reason, err := m.quiet(ctx, g, p)
		if err == nil && reason == nil {
			err = m.cutOnce(ctx, g, p, l, c)
			switch sqlstate(err) {
			case "55P03", "40P01": // a lock, or a deadlock: somebody was faster
				reason, err = m.inUse(ctx, g, p)
			case "57014":
				reason, err = m.tooSlow(ctx, g, p, fmt.Sprintf("to lock %d tables and sequences took longer than %s at each try", l.objects, from.try+l.locking()))
			}
		}
		if err != nil || reason == nil {
			return err
		}
		if f, asked := m.look(ctx, []int64{p.shard}); asked == nil {
			if err := m.paused(g, f, step{do: toCut}); err != nil { // the copy stays behind
				return err
			}
		}
		if waited := time.Since(begun); waited > m.options.LockWait {
			return gaveUp(reason, waited)
		}
		if late, err := m.behind(ctx, from, m.incoming(g)); err == nil {
			m.say(Progress{Phase: Cutting, Unapplied: late})
		}
		if err := pause(ctx, wait/2+rand.N(wait)); err != nil {
			return err
		}
	}
}

// inUse says who has a lock on a table of a shard, after a try that failed for that.
func (m *Mover) inUse(ctx context.Context, g goal, p pairOf) (reason, err error) {
	from, to := m.ends(g)
	a, _ := p.sides(g)
	for _, e := range []*end{from, to} {
		found, err := holders(ctx, e.conn, a.schema, 0)
		if err != nil {
			return nil, e.fault(err)
		}
		if len(found) > 0 {
			b := &BusyError{Shard: p.shard, Why: fmt.Sprintf("a table was in use at each try, on %s by %s", e.Name, found[0])}
			if found[0].Autovacuum {
				b.Do, err = e.hurryAutovacuum(ctx)
			}
			return b, err
		}
	}
	return &BusyError{Shard: p.shard, Why: "a table was in use at each try"}, nil
}

// tooSlow says why locks were not there in time: an autovacuum that does not give way, or else what is said.
func (m *Mover) tooSlow(ctx context.Context, g goal, p pairOf, why string) (reason, err error) {
	from, to := m.ends(g)
	a, _ := p.sides(g)
	for _, e := range []*end{from, to} {
		found, err := holders(ctx, e.conn, a.schema, lockTime)
		if err != nil {
			return nil, e.fault(err)
		}
		for _, h := range found {
			if !h.Autovacuum {
				continue
			}
			b := &BusyError{Shard: p.shard, Why: fmt.Sprintf("an autovacuum did not give way in %s, on %s %s", cleanTime, e.Name, h)}
			b.Do, err = e.hurryAutovacuum(ctx)
			return b, err
		}
	}
	return &BusyError{Shard: p.shard, Why: why}, nil
}

// A BusyError says that no moment came in which a shard could change over.
type BusyError struct {
	Shard  int64
	Waited time.Duration
	Why    string
	Do     string // what to do about it; empty: try again later
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("shard %d could not be moved over in %s: %s", e.Shard, e.Waited.Round(time.Second), e.Why)
}

func gaveUp(reason error, waited time.Duration) error {
	switch e := reason.(type) {
	case *BusyError:
		e.Waited = waited
	case *HoldersError:
		e.Waited = waited
	}
	return reason
}

// quiet says why it is no good moment, or nil.
func (m *Mover) quiet(ctx context.Context, g goal, p pairOf) (reason, err error) {
	from, to := m.ends(g)
	a, _ := p.sides(g)
	late, err := m.delay(ctx, g, a.schema, 2*m.options.Lag)
	if err != nil {
		return nil, err
	}
	if late > m.options.Lag {
		return &BusyError{Shard: p.shard, Why: fmt.Sprintf("the copy is behind by more than %s", m.options.Lag)}, nil
	}
	for _, e := range []*end{from, to} {
		found, err := holders(ctx, e.conn, a.schema, lockTime)
		if err != nil {
			return nil, e.fault(err)
		}
		var all []Holder
		for _, h := range found {
			if !h.Autovacuum || strings.Contains(h.Query, "to prevent wraparound") { // others give way by themselves
				all = append(all, h)
			}
		}
		if len(all) > 0 {
			return &HoldersError{Shard: p.shard, Holders: all}, nil
		}
	}
	return nil, nil
}

// cutOnce tries once.
func (m *Mover) cutOnce(ctx context.Context, g goal, p pairOf, l load, c *counting) error {
	from, to := m.ends(g)
	a, _ := p.sides(g)
	if err := from.holdOff(ctx, p.shard); err != nil {
		return err
	}
	defer from.rollback(ctx)
	// Held from here on, so that nothing on the other server is in the way of the opening.
	other, err := to.conn.Begin(ctx)
	if err != nil {
		return to.fault(err)
	}
	defer other.Rollback(context.WithoutCancel(ctx))
	call := fmt.Sprintf("(%d, %d, %s)", p.shard, a.term, literal(a.attempt))
	held := keepPlans + fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d; ", (idleTime+l.locking()+l.working()-cutTime).Milliseconds())
	if _, err := other.Exec(ctx, held+holdOff(p.shard)+limits(lockTime, l.working())+"SELECT firn.lock_tables"+call+", firn.take"+call); err != nil {
		return parted(p.shard, to.fault(err))
	}
	begun := time.Now()
	if err := from.letGo(ctx, p.shard, a, to.Name, l, m.options.Consumers); err != nil {
		from.rollback(ctx)
		m.cancelCutover(ctx, from, p.shard, a)
		return parted(p.shard, err)
	}
	// From here on the shard is nowhere: who is told to stop finishes this first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeTime)
	defer cancel()
	if err := c.begin(ctx); err != nil {
		return err
	}
	results, err := to.conn.PgConn().Exec(ctx, limits(cutTime, takeTime)+"SELECT firn.take"+call+"; COMMIT").ReadAll()
	if err != nil {
		return to.fault(err)
	}
	if string(results[2].Rows[0][0]) != "t" {
		return to.fault(errors.New("the mark was there, and is not"))
	}
	took := time.Since(begun)
	err = m.count(ctx, c, Moved{Shard: p.shard, Pause: took})
	to.notePause(ctx, took)
	return err
}

// holdOff begins a transaction in which autovacuum has given way. The transaction stays open while the other server does
// the same, and keeps no program waiting meanwhile.
func (e *end) holdOff(ctx context.Context, n int64) error {
	_, err := e.conn.Exec(ctx, "BEGIN; "+keepPlans+fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d; ", (cleanTime+idleTime).Milliseconds())+holdOff(n))
	if err != nil {
		e.rollback(ctx)
	}
	return e.fault(err)
}

// rollback ends a transaction, if one is open.
func (e *end) rollback(ctx context.Context) {
	if !e.conn.IsClosed() && e.conn.PgConn().TxStatus() != 'I' {
		e.conn.Exec(context.WithoutCancel(ctx), "ROLLBACK")
	}
}

// letGo has a server let a shard go, in one message, in the transaction of holdOff.
func (e *end) letGo(ctx context.Context, n int64, c copyOf, to string, l load, consumers []string) error {
	quoted := make([]string, len(consumers))
	for i, name := range consumers {
		quoted[i] = literal(name)
	}
	_, err := e.conn.Exec(ctx, limits(e.try, e.try+l.locking())+
		fmt.Sprintf("SELECT firn.lock_tables(%d, %d, %s); ", n, c.term, literal(c.attempt))+limits(e.try, l.working())+
		fmt.Sprintf("SELECT firn.let_go(%d, %d, %s, %s, ARRAY[%s]::text[]); COMMIT", n, c.term, literal(c.attempt), literal(to), strings.Join(quoted, ", ")))
	return e.fault(err)
}

// cancelCutover lets a shard serve again after a try that failed; without an answer whoever comes
// next does that.
func (m *Mover) cancelCutover(ctx context.Context, e *end, n int64, c copyOf) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeTime)
	defer cancel()
	e.call(ctx, "SELECT firn.cancel_cutover($1, $2, $3)", n, c.term, c.attempt)
}

// incoming is the stream by which a shard comes.
func (m *Mover) incoming(g goal) string {
	if g.back {
		return m.back()
	}
	return m.forth()
}

// delay is how far the copy is behind: how long a row takes to come there that says nothing.
func (m *Mover) delay(ctx context.Context, g goal, schema string, limit time.Duration) (time.Duration, error) {
	from, to := m.ends(g)
	mark := identifier(schema) + ".firn_mark"
	probe := newWord()
	if err := from.call(ctx, fmt.Sprintf("INSERT INTO %s (term, attempt) VALUES (0, $1) ON CONFLICT (term) DO UPDATE SET attempt = excluded.attempt", mark), probe); err != nil {
		return 0, err
	}
	for begun := time.Now(); ; {
		var there bool
		if err := to.conn.QueryRow(ctx, fmt.Sprintf("SELECT EXISTS (SELECT FROM %s WHERE term = 0 AND attempt = $1)", mark), probe).Scan(&there); err != nil {
			return 0, to.fault(err)
		}
		if took := time.Since(begun); there || took > limit {
			return took, nil
		}
		if err := pause(ctx, markPause); err != nil {
			return 0, err
		}
	}
}
