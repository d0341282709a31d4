package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// This file harms by what others do to shards: a move of another shard, and a change of the schema.

// spareRows are the rows of the other shard.
const spareRows = 2000

func (s *scene) spare() int64 { return int64(s.runs) + s.n }

// makeSpare makes a table on another shard.
func makeSpare(ctx context.Context, s *scene) error {
	return s.exec(ctx, "a", fmt.Sprintf("CREATE TABLE %[1]s.t (id bigint PRIMARY KEY DEFAULT %[1]s.next_id(), n bigint); INSERT INTO %[1]s.t (n) SELECT generate_series(1, %[2]d)", schemaOf(s.spare()), spareRows))
}

// moveSpare starts a mover of that other shard.
func moveSpare(_ context.Context, s *scene) error {
	other, err := s.startMover("move", s.spare())
	s.beside = append(s.beside, other)
	return err
}

// settleSpare brings that move to its end too, and counts rows.
func settleSpare(ctx context.Context, s *scene) error {
	for _, do := range []string{"move", "finish"} {
		if err := s.follow(ctx, do, s.spare(), s.o); err != nil {
			return err
		}
	}
	c, err := s.reached["b"].Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	var rows int64
	if err := c.QueryRow(ctx, "SELECT count(*) FROM "+schemaOf(s.spare())+".t").Scan(&rows); err != nil {
		return err
	}
	if rows != spareRows {
		s.o.problem("shard %d has %d rows, not %d", s.spare(), rows, spareRows)
	}
	return nil
}

// changes are those of a schema, and a row that only such a schema can have.
var changes = []struct{ schema, row, table, value string }{
	{"ALTER TABLE item ADD COLUMN extra integer DEFAULT 7", "INSERT INTO item (writer, n, pad, extra) VALUES (-1, 0, '', 8) RETURNING id", "item", "0"},
	{"CREATE TABLE late (id bigint PRIMARY KEY DEFAULT next_id(), n bigint NOT NULL)", "INSERT INTO late (n) VALUES (1) RETURNING id", "late", "1"},
	{"CREATE TABLE event_7 PARTITION OF event FOR VALUES IN (7)", "INSERT INTO event (day, writer, n) VALUES (7, -1, 0) RETURNING id", "event", "7 0"},
	{"ALTER TABLE log ALTER note TYPE varchar(100), ALTER item TYPE numeric", "INSERT INTO log (item, note) VALUES (5, '') RETURNING id", "log", "5"},
	{"CREATE INDEX item_by_n ON item (n)", "INSERT INTO item (writer, n, pad) VALUES (-1, 0, '') RETURNING id", "item", "0"},
}

// changeSchema changes the schema where the shard is, while programs write to it.
func changeSchema(ctx context.Context, s *scene) error {
	chosen := changes[s.random.IntN(len(changes))]
	for range 10 {
		var c change
		err := s.hand.shard.InTx(ctx, func(tx pgx.Tx) error {
			s.hand.place = placeOf(tx.Conn().Config())
			c = change{rows: map[row]string{}, drawn: map[string][]int64{}}
			if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '2s'; "+chosen.schema, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
			_, err := insert(ctx, tx, &c, chosen.table, chosen.value, chosen.row)
			return err
		})
		s.hand.settle(c, err)
		if err == nil || len(s.hand.doubts) > 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.o.Parted = s.hand.place == placeOf(s.reached["b"].Config) // the copy is the old one, and stays as it is
	return nil
}
