package move

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/shard/topology"
)

// This file estimates what a move takes, by what it measures of both servers in about a second.

const (
	// sample is for how long servers are measured.
	sample = time.Second
	// readTime is the part of it in which a table is read.
	readTime = 600 * time.Millisecond
	// readBytes is how much of the table is read at most, by the table's size.
	readBytes = 32 << 20
	// LeastRows is how many rows a table must have to say how fast it is read.
	LeastRows = 1000
	// probePause is between two looks at how fast a server answers.
	probePause = 40 * time.Millisecond

	// SlowerWrites is how many times as long as the reading of a row its writing is assumed to take on the other server, with
	// its indexes. Nothing is written to measure it.
	SlowerWrites = 4
	// tableTime is how long the copy of a table takes besides its rows.
	tableTime = 200 * time.Millisecond
)

// Measured is what a plan has measured of the servers.
type Measured struct {
	Objects   int           // tables and sequences of the shard that has most
	Trip      time.Duration // to a server and back, of the slower one
	Slower    float64       // how many times as long as the fastest answer one answer in ten took, or longer
	CopyRate  float64       // bytes of shards a second that this host reads from the source; 0: not measured
	CopyTable string        // that was read to measure it
	WALLimit  int64         // max_slot_wal_keep_size of the source, in bytes; -1: none
}

// CopyTime returns how long the copy is expected to take: at the rate at which this host reads from the source, and if
// the target writes [SlowerWrites] times as slowly. Both are 0 where no rate was measured.
func (p *Plan) CopyTime() (least, most time.Duration) {
	if p.Measured.CopyRate == 0 {
		return 0, 0
	}
	tables := int64(0)
	for _, s := range p.Shards {
		tables += s.Tables
	}
	least = time.Duration(float64(p.Bytes()) / p.Measured.CopyRate * float64(time.Second))
	return least, SlowerWrites*least + time.Duration(tables)*tableTime
}

// Parts returns the plan of each move that [Split] makes of the shards: each has up to 32 of them.
func (p *Plan) Parts() []*Plan {
	var parts []*Plan
	for some := range slices.Chunk(p.Shards, together) {
		part := *p
		part.Shards = some
		parts = append(parts, &part)
	}
	return parts
}

// WALKept returns how much WAL the source keeps at most, in bytes: at the rate at which the source writes now, for the longer
// time of [Plan.CopyTime]. The source keeps it for one of [Plan.Parts] at a time.
func (p *Plan) WALKept() (most int64) {
	for _, part := range p.Parts() {
		_, slow := part.CopyTime()
		most = max(most, int64(p.WALRate*slow.Seconds()))
	}
	return most
}

// measure takes the rate at which the source writes, and estimates the pause and the copy, of a move that can begin.
func (l *planner) measure(ctx context.Context) error {
	if len(l.Obstacles) > 0 {
		return nil
	}
	begun := time.Now()
	from, err := l.source.position(ctx)
	if err != nil {
		return err
	}
	if err := l.readSome(ctx); err != nil {
		return err
	}
	if err := l.probe(ctx, begun.Add(sample)); err != nil {
		return err
	}
	to, err := l.source.position(ctx)
	if err != nil {
		return err
	}
	l.WALRate = float64(to-from) / time.Since(begun).Seconds()
	var most load
	for _, s := range l.Shards {
		one, err := loadOf(ctx, l.source.conn, s.Schema)
		if err != nil {
			return &topology.ServerError{Server: l.Source, Err: err}
		}
		most.objects = max(most.objects, one.objects)
	}
	l.Measured.Objects = most.objects
	l.Pause = most.pause(l.Measured.Trip)
	// Besides the load, others may have locks, and the copy may be behind: as much as a cutover bears of both.
	l.PauseMost = time.Duration(float64(l.Pause)*l.Measured.Slower) + lockTime + l.options.Lag
	return l.checkWALLimit(ctx)
}

// position is how much WAL a server has written since it was made.
func (s standing) position(ctx context.Context) (at int64, err error) {
	if err := s.conn.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").Scan(&at); err != nil {
		return 0, &topology.ServerError{Server: s.server, Err: err}
	}
	return at, nil
}

const largestSQL = `SELECT r.relation::text, greatest(c.reltuples, pg_stat_get_live_tuples(c.oid), 0)::float8, pg_total_relation_size(r.relation)::float8
FROM firn.relations($1) AS r JOIN pg_class AS c ON c.oid = r.relation WHERE r.rows AND c.relkind = 'r' ORDER BY 3 DESC LIMIT 1`

// readSome reads the beginning of a table, as the copy of the move does, and so finds the rate of the copy. Where the
// table cannot be read, or is too small, no rate is known.
func (l *planner) readSome(ctx context.Context) error {
	largest := ShardPlan{Bytes: -1}
	for _, s := range l.Shards {
		if s.Bytes > largest.Bytes {
			largest = s
		}
	}
	var table string
	var rows, size float64
	if l.source.conn.QueryRow(ctx, largestSQL, largest.Schema).Scan(&table, &rows, &size) != nil || rows < LeastRows {
		return ctx.Err()
	}
	limit := max(LeastRows, int64(rows*min(1, readBytes/size)))
	if _, err := l.source.conn.Exec(ctx, fmt.Sprintf("SET statement_timeout = %d", readTime.Milliseconds())); err != nil {
		return &topology.ServerError{Server: l.Source, Err: err}
	}
	var read lineCounter
	begun := time.Now()
	// Its error is that the time is over, or that the table is locked or dropped: then there are fewer rows.
	_, _ = l.source.conn.PgConn().CopyTo(ctx, &read, fmt.Sprintf("COPY (SELECT * FROM %s LIMIT %d) TO STDOUT", table, limit))
	took := time.Since(begun)
	if _, err := l.source.conn.Exec(ctx, "SET statement_timeout = 0"); err != nil {
		return &topology.ServerError{Server: l.Source, Err: err}
	}
	if read >= LeastRows {
		l.Measured.CopyRate, l.Measured.CopyTable = float64(read)/rows*size/took.Seconds(), table
	}
	return nil
}

// A lineCounter counts the lines that are written to it: COPY writes one for each row.
type lineCounter int64

func (n *lineCounter) Write(b []byte) (int, error) {
	*n += lineCounter(bytes.Count(b, []byte{'\n'}))
	return len(b), nil
}

// probe looks until an instant how fast and how evenly both servers answer. A server whose processors are busy answers
// some questions much later than others.
func (l *planner) probe(ctx context.Context, until time.Time) error {
	l.Measured.Slower = 1
	var trips, looks [2]answers
	for n := 0; n < 4 || time.Now().Before(until); n++ {
		for i, s := range []standing{l.source, l.target} {
			for sql, of := range map[string]*answers{"SELECT 1": &trips[i], "SELECT count(*) FROM pg_attribute": &looks[i]} {
				begun := time.Now()
				if _, err := s.conn.Exec(ctx, sql); err != nil {
					return &topology.ServerError{Server: s.server, Err: err}
				}
				if n > 0 { // the first query also fills the caches of the session, so it is not counted
					*of = append(*of, time.Since(begun))
				}
			}
		}
		if err := pause(ctx, probePause); err != nil {
			return err
		}
	}
	for i := range looks {
		l.Measured.Trip = max(l.Measured.Trip, trips[i].within(0))
		l.Measured.Slower = max(l.Measured.Slower, float64(looks[i].within(0.9))/float64(max(looks[i].within(0), 1)))
	}
	return nil
}

// answers are the times that answers took.
type answers []time.Duration

// within is the time within which a part of the answers came.
func (a answers) within(part float64) time.Duration {
	slices.Sort(a)
	return a[int(part*float64(len(a)-1))]
}

// checkWALLimit asks how much WAL the source may keep, and notes where that is less than the move may need.
func (l *planner) checkWALLimit(ctx context.Context) error {
	if err := l.source.conn.QueryRow(ctx, "SELECT CASE WHEN setting = '-1' THEN -1 ELSE setting::bigint << 20 END FROM pg_settings WHERE name = 'max_slot_wal_keep_size'").Scan(&l.Measured.WALLimit); err != nil {
		return &topology.ServerError{Server: l.Source, Err: err}
	}
	l.noteWALLimit()
	return nil
}

func (p *Plan) noteWALLimit() {
	if kept := p.WALKept(); p.Measured.WALLimit >= 0 && kept > p.Measured.WALLimit {
		p.Notes = append(p.Notes, Obstacle{
			Server: p.Source, Shard: -1, Object: "max_slot_wal_keep_size",
			Reason: fmt.Sprintf("the move may need %d MB of WAL, and max_slot_wal_keep_size = %d MB drops what is more: the move would have to begin anew", kept>>20, p.Measured.WALLimit>>20),
			Fix:    "ALTER SYSTEM SET max_slot_wal_keep_size = -1; SELECT pg_reload_conf(), where the disk has room",
		})
	}
}
