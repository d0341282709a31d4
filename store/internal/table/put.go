package table

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/firn-id/firn/store"
)

// Put is [store.Store]'s.
func (t *Table) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if err := Check(key, value); err != nil {
		return store.Record{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Record{}, err
	}
	if !Possible(cond) {
		return store.Record{}, store.ErrConflict
	}
	// A *sql.DB sends a statement again if the driver says that the connection was
	// bad. A connection of one's own does not.
	conn, err := Conn(ctx, t.DB)
	if err != nil {
		return store.Record{}, t.Explain(ctx, t.DB, err)
	}
	defer conn.Close()
	next := store.Record{Key: key, Value: slices.Clone(value), Version: store.NewVersion()}
	return t.outcome(ctx, conn, next, t.put(ctx, conn, &next, cond))
}

// put sends one Put. If there is no table yet it creates that, and sends the Put again.
func (t *Table) put(ctx context.Context, conn *sql.Conn, next *store.Record, cond store.Condition) error {
	seen := t.Seen()
	write := func(q Querier) error { return t.Write(ctx, q, next, cond) }
	err := t.Attempt(ctx, conn, write)
	if t.Missing(err) {
		if err := t.missing(ctx, conn, seen); err != nil {
			return &UnsentError{err}
		}
		if cond.Version != "" {
			return store.ErrConflict // no table, no record of that Version
		}
		if err := t.Ensure(ctx, conn); err != nil {
			return &UnsentError{err}
		}
		if err = t.Attempt(ctx, conn, write); t.Missing(err) {
			return &UnsentError{t.Forgotten()}
		}
	}
	if err == nil || errors.Is(err, store.ErrConflict) {
		t.See()
	}
	return err
}

// Ensure is for the first Put. It creates no table where there was one.
func (t *Table) Ensure(ctx context.Context, conn *sql.Conn) error {
	if t.Seen() {
		return nil
	}
	if err := t.Create(ctx, conn); err != nil {
		return err
	}
	t.See()
	return nil
}

// Attempt sends a statement that writes, and once more in a [Tx] after the server refused
// it, for certain, because of what others wrote.
func (t *Table) Attempt(ctx context.Context, conn *sql.Conn, send func(Querier) error) error {
	err := send(conn)
	if !t.Repeat(err) {
		return err
	}
	tx, err := t.Begin(ctx, conn)
	if err != nil {
		return &UnsentError{err}
	}
	if err := send(tx); err != nil {
		tx.Undo(ctx)
		return err
	}
	return tx.End(ctx)
}

// Replace ends an Update: it replaces the record that tx holds, and commits. After an error
// tx has ended.
func (t *Table) Replace(ctx context.Context, tx Tx, held store.Record, value []byte) (store.Record, error) {
	next := store.Record{Key: held.Key, Value: slices.Clone(value), Version: store.NewVersion()}
	err := Check(next.Key, next.Value)
	if err == nil {
		err = t.Write(ctx, tx, &next, store.Condition{Version: held.Version})
	}
	if errors.Is(err, store.ErrConflict) {
		err = errors.New("the server did not replace a record that it had locked; has the table a trigger or a rule?")
	}
	if err != nil { // COMMIT was not sent
		err = t.Explain(ctx, tx, err)
		tx.Undo(ctx)
		return store.Record{}, err
	}
	return t.outcome(ctx, tx, next, tx.End(ctx))
}

// outcome is what a write of next returns that ended with err.
func (t *Table) outcome(ctx context.Context, q Querier, next store.Record, err error) (store.Record, error) {
	switch {
	case err == nil:
		return next, nil
	case t.certain(err):
		return store.Record{}, t.Explain(ctx, q, err)
	}
	return store.Record{Key: next.Key, Version: next.Version}, t.Explain(ctx, q, err)
}

// certain says that a write that ended so was not and will not be carried out: nothing was
// sent, the condition did not hold, or the server refused it.
func (t *Table) certain(err error) bool {
	var unsent *UnsentError
	return errors.Is(err, store.ErrConflict) || errors.As(err, &unsent) || t.Refused(err)
}
