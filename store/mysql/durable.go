package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table"
)

// sqlFlush is a write after which the server's disk has all that was seen before.
// InnoDB shows a commit to others before its log is on the disk. The log is one
// sequence, in which a later commit comes later, and is acknowledged when the disk
// has it up to there. A synchronous binary log has a commit before others see it, but
// may leave a database out, which cannot be seen.
//
// Its rows are in the table that firn's user may write to, under keys that are none of
// [store.CheckKey]'s and lie above those of any List. They are several, as with a
// binary log one is locked until the disk has it. One becomes another each time: a
// server writes nothing where nothing changes.
func sqlFlush() string {
	const why = `"what was read is on the disk when this row is"`
	key, version := fmt.Sprint("\x7freads/", rand.N(16)), ascii(store.NewVersion())
	return fmt.Sprintf("INSERT INTO firn_records (`key`, value, version, written) VALUES (%s, '%s', %s, %s)"+
		" ON DUPLICATE KEY UPDATE version = %[3]s, written = %[4]s", ascii(key), why, version, sqlBegan)
}

// durable runs one of the statements that begin with sqlOn, and returns when what it
// found is on the disk. One connection has both sent to one run of one server.
func (s *Store) durable(ctx context.Context, conn *sql.Conn, query string) (table.Answer, error) {
	a, err := s.find(ctx, conn, query)
	if err != nil || len(a.List) == 0 {
		return a, err
	}
	err = s.table.Attempt(ctx, conn, func(q table.Querier) error {
		_, err := q.ExecContext(ctx, sqlFlush())
		return err
	})
	if missing(err) {
		err = s.table.Forgotten()
	}
	return a, err
}
