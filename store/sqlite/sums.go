package sqlite

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/firn-id/firn/store"
)

// The sums tell whether records are of one state of the database. An older copy that is
// copied over the file under SQLite's log, or under the pages that a process keeps in
// memory, makes a mixture: some pages are as they were last, the others as they were once.
// The number of writes may then be the last one, and the records older.
//
// Each record belongs to a bucket by its key. The row of the store has for each bucket the sum
// of the hashes of its records' keys and versions; a version is never used twice. Each write
// changes the sum, in the same transaction, and each read compares it with all records of
// the bucket. So a record that is not of the same state as the row of the store is never
// handed out.

const (
	buckets  = 256
	sumsSize = 8 * buckets
)

// sums are those of all buckets.
type sums [buckets]uint64

// bucketOf is the bucket of a key.
func bucketOf(key string) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % buckets)
}

// hashOf is what a record adds to the sum of its bucket.
func hashOf(key string, version store.Version) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	h.Write([]byte{0})
	h.Write([]byte(version))
	return h.Sum64()
}

func (s *sums) add(key string, version store.Version) { s[bucketOf(key)] += hashOf(key, version) }

// replace has one record of a key in place of another; "" is none.
func (s *sums) replace(key string, old, next store.Version) {
	if old != "" {
		s[bucketOf(key)] -= hashOf(key, old)
	}
	s.add(key, next)
}

func (s *sums) bytes() []byte {
	b := make([]byte, 0, sumsSize)
	for _, n := range s {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func (s *sums) set(b []byte) error {
	if len(b) != sumsSize {
		return fmt.Errorf("the row of the store has sums of %d bytes, not %d", len(b), sumsSize)
	}
	for i := range s {
		s[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return nil
}

// mixed says what is wrong with a database whose records are not of one state.
const mixed = "its records do not fit together: it was put back to an earlier state while a log beside it, or a process, had newer parts of it; or another program changed it"
