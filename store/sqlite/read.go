package sqlite

import (
	"database/sql"
	"time"

	"github.com/firn-id/firn/store"
)

// get reads one record, in whatever transaction c is in.
func (s *Store) get(c *session, key string) (store.Record, error) {
	r, _, err := s.getWith(c, key)
	return r, err
}

// getWith is get, with the sums of the database.
func (s *Store) getWith(c *session, key string) (store.Record, *sums, error) {
	before, writes := s.clock(), s.writes.Load()
	rows, err := c.query(sqlGet, bucketOf(key), key)
	if err != nil {
		return store.Record{}, nil, err
	}
	list, state, err := s.scan(rows, before, writes, bucketOf(key))
	if err != nil {
		return store.Record{}, nil, err
	}
	if len(list) == 0 {
		return store.Record{Key: key, Read: before}, state, nil
	}
	return list[0], state, nil
}

func (s *Store) list(c *session, prefix string) ([]store.Record, error) {
	before, writes := s.clock(), s.writes.Load()
	// Every byte of a key is below 0x7f, so this range is exactly the prefix.
	rows, err := c.query(sqlList, prefix, prefix+"\x7f")
	if err != nil {
		return nil, err
	}
	list, _, err := s.scan(rows, before, writes, allBuckets)
	return list, err
}

// allBuckets is in the place of a bucket where rows have all records.
const allBuckets = -1

// scan reads rows of the store's id, its number of writes, its sums and a record, which is
// NULL if there is none, for all records of a bucket. Records without a value are not
// returned. At the least so many writes must have been made.
//
// Read is the clock before the query: taken after, a pause in between would make
// records look older than they are. Only where another process wrote in that
// moment it is as late as that write, so that Written is never after Read but
// for a clock that was set back.
func (s *Store) scan(rows *sql.Rows, before time.Time, atLeast int64, bucket int) ([]store.Record, *sums, error) {
	defer rows.Close()
	var list []store.Record
	var said *sums
	var sum sums
	for rows.Next() {
		var row found
		if err := row.read(rows); err != nil {
			return nil, nil, err
		}
		if row.id != s.id {
			return nil, nil, s.forget(s.at.forgot("the file holds another store now: id %s, not %s", row.id, s.id))
		}
		if err := s.madeWrites(row.writes, atLeast); err != nil {
			return nil, nil, err
		}
		if row.sums != nil {
			said = new(sums)
			if err := said.set(row.sums); err != nil {
				return nil, nil, err
			}
		}
		if row.key.Valid {
			sum.add(row.key.V, store.Version(row.version.V))
		}
		if row.value.Valid {
			list = append(list, row.record())
		}
	}
	if err := rows.Err(); err != nil {
		return nil, nil, err
	}
	switch {
	case said == nil:
		return nil, nil, s.forget(s.at.forgot("the file has lost its id %s", s.id))
	case bucket == allBuckets && sum != *said, bucket != allBuckets && sum[bucket] != said[bucket]:
		return nil, nil, s.forgetFor(mixed)
	}
	s.stamp(list, before)
	return list, said, rows.Close()
}

// stamp sets when records were read.
func (s *Store) stamp(list []store.Record, before time.Time) {
	read, after := before, s.clock()
	for _, r := range list {
		if r.Written.After(read) && !r.Written.After(after) {
			read = r.Written
		}
	}
	for i := range list {
		list[i].Read = read
	}
}

// A found is one row of what scan reads.
type found struct {
	id                  string
	writes              int64
	sums                []byte
	key, value, version sql.Null[string]
	written             sql.Null[int64]
}

func (a *found) read(rows *sql.Rows) error {
	return rows.Scan(&a.id, &a.writes, &a.sums, &a.key, &a.value, &a.version, &a.written)
}

func (a *found) record() store.Record {
	return store.Record{
		Key: a.key.V, Value: []byte(a.value.V), Version: store.Version(a.version.V), Written: time.Unix(0, a.written.V).UTC(),
	}
}
