package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// This file has the transactions of writers.

// kinds are the transactions, and how many of a hundred are of each kind.
var kinds = []struct {
	share int
	of    string // the table of which it needs a row; empty: none
	do    func(ctx context.Context, w *writer, tx pgx.Tx, at row, c *change) error
}{
	{30, "", insertItem},
	{18, "item", changeItem},
	{8, "item", remove},
	{5, "", insertPage},
	{12, "page", changePage},
	{2, "page", rewritePage},
	{1, "page", remove},
	{5, "", insertEvent},
	{7, "event", moveEvent},
	{8, "seat", changeSeat},
	{4, "", insertBill},
}

// draftKinds are of the one writer that uses drafts, in place of insertBill.
var draftKinds = []func(ctx context.Context, w *writer, tx pgx.Tx, at row, c *change) error{insertDraft, insertDraft, insertDraft, truncateDrafts}

// chosen is the kind of the next transaction.
func (w *writer) chosen() int {
	n := w.random.IntN(100)
	for i, k := range kinds {
		if n -= k.share; n < 0 {
			return i
		}
	}
	return 0
}

// insert makes a row, and returns its id.
func insert(ctx context.Context, tx pgx.Tx, c *change, table, value, sql string, args ...any) (int64, error) {
	var id int64
	if err := tx.QueryRow(ctx, sql, args...).Scan(&id); err != nil {
		return 0, err
	}
	c.rows[row{table, id}] = value
	c.drawn["id"] = append(c.drawn["id"], id)
	return id, nil
}

// update runs a statement that has to find its row.
func update(ctx context.Context, tx pgx.Tx, c *change, sql string, args ...any) error {
	tag, err := tx.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() != 1 {
		err = errMissed
	}
	if err == nil {
		c.rest()
	}
	return err
}

// insertItem makes a row and one that is about it.
func insertItem(ctx context.Context, w *writer, tx pgx.Tx, _ row, c *change) error {
	item, err := insert(ctx, tx, c, "item", "0", "INSERT INTO item (writer, n, pad) VALUES ($1, 0, repeat('y', 100)) RETURNING id", w.number)
	if err != nil {
		return err
	}
	c.rest()
	_, err = insert(ctx, tx, c, "log", fmt.Sprint(item), "INSERT INTO log (item, note) VALUES ($1, 'made') RETURNING id", item)
	return err
}

func changeItem(ctx context.Context, w *writer, tx pgx.Tx, at row, c *change) error {
	var n int64
	fmt.Sscan(w.rows[at], &n)
	c.rows[at] = fmt.Sprint(n + 1)
	return update(ctx, tx, c, "UPDATE item SET n = n + 1 WHERE id = $1", at.key)
}

func remove(ctx context.Context, _ *writer, tx pgx.Tx, at row, c *change) error {
	c.rows[at] = gone
	return update(ctx, tx, c, "DELETE FROM "+at.table+" WHERE id = $1", at.key)
}

// insertPage makes a row with a body that is stored out of line.
func insertPage(ctx context.Context, w *writer, tx pgx.Tx, _ row, c *change) error {
	var id int64
	var sum string
	err := tx.QueryRow(ctx, "INSERT INTO page (writer, n, body) SELECT $1, 0, "+body+" FROM (SELECT 1 AS i) AS one RETURNING id, md5(body)", w.number).Scan(&id, &sum)
	c.rows[row{"page", id}] = "0 " + sum
	c.drawn["id"] = append(c.drawn["id"], id)
	if err == nil {
		c.rest()
	}
	return err
}

// changePage changes a row, and leaves its body as it is.
func changePage(ctx context.Context, w *writer, tx pgx.Tx, at row, c *change) error {
	n, sum, _ := strings.Cut(w.rows[at], " ")
	var now int64
	fmt.Sscan(n, &now)
	c.rows[at] = fmt.Sprintf("%d %s", now+1, sum)
	return update(ctx, tx, c, "UPDATE page SET n = n + 1 WHERE id = $1 AND md5(body) = $2", at.key, sum)
}

// rewritePage changes the body alone.
func rewritePage(ctx context.Context, w *writer, tx pgx.Tx, at row, c *change) error {
	n, _, _ := strings.Cut(w.rows[at], " ")
	var sum string
	err := tx.QueryRow(ctx, "UPDATE page SET body = (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 200)) WHERE id = $1 RETURNING md5(body)", at.key).Scan(&sum)
	c.rows[at] = n + " " + sum
	if errors.Is(err, pgx.ErrNoRows) {
		return errMissed
	}
	if err == nil {
		c.rest()
	}
	return err
}

func insertEvent(ctx context.Context, w *writer, tx pgx.Tx, _ row, c *change) error {
	day := w.random.Int64N(3)
	_, err := insert(ctx, tx, c, "event", eventValue(day, 0), "INSERT INTO event (day, writer, n) VALUES ($1, $2, 0) RETURNING id", day, w.number)
	if err == nil {
		c.rest()
	}
	return err
}

// moveEvent changes a row in its partition, or moves it to another one.
func moveEvent(ctx context.Context, w *writer, tx pgx.Tx, at row, c *change) error {
	var was, n int64
	fmt.Sscan(w.rows[at], &was, &n)
	day := w.random.Int64N(3)
	c.rows[at] = eventValue(day, n+1)
	return update(ctx, tx, c, "UPDATE event SET day = $3, n = n + 1 WHERE id = $1 AND day = $2", at.key, was, day)
}

// changeSeat changes a primary key, or what is beside it.
func changeSeat(ctx context.Context, w *writer, tx pgx.Tx, at row, c *change) error {
	var n int64
	fmt.Sscan(w.rows[at], &n)
	to := at
	if w.random.IntN(4) > 0 {
		w.seats++
		to.key = int64(w.number+1)*1_000_000_000 + w.seats
	}
	c.rows[at], c.rows[to] = gone, fmt.Sprint(n+1) // the second one counts, if they are the same
	return update(ctx, tx, c, "UPDATE seat SET seat = $2, n = n + 1 WHERE seat = $1", at.key, to.key)
}

// insertBill draws from two sequences.
func insertBill(ctx context.Context, w *writer, tx pgx.Tx, at row, c *change) error {
	if w.drafts {
		return draftKinds[w.random.IntN(len(draftKinds))](ctx, w, tx, at, c)
	}
	var bill, receipt int64
	cents := w.random.Int64N(10_000)
	if err := tx.QueryRow(ctx, "INSERT INTO bill (writer, cents) VALUES ($1, $2) RETURNING bill, receipt", w.number, cents).Scan(&bill, &receipt); err != nil {
		return err
	}
	c.rows[row{"bill", bill}] = billValue(receipt, cents)
	c.drawn["bill"], c.drawn["receipt"] = []int64{bill}, []int64{receipt}
	c.rest()
	return nil
}

func insertDraft(ctx context.Context, w *writer, tx pgx.Tx, _ row, c *change) error {
	_, err := insert(ctx, tx, c, "draft", fmt.Sprint(w.number), "INSERT INTO draft (writer) VALUES ($1) RETURNING id", w.number)
	return err
}

func truncateDrafts(ctx context.Context, w *writer, tx pgx.Tx, _ row, c *change) error {
	for r := range w.rows {
		if r.table == "draft" {
			c.rows[r] = gone
		}
	}
	_, err := tx.Exec(ctx, "TRUNCATE draft")
	return err
}
