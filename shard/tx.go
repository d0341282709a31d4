package shard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/trouble"
)

// ErrAmbiguous says that the connection was lost, or that ctx ended, during the commit. The transaction may
// have been committed or not; only the data tell. InTx never runs such a transaction again.
var ErrAmbiguous = errors.New("nobody knows whether the transaction was committed")

// A TxError says on which shard and server a transaction failed.
type TxError struct {
	Shard  int64
	Server string
	Err    error
	Advice string // what to do, or empty
}

func (e *TxError) Error() string {
	text := fmt.Sprintf("shard: shard %d on %s: %v", e.Shard, e.Server, e.Err)
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}
func (e *TxError) Unwrap() error { return e.Err }

// InTx runs f in a transaction on the shard, and commits it. Names without a schema
// mean the shard's, and then public's, until the transaction ends.
//
// Where the shard is not, or not open, f is not run; where it moves away meanwhile, the
// transaction is rolled back and f runs again on the other server. So f may run more
// than once, and should do nothing besides that cannot be done twice. It neither
// commits nor rolls back itself. An error of f rolls back, and is returned within a
// [*TxError]. If the error is [ErrAmbiguous], nobody knows what became of the
// transaction; with every other error it was not committed.
func (s Shard) InTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	return s.InTxOptions(ctx, pgx.TxOptions{}, f)
}

// InTxOptions is [Shard.InTx] with an isolation level, an access mode or a deferrable mode. It refuses a
// BeginQuery and a CommitQuery.
func (s Shard) InTxOptions(ctx context.Context, o pgx.TxOptions, f func(tx pgx.Tx) error) error {
	switch {
	case s.err != nil:
		return s.err
	case s.cluster == nil:
		return errors.New("shard: a zero Shard is of no cluster")
	case o.BeginQuery != "" || o.CommitQuery != "":
		return errors.New("shard: a transaction on a shard takes no BeginQuery and no CommitQuery")
	}
	r := run{Shard: s, options: o, f: f}
	for {
		err := r.try(ctx)
		if err == nil {
			return nil
		}
		if err = r.settle(ctx, err); err != nil {
			return err
		}
	}
}

// A run is a transaction until it has ended, by however many tries.
type run struct {
	Shard
	options pgx.TxOptions
	f       func(pgx.Tx) error

	server  string           // of this try; empty: there is none
	stage   stage            // how far it came
	trouble time.Time        // when the first try failed
	said    map[string]error // what servers said last, by name
	hops    int              // how often the shard was followed
}

// A stage is how far a try came. An error before working has done nothing, and can be
// tried again.
type stage int

const (
	routing stage = iota
	connecting
	entering // also where the shard refused what f did, and that was rolled back
	working
)

// try runs the transaction where the shard should be.
func (r *run) try(ctx context.Context) (err error) {
	r.stage = routing
	if r.server, err = r.cluster.route(r.number); err != nil {
		return err
	}
	r.stage = connecting
	conn, err := r.cluster.servers[r.server].Acquire(ctx)
	if err != nil {
		return trouble.Explain(err)
	}
	defer conn.Release() // one in a transaction, as after a panic of f, is thrown away
	r.stage = entering
	tx, err := r.begin(ctx, conn.Conn())
	if err != nil {
		return err
	}
	r.stage = working
	if err := r.f(tx); err != nil {
		return r.failed(ctx, tx, err)
	}
	return r.commit(ctx, tx)
}

// enter is the SQL that fails where the shard is not.
func (r *run) enter() string {
	return fmt.Sprintf("select firn.enter(%d, %s)", r.number, literal(r.cluster.id))
}

// begin begins the transaction and enters the shard, in one round trip.
func (r *run) begin(ctx context.Context, conn *pgx.Conn) (pgx.Tx, error) {
	words := []string{"begin"}
	if r.options.IsoLevel != "" {
		words = append(words, "isolation level", string(r.options.IsoLevel))
	}
	words = append(words, string(r.options.AccessMode), string(r.options.DeferrableMode)+";", r.enter())
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: strings.Join(words, " ")})
	if err != nil && !conn.IsClosed() {
		// It has begun, and is aborted. Ended, the connection is as good as before;
		// else the pool throws it away.
		conn.Exec(ctx, "rollback")
	}
	return tx, err
}

// failed rolls back after an error of f.
func (r *run) failed(ctx context.Context, tx pgx.Tx, err error) error {
	status := tx.Conn().PgConn().TxStatus()
	lost := tx.Rollback(ctx) != nil
	switch {
	case (status == 'E' || lost) && shardGone[sqlstate(err)]:
		r.stage = entering // a server that is lost now has said so before
		return err
	case lost:
		return err
	case status == 'E':
		return r.reason(ctx, tx.Conn(), err)
	case status == 'T' && shardGone[sqlstate(err)]:
		// A savepoint was rolled back to; or it is the word of another shard.
		return r.ask(ctx, tx.Conn(), err)
	}
	return err // the database has refused nothing
}

// commit commits. Once that was asked for, only an answer tells what became of it.
func (r *run) commit(ctx context.Context, tx pgx.Tx) error {
	conn := tx.Conn()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case conn.IsClosed():
		return errors.New("the connection was lost before the commit")
	case conn.PgConn().TxStatus() == 'I':
		return fmt.Errorf("the function ended the transaction itself: %w", pgx.ErrTxClosed)
	}
	err := tx.Commit(ctx)
	var answer *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback), errors.As(err, &answer) && !conn.IsClosed():
		return r.reason(ctx, conn, err) // the server has rolled back, and goes on
	}
	return fmt.Errorf("%w: %w", ErrAmbiguous, err)
}

// reason finds out whether it was because of the shard that the database refused
// something, which was rolled back. Where the error of f does not say, the server is
// asked.
func (r *run) reason(ctx context.Context, conn *pgx.Conn, err error) error {
	code := sqlstate(err)
	if code != "" && code != "25P02" && !shardGone[code] && answers[code].do != look {
		return err // which is not that of a statement after the one that was refused
	}
	if !shardGone[code] {
		return r.ask(ctx, conn, err)
	}
	r.stage = entering
	return err
}

// ask asks the server, outside of a transaction, whether the shard is there. If so, it
// returns the error that there was.
func (r *run) ask(ctx context.Context, conn *pgx.Conn, err error) error {
	_, now := conn.Exec(ctx, r.enter())
	if sqlstate(now) == "" {
		return err
	}
	r.stage = entering
	return now
}

// shardGone are the SQLSTATEs of a fence, and of a generator that was closed.
var shardGone = map[string]bool{"ID001": true, "ID002": true}

// sqlstate is that of an error, or empty.
func sqlstate(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// literal quotes a text, for standard_conforming_strings.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
