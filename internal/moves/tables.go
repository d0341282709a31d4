package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// This file has the tables of a shard. Each has something that a move could lose.

// tables are made in the schema of a shard.
const tables = `
CREATE TABLE SCHEMA.item (id bigint PRIMARY KEY DEFAULT SCHEMA.next_id(), writer integer NOT NULL, n bigint NOT NULL, pad text NOT NULL);
CREATE TABLE SCHEMA.log (id bigint PRIMARY KEY DEFAULT SCHEMA.next_id(), item bigint NOT NULL, note text NOT NULL);

-- The body is stored out of line. An UPDATE of n does not write it, so the log of the server does not have it.
CREATE TABLE SCHEMA.page (id bigint PRIMARY KEY DEFAULT SCHEMA.next_id(), writer integer NOT NULL, n bigint NOT NULL, body text NOT NULL);
ALTER TABLE SCHEMA.page ALTER body SET STORAGE EXTERNAL;

-- Primary keys are changed.
CREATE TABLE SCHEMA.seat (seat bigint PRIMARY KEY, writer integer NOT NULL, n bigint NOT NULL);

-- Rows change their partition.
CREATE TABLE SCHEMA.event (id bigint DEFAULT SCHEMA.next_id(), day integer, writer integer NOT NULL, n bigint NOT NULL, PRIMARY KEY (id, day)) PARTITION BY LIST (day);
CREATE TABLE SCHEMA.event_0 PARTITION OF SCHEMA.event FOR VALUES IN (0);
CREATE TABLE SCHEMA.event_1 PARTITION OF SCHEMA.event FOR VALUES IN (1);
CREATE TABLE SCHEMA.event_others PARTITION OF SCHEMA.event DEFAULT;

-- Two sequences of the application.
CREATE TABLE SCHEMA.bill (bill bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, receipt bigserial, writer integer NOT NULL, cents bigint NOT NULL);

-- One writer alone uses and truncates it.
CREATE TABLE SCHEMA.draft (id bigint PRIMARY KEY DEFAULT SCHEMA.next_id(), writer integer NOT NULL);
`

// readings give the key and the value of each row of a table. The table late is one that a
// change of the schema made.
var readings = []struct{ table, sql string }{
	{"item", "SELECT id, n::text FROM SCHEMA.item"},
	{"log", "SELECT id, item::text FROM SCHEMA.log"},
	{"page", "SELECT id, n || ' ' || md5(body) FROM SCHEMA.page"},
	{"seat", "SELECT seat, n::text FROM SCHEMA.seat"},
	{"event", "SELECT id, day || ' ' || n FROM SCHEMA.event"},
	{"bill", "SELECT bill, receipt || ' ' || cents FROM SCHEMA.bill"},
	{"draft", "SELECT id, writer::text FROM SCHEMA.draft"},
	{"late", "SELECT id, n::text FROM SCHEMA.late"},
}

// The values of rows, as readings give them.
func eventValue(day, n int64) string        { return fmt.Sprintf("%d %d", day, n) }
func billValue(receipt, cents int64) string { return fmt.Sprintf("%d %d", receipt, cents) }

// A row is one of a table, by its key.
type row struct {
	table string
	key   int64
}

// rowsOf reads all rows of a shard, and how many there are. Two rows of one key are two.
func rowsOf(ctx context.Context, c *pgx.Conn, schema string) (all map[row]string, count int64, err error) {
	all = make(map[row]string)
	for _, r := range readings {
		var there bool
		if err := c.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", schema+"."+r.table).Scan(&there); err != nil {
			return nil, 0, err
		}
		if !there {
			continue
		}
		rows, err := c.Query(ctx, strings.ReplaceAll(r.sql, "SCHEMA", schema))
		if err != nil {
			return nil, 0, err
		}
		var key int64
		var value string
		_, err = pgx.ForEachRow(rows, []any{&key, &value}, func() error {
			all[row{r.table, key}] = value
			count++
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
	}
	return all, count, nil
}

// preloaded are the rows before the move. Row i is of the writer i % WRITERS.
const preloaded = `
SET default_tablespace = 'TABLESPACE';` + tables + `
INSERT INTO SCHEMA.item (writer, n, pad) SELECT i % WRITERS, 0, repeat('x', 100) FROM generate_series(1, ROWS) AS i;
INSERT INTO SCHEMA.page (writer, n, body) SELECT i % WRITERS, 0, BODY FROM generate_series(1, 20 * WRITERS) AS i;
INSERT INTO SCHEMA.event (day, writer, n) SELECT i % 3, i % WRITERS, 0 FROM generate_series(1, 50 * WRITERS) AS i;
INSERT INTO SCHEMA.seat SELECT i, i % WRITERS, 0 FROM generate_series(1, 50 * WRITERS) AS i;
ANALYZE SCHEMA.item, SCHEMA.page, SCHEMA.event, SCHEMA.seat;`

// body is a text of 6,400 characters, each one another.
const body = "(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 200) WHERE i > 0)"

// preload makes the tables of a shard, most of its rows as items. Each writer gets its own rows.
func (w *world) preload(ctx context.Context, schema, tablespace string, writers []*writer) error {
	c, err := w.reached["a"].Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	sql := strings.NewReplacer("SCHEMA", schema, "TABLESPACE", tablespace, "ROWS", fmt.Sprint(w.rows), "WRITERS", fmt.Sprint(len(writers)), "BODY", body).Replace(preloaded)
	if _, err := c.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	all, _, err := rowsOf(ctx, c, schema)
	if err != nil {
		return err
	}
	for _, table := range []string{"item", "page", "event", "seat"} {
		if err := w.deal(ctx, c, schema, table, all, writers); err != nil {
			return err
		}
	}
	return nil
}

// deal has each writer know its rows of a table.
func (w *world) deal(ctx context.Context, c *pgx.Conn, schema, table string, all map[row]string, writers []*writer) error {
	key := "id"
	if table == "seat" {
		key = "seat"
	}
	rows, err := c.Query(ctx, fmt.Sprintf("SELECT %s, writer FROM %s.%s ORDER BY 1", key, schema, table))
	if err != nil {
		return err
	}
	var n int64
	var of int
	_, err = pgx.ForEachRow(rows, []any{&n, &of}, func() error {
		writers[of].put(row{table, n}, all[row{table, n}])
		return nil
	})
	return err
}

// dropTables drops the tables of a shard.
func (w *world) dropTables(ctx context.Context, at, schema string) error {
	var sql strings.Builder
	for _, r := range readings {
		fmt.Fprintf(&sql, "DROP TABLE IF EXISTS %s.%s;", schema, r.table)
	}
	return w.exec(ctx, at, sql.String())
}
