package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/topology"
)

// This file removes what moves have left: every end of a move does by it, also one that somebody
// else was killed at, or whose other server is gone.

// slotPatience is how long a slot is waited for whose reader has just ended.
const slotPatience = 5 * time.Second

// DropLeftovers drops what replicated for batches that are no more, on servers where nobody is left
// to do so: who ended the moves was killed.
func DropLeftovers(ctx context.Context, servers []topology.Server) error {
	var ends []*end
	for _, s := range servers {
		ends = append(ends, newEnd(s))
	}
	defer closeAll(ends)
	return dropLeftovers(ctx, ends, 4*slotPatience)
}

// dropLeftovers drops what replicated for batches that are no more. A slot is in use until the
// subscription on another of the servers is gone.
func dropLeftovers(ctx context.Context, ends []*end, patience time.Duration) error {
	busy := make([][]string, len(ends))
	for i, e := range ends {
		err := e.connect(ctx)
		if err == nil {
			busy[i], err = names(ctx, e.conn, "SELECT firn.drop_leftovers()::text")
			err = e.fault(err)
		}
		if err != nil {
			return err
		}
	}
	for i, e := range ends {
		for _, slot := range busy[i] {
			if err := dropSlot(ctx, e.conn, slot, patience); err != nil {
				return e.fault(fmt.Errorf("slot %s: %w", slot, err))
			}
		}
	}
	return nil
}

// dropSlot drops a slot, and ends who reads it where that goes on.
func dropSlot(ctx context.Context, c *pgx.Conn, name string, patience time.Duration) error {
	for begun := time.Now(); ; {
		var pid *int32
		err := c.QueryRow(ctx, "SELECT active_pid FROM pg_replication_slots WHERE slot_name = $1", name).Scan(&pid)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil
		case err != nil:
			return err
		case pid == nil:
			_, err := c.Exec(ctx, "SELECT pg_drop_replication_slot($1)", name)
			if sqlstate(err) != "55006" { // somebody has just come to read it
				return err
			}
		case time.Since(begun) > slotPatience:
			if _, err := c.Exec(ctx, "SELECT pg_terminate_backend($1)", *pid); err != nil {
				return err
			}
		}
		if time.Since(begun) > patience {
			return errors.New("it is still in use: firn shard doctor")
		}
		if err := pause(ctx, copyPause/4); err != nil {
			return err
		}
	}
}

// A remedy is how one kind of leftover is removed. Those of a lower order come first: the last row
// of a batch takes away what keeps its objects, and a subscription keeps its slot in use.
type remedy struct {
	order int
	harm  string // what comes of the leftover, for people
	state string // of the shard, whose row is locked; empty: of none in particular
	sql   string // with $1, the leftover's name, or the shard where it is of one; empty: it takes more
}

var remedies = map[Kind]remedy{
	Half:         {0, "it was broken off when it was ended", "", ""},
	Subscription: {1, "it would continue to write", "", "SELECT firn.drop_subscription(name) FROM firn.leftovers() WHERE kind = 'subscription' AND name = $1"},
	Publication:  {2, "it does nothing", "", "SELECT firn.drop_leftovers() FROM firn.leftovers() WHERE kind = 'publication' AND name = $1"},
	Slot:         {2, "it keeps WAL for nobody, until the disk is full", "", ""},
	Fence:        {2, "they are not in use: programs used the table when a move ended", "open", ""},
	Receiver:     {2, "they are not in use: programs used the table when a move ended", "open", ""},
	Mark:         {2, "it does nothing", "open", "SELECT firn.drop_mark(schema) FROM firn.shard WHERE shard = $1"},
	Copy:         {2, "it takes room", "moved", "SELECT firn.drop_copy($1, compared => true)"},
	Record:       {2, "the schema was dropped, and firn still lists the sequences that it had", "moved", "SELECT firn.forget_dropped() FROM firn.shard WHERE shard = $1"},
}

// Clean removes what Leftovers has found, except old copies, and calls done for each. It fails with a
// [*SurplusError] at a copy that has rows which the server lacks that serves the shard. It looks at each
// once more, under the lock of the shard, and leaves what a new move needs meanwhile.
func Clean(ctx context.Context, servers []topology.Server, left []Leftover, done func(Leftover)) error {
	ends := make(map[string]*end)
	for _, s := range servers {
		ends[s.Name] = newEnd(s)
		defer ends[s.Name].close()
	}
	ordered := slices.DeleteFunc(slices.Clone(left), func(l Leftover) bool { return l.Kind == Old })
	slices.SortStableFunc(ordered, func(a, b Leftover) int { return cmp.Compare(remedies[a.Kind].order, remedies[b.Kind].order) })
	for _, l := range ordered {
		e := ends[l.Server]
		if e == nil {
			return fmt.Errorf("shard: server %s is not named", l.Server)
		}
		if err := e.connect(ctx); err != nil {
			return err
		}
		if l.Kind == Copy {
			if err := l.copy.Drop(ctx, servers, ""); err != nil {
				return err
			}
		} else if err := l.clean(ctx, ends, e.conn); err != nil {
			return e.fault(fmt.Errorf("%s %s: %w", l.Kind.Text(), l.Name, err))
		}
		done(l)
	}
	return nil
}

// CleanAll removes what [Leftovers] finds, except old copies, and what shows only then: the end of a move leaves
// triggers. It calls done for each, and fails as [Clean] does. What is still there after it was removed stays.
func CleanAll(ctx context.Context, servers []topology.Server, done func(Leftover)) error {
	removed := make(map[string]bool)
	for {
		left, err := Leftovers(ctx, servers)
		if err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(l Leftover) bool { return l.Kind == Old || removed[l.id()] })
		if len(left) == 0 {
			return nil
		}
		if err := Clean(ctx, servers, left, done); err != nil {
			return err
		}
		for _, l := range left {
			removed[l.id()] = true
		}
	}
}

// id tells leftovers apart.
func (l Leftover) id() string { return strings.Join([]string{l.Server, string(l.Kind), l.Name}, " ") }

// clean removes one thing.
func (l Leftover) clean(ctx context.Context, ends map[string]*end, c *pgx.Conn) error {
	r := remedies[l.Kind]
	switch {
	case l.Kind == Half:
		return l.end(ctx, ends)
	case l.Kind == Slot:
		return dropSlot(ctx, c, l.Name, 4*slotPatience)
	case r.state != "":
		_, err := l.locked(ctx, c, r, -1)
		return err
	}
	_, err := c.Exec(ctx, r.sql, l.Name)
	return err
}

// end ends a move that one server knows of: where the shard is, it stays.
func (l Leftover) end(ctx context.Context, ends map[string]*end) error {
	m := New(ends[l.of.Source].given, ends[l.of.Target].given, nil)
	defer m.Close()
	end := m.Abort
	if l.moved {
		end = m.Finish
	}
	_, err := end(ctx, []int64{l.Shard})
	return err
}

// cleanLock is how long a table is waited for, while others wait behind.
const cleanLock = 2 * time.Second

// locked removes a thing of a shard while the row of the shard has the state of the remedy and the term, and
// is in no move. Term -1 is any. It reports whether the row was so.
func (l Leftover) locked(ctx context.Context, c *pgx.Conn, r remedy, term int64) (bool, error) {
	tx, err := c.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", cleanLock.Milliseconds())); err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, `SELECT FROM firn.shard WHERE shard = $1 AND state = $2 AND $3::bigint IN (-1, term) FOR UPDATE`, l.Shard, r.state, term)
	if err != nil {
		return false, err
	}
	// Whoever begins a move holds the lock of the row: now it shows.
	moves, err := tx.Exec(ctx, `SELECT FROM firn.move WHERE shard = $1`, l.Shard)
	if err != nil {
		return false, err
	}
	if tag.RowsAffected() == 0 || moves.RowsAffected() > 0 {
		return false, nil
	}
	if l.Kind == Fence || l.Kind == Receiver {
		err = l.dropTriggers(ctx, tx)
	} else {
		_, err = tx.Exec(ctx, r.sql, l.Shard)
	}
	if err != nil {
		return false, err
	}
	return true, tx.Commit(ctx)
}

const triggersSQL = `SELECT format('DROP TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass)
FROM firn.shard AS s JOIN pg_namespace AS n ON n.nspname = s.schema JOIN pg_class AS c ON c.relnamespace = n.oid JOIN pg_trigger AS t ON t.tgrelid = c.oid
WHERE s.shard = $1 AND n.nspname || '.' || c.relname = $2 AND (t.tgname = 'firn_fence' OR t.tgfoid = 'firn.check_receiver()'::regprocedure)`

// dropTriggers drops the triggers of one table. A transaction that locks one table only is in no deadlock with a
// program that writes to several.
func (l Leftover) dropTriggers(ctx context.Context, tx pgx.Tx) error {
	drops, err := names(ctx, tx, triggersSQL, l.Shard, l.Name)
	for _, sql := range drops {
		if err == nil {
			_, err = tx.Exec(ctx, sql)
		}
	}
	return err
}
