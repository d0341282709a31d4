package migrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnknown says that the connection was lost during the commit. The shard's records say whether the file
// was applied, and the next run reads them.
var ErrUnknown = errors.New("the connection was lost at COMMIT: whether the file was applied is unknown, and found out by the next run")

// ErrMoving says that a move of the shard has begun. The other copy would not get the file.
var ErrMoving = errors.New("its move began meanwhile, so it gets the file after the move")

// A FileError says where in a file an error is.
type FileError struct {
	File string
	Line int // from 1
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, message(e.Err)) }
func (e *FileError) Unwrap() error { return e.Err }

// message is what the server said, without how the library prints it.
func message(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err.Error()
	}
	text := pg.Message
	if pg.Detail != "" {
		text += ": " + pg.Detail
	}
	return text + " (" + pg.Code + ")"
}

// A session applies the files of one shard over one connection.
type session struct {
	conn    *pgconn.PgConn
	work    Work
	cluster string
	options Options
}

// How often a transaction is begun that got no lock in time, and the longest pause
// between two.
const (
	tries = 5
	pause = 500 * time.Millisecond
)

// apply applies a file, unless somebody else has.
func (s *session) apply(ctx context.Context, f File) error {
	if f.Outside {
		return s.outside(ctx, f)
	}
	for try := 1; ; try++ {
		err := s.inTransaction(ctx, f)
		var pg *pgconn.PgError
		if try == tries || !errors.As(err, &pg) || pg.Code != "55P03" && pg.Code != "40P01" {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

// inTransaction applies a file and its record, together.
func (s *session) inTransaction(ctx context.Context, f File) error {
	known, err := s.begin(ctx, f, fmt.Sprintf("SET LOCAL lock_timeout = %d; ", s.options.LockTimeout.Milliseconds()))
	if err != nil || known {
		return errors.Join(err, s.rollback(ctx))
	}
	for _, st := range f.statements {
		err := s.statement(ctx, f, st)
		if err == nil && s.conn.TxStatus() != 'T' {
			err = &FileError{f.Name, st.line, errors.New("this statement has ended the transaction, what was before it is applied: undo it by hand")}
		}
		if err != nil {
			return errors.Join(err, s.rollback(ctx))
		}
	}
	const record = "INSERT INTO %s (number, name, sum, applied) VALUES ($1, $2, $3, pg_catalog.now())"
	if err := s.exec(ctx, fmt.Sprintf(record, table(s.work.Schema)), strconv.FormatInt(f.Number, 10), f.Name, f.Sum); err != nil {
		return errors.Join(fmt.Errorf("%s: its record: %w", f.Name, err), s.rollback(ctx))
	}
	var pg *pgconn.PgError
	switch err = s.commit(ctx); {
	case err == nil:
		s.work.first = false
	case errors.As(err, &pg) && !errors.Is(err, ErrUnknown): // such as a deferred constraint
		return &FileError{f.Name, f.statements[len(f.statements)-1].line, err}
	}
	return err
}

// idleTime is how long a run that says nothing keeps what it has locked, as one whose host
// was cut off: others wait for it.
const idleTime = 10 * time.Second

// begin begins a transaction on the shard, in which nobody else applies files to it.
// It says whether the file has been applied meanwhile.
func (s *session) begin(ctx context.Context, f File, settings string) (known bool, err error) {
	records := table(s.work.Schema)
	var b strings.Builder
	// Read committed: what is read after the lock is what there was when it was got.
	b.WriteString("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; " + settings)
	fmt.Fprintf(&b, "SET LOCAL statement_timeout = %d; SET LOCAL idle_in_transaction_session_timeout = %d; ", s.options.StatementTimeout.Milliseconds(), idleTime.Milliseconds())
	fmt.Fprintf(&b, "SELECT firn.enter(%d, %s); ", s.work.Shard, literal(s.cluster))
	moving := "false"
	if !s.options.Moving {
		// A move locks the row too when it begins. So it begins before this, and is seen, or after the file.
		fmt.Fprintf(&b, "SELECT FROM firn.shard WHERE shard = %d FOR SHARE; ", s.work.Shard)
		moving = fmt.Sprintf("EXISTS (SELECT FROM firn.move WHERE shard = %d)", s.work.Shard)
	}
	if s.work.first {
		b.WriteString(makeTable(s.work.Schema))
	}
	fmt.Fprintf(&b, "LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE; ", records)
	fmt.Fprintf(&b, "SELECT %s; SELECT sum FROM %s WHERE number = %d AND applied IS NOT NULL", moving, records, f.Number)
	results, err := s.conn.Exec(ctx, b.String()).ReadAll()
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == "42P07" && s.work.first:
		return false, errors.New("somebody else began to apply files at the same time: run it again")
	case err != nil:
		return false, err
	}
	if string(results[len(results)-2].Rows[0][0]) == "t" {
		return false, ErrMoving
	}
	last := results[len(results)-1].Rows
	if len(last) > 0 && string(last[0][0]) != f.Sum {
		return false, &ConflictError{f.Name, Changed, []int64{s.work.Shard}}
	}
	return len(last) > 0, nil
}

// statement runs one statement. It is the server that sees that it is one.
func (s *session) statement(ctx context.Context, f File, st statement) error {
	err := s.exec(ctx, st.text)
	if err == nil {
		return nil
	}
	line := st.line
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Position > 0 {
		line += strings.Count(firstRunes(st.text, int(pg.Position)-1), "\n")
	}
	return &FileError{f.Name, line, err}
}

// firstRunes is the beginning of a text.
func firstRunes(text string, n int) string {
	at := 0
	for range n {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return text[:at]
}

// exec runs one statement and leaves out what it returns.
func (s *session) exec(ctx context.Context, sql string, args ...string) error {
	values := make([][]byte, len(args))
	for i, arg := range args {
		values[i] = []byte(arg)
	}
	r := s.conn.ExecParams(ctx, sql, values, nil, nil, nil)
	for r.NextRow() {
	}
	_, err := r.Close()
	return err
}

// commitTime is how long the end of a transaction is waited for, and is not broken
// off by whoever has had enough.
const commitTime = 30 * time.Second

func (s *session) commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	results, err := s.conn.Exec(ctx, "COMMIT").ReadAll()
	switch {
	case s.conn.IsClosed():
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case err != nil:
		return err
	case results[0].CommandTag.String() != "COMMIT":
		return errors.New("the transaction was rolled back")
	}
	return nil
}

// rollback ends the transaction, unless its connection has ended.
func (s *session) rollback(ctx context.Context) error {
	if s.conn.IsClosed() || s.conn.TxStatus() == 'I' {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	_, err := s.conn.Exec(ctx, "ROLLBACK").ReadAll()
	return err
}

// outside runs the statements of a file each by itself, between a record that it has
// begun and one that it has ended. One that was broken off begins anew.
func (s *session) outside(ctx context.Context, f File) error {
	if err := s.lockAlone(ctx); err != nil {
		return err
	}
	known, path, err := s.beginOutside(ctx, f)
	if err != nil || known {
		return err
	}
	// Neither a wait of theirs nor a wait for others holds up whoever uses the table.
	settings := fmt.Sprintf("SET search_path = %s; SET lock_timeout = 0; SET statement_timeout = %d", path, s.options.StatementTimeout.Milliseconds())
	if _, err := s.conn.Exec(ctx, settings).ReadAll(); err != nil {
		return err
	}
	for _, st := range f.statements {
		if err := s.enter(ctx); err != nil {
			return err
		}
		if err := s.statement(ctx, f, st); err != nil {
			return err
		}
	}
	return s.endOutside(ctx, f)
}

// aloneTime is how long whoever else runs such a file on the shard is waited for: it
// may have been killed, which the server notices when its statement ends.
const aloneTime = 10 * time.Second

// lockAlone keeps others from running a file outside of a transaction on the shard,
// until the connection is cleared or lost.
func (s *session) lockAlone(ctx context.Context) error {
	lock := fmt.Sprintf("SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended(%s, 0))", literal(table(s.work.Schema)))
	for begun := time.Now(); ; {
		got, err := s.value(ctx, lock)
		switch {
		case err != nil || got == "t":
			return err
		case time.Since(begun) > aloneTime:
			return errors.New("somebody else applies files to it")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause / 10):
		}
	}
}

// beginOutside writes that a file has begun, and says what the search path is on the
// shard.
func (s *session) beginOutside(ctx context.Context, f File) (known bool, path string, err error) {
	known, err = s.begin(ctx, f, "")
	if err != nil || known {
		return known, "", errors.Join(err, s.rollback(ctx))
	}
	const record = `INSERT INTO %s (number, name, sum) VALUES ($1, $2, $3)
		ON CONFLICT (number) DO UPDATE SET name = excluded.name, sum = excluded.sum, begun = excluded.begun, role = excluded.role`
	err = s.exec(ctx, fmt.Sprintf(record, table(s.work.Schema)), strconv.FormatInt(f.Number, 10), f.Name, f.Sum)
	if err == nil {
		path, err = s.value(ctx, "SELECT pg_catalog.current_setting('search_path')")
	}
	if err != nil {
		return false, "", errors.Join(err, s.rollback(ctx))
	}
	if err := s.commit(ctx); err != nil {
		return false, "", err
	}
	s.work.first = false
	return false, path, nil
}

// enter makes sure that the shard is still here.
func (s *session) enter(ctx context.Context) error {
	return s.exec(ctx, fmt.Sprintf("SELECT firn.enter(%d, %s)", s.work.Shard, literal(s.cluster)))
}

// endOutside writes that a file has ended. An index that was begun concurrently and
// is not valid is there by its name only, and a second run may have found it enough.
func (s *session) endOutside(ctx context.Context, f File) error {
	const invalid = `SELECT pg_catalog.string_agg(c.relname, ', ' ORDER BY c.relname)
		FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
		JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = %s AND c.relkind = 'i' AND NOT i.indisvalid`
	names, err := s.value(ctx, fmt.Sprintf(invalid, literal(s.work.Schema)))
	if err != nil {
		return err
	}
	if names != "" {
		return &FileError{f.Name, 1, fmt.Errorf("the index %s is not valid: drop it first thing in the file, with DROP INDEX CONCURRENTLY IF EXISTS", names)}
	}
	if err := s.exec(ctx, "BEGIN"); err != nil {
		return err
	}
	err = s.enter(ctx)
	if err == nil {
		err = s.exec(ctx, fmt.Sprintf("UPDATE %s SET applied = pg_catalog.now() WHERE number = $1", table(s.work.Schema)), strconv.FormatInt(f.Number, 10))
	}
	if err != nil {
		return errors.Join(err, s.rollback(ctx))
	}
	return s.commit(ctx)
}

// value runs a statement that returns one text, or NULL, which is none.
func (s *session) value(ctx context.Context, sql string) (string, error) {
	r := s.conn.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
	if r.Err != nil {
		return "", r.Err
	}
	if len(r.Rows) != 1 {
		return "", pgx.ErrNoRows
	}
	return string(r.Rows[0][0]), nil
}
