package main

import (
	"context"
	"maps"

	"github.com/jackc/pgx/v5"
)

// A verdict is what was found when every row was compared with what was acknowledged.
type verdict struct {
	Rows      int64 // that are there
	Lost      int64 // acknowledged, and not there
	Wrong     int64 // there, and not as acknowledged
	Extra     int64 // there, and of nobody
	Repeated  int64 // ids and numbers of sequences that were given twice
	Unordered int64 // ids and numbers of a writer that are not above the one before
}

// bad is how much is not as it should be.
func (v verdict) bad() int64 { return v.Lost + v.Wrong + v.Extra + v.Repeated + v.Unordered }

// compare compares the rows of a shard where it is with what writers know.
func compare(ctx context.Context, c *pgx.Conn, schema string, writers []*writer) (verdict, error) {
	var v verdict
	rows, count, err := rowsOf(ctx, c, schema)
	if err != nil {
		return v, err
	}
	v.Rows, v.Extra = count, count-int64(len(rows)) // of two rows of one key, one is of nobody
	for _, w := range writers {
		v.match(rows, w.rows)
	}
	for _, w := range writers { // a number in doubt may have been given again
		for _, d := range w.doubts {
			v.matchDoubt(rows, d)
		}
	}
	v.Extra += int64(len(rows))
	v.countNumbers(writers)
	return v, nil
}

// match takes those rows away that are known.
func (v *verdict) match(rows, known map[row]string) {
	for r, value := range known {
		switch is, there := rows[r]; {
		case !there:
			v.Lost++
		case is != value:
			v.Wrong++
		}
		delete(rows, r)
	}
}

// matchDoubt takes the rows of a transaction away of which nobody knows whether it was committed:
// all of them are as before it, or all as after it.
func (v *verdict) matchDoubt(rows map[row]string, d doubt) {
	is := make(map[row]string)
	for r := range d.after {
		is[r] = gone
		if value, there := rows[r]; there {
			is[r] = value
		}
		delete(rows, r)
	}
	if !maps.Equal(is, d.before) && !maps.Equal(is, d.after) {
		v.Wrong++
	}
}

// countNumbers looks at what writers have drawn, of each source in the order in which it was
// acknowledged.
func (v *verdict) countNumbers(writers []*writer) {
	given := make(map[row]bool) // by the source
	for _, w := range writers {
		for source, numbers := range w.drawn {
			last := int64(0)
			for _, n := range numbers {
				if given[row{source, n}] {
					v.Repeated++
				}
				if n <= last {
					v.Unordered++
				}
				given[row{source, n}], last = true, n
			}
		}
	}
}
