package main

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// A verdict is what was found when every row was compared with what was acknowledged.
type verdict struct {
	Rows      int64 // that are there
	Lost      int64 // acknowledged, and not there
	Wrong     int64 // there, and not as acknowledged
	Extra     int64 // there, and of nobody
	Repeated  int64 // ids that were given twice
	Unordered int64 // ids of a writer that are not above the one before
}

// bad is how much is not as it should be.
func (v verdict) bad() int64 { return v.Lost + v.Wrong + v.Extra + v.Repeated + v.Unordered }

// compare compares the rows of a shard where it is with what writers know.
func compare(ctx context.Context, c *pgx.Conn, schema string, writers []*writer) (verdict, error) {
	var v verdict
	items, err := rowsOf(ctx, c, "SELECT id, n FROM "+schema+".item")
	if err != nil {
		return v, err
	}
	logs, err := rowsOf(ctx, c, "SELECT id, item FROM "+schema+".log")
	if err != nil {
		return v, err
	}
	v.Rows = int64(len(items) + len(logs))
	given := make(map[int64]bool)
	for _, w := range writers {
		v.match(items, w.items)
		v.match(logs, w.logs)
		for id, may := range w.maybe {
			v.matchMaybe(items, logs, id, may)
		}
		last := int64(0)
		for _, id := range w.ids {
			if given[id] {
				v.Repeated++
			}
			if id <= last {
				v.Unordered++
			}
			given[id], last = true, id
		}
	}
	v.Extra = int64(len(items) + len(logs))
	return v, nil
}

// rowsOf reads pairs of numbers.
func rowsOf(ctx context.Context, c *pgx.Conn, sql string) (map[int64]int64, error) {
	rows, err := c.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	all := make(map[int64]int64)
	var id, value int64
	_, err = pgx.ForEachRow(rows, []any{&id, &value}, func() error { all[id] = value; return nil })
	return all, err
}

// match takes those rows away that are known.
func (v *verdict) match(rows, known map[int64]int64) {
	for id, value := range known {
		switch is, there := rows[id]; {
		case !there:
			v.Lost++
		case is != value:
			v.Wrong++
		}
		delete(rows, id)
	}
}

// matchMaybe takes a row away that may be as one of two.
func (v *verdict) matchMaybe(items, logs map[int64]int64, id int64, may []int64) {
	is := int64(gone)
	for _, rows := range []map[int64]int64{items, logs} {
		if value, there := rows[id]; there {
			is = value
		}
		delete(rows, id)
	}
	if !slices.Contains(may, is) {
		v.Wrong++
	}
}
