package sqlite

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"
)

// The mark is how many writes of the database were acknowledged, as the sidecar's last line
// says. Who copies an older state over the database in place leaves its inode, its birth and
// its id as they were, and only the number of writes tells.
//
// It is written after each commit, without a sync: so it may say less than is true, after a
// loss of power or where two processes write at once, and never more. It is not a secret and
// needs no lock. A user who may not write the sidecar makes no more writes.

// markSize is the length of the line.
const markSize = len("writes 0123456789abcdef 01234567\n")

func formatMark(writes int64) string {
	number := fmt.Sprintf("%016x", writes)
	return fmt.Sprintf("writes %s %08x\n", number, crc32.ChecksumIEEE([]byte(number)))
}

// parseMark is 0 for a line that is not whole: somebody is writing it, or it is damaged.
func parseMark(line []byte) int64 {
	var writes int64
	if _, err := fmt.Sscanf(string(line), "writes %x", &writes); err != nil || formatMark(writes) != string(line) {
		return 0
	}
	return writes
}

// A noted mark is the last one that this process has read or written, and the sidecar that it stands in.
type noted struct {
	mu     sync.Mutex
	in     identity
	writes int64
}

// raiseMark writes the mark if it says less. It leaves alone a sidecar that was written anew with a lower mark: an
// earlier state of the database was accepted since, which lacks the writes of this process.
func (s *Store) raiseMark(writes int64) error {
	at := s.at
	f, err := os.OpenFile(at.sidecar(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	line, place := make([]byte, markSize), fi.Size()-int64(markSize)
	if _, err := f.ReadAt(line, place); err != nil || place <= 0 || line[0] != 'w' {
		return fmt.Errorf("%s has no mark: %w", at.sidecar(), err)
	}
	in, err := identify(at.sidecar())
	if err != nil {
		return err
	}
	said := parseMark(line)
	s.noted.mu.Lock()
	defer s.noted.mu.Unlock()
	if said < s.noted.writes && !in.same(s.noted.in) {
		return nil
	}
	s.noted.in, s.noted.writes = in, max(said, writes)
	if said >= writes {
		return nil
	}
	_, err = f.WriteAt([]byte(formatMark(writes)), place)
	return err
}

// acknowledged notes that the database has made so many writes.
func (s *Store) acknowledged(writes int64) {
	s.sawWrites(writes)
	err := s.raiseMark(writes) // else as well as it goes: a lower mark only notices less
	s.unnoted.Store(errors.Is(err, os.ErrPermission))
}

// noteAgain returns an error if the last write could not be noted because this user may not
// write the sidecar, and still may not.
func (s *Store) noteAgain() error {
	if !s.unnoted.Load() {
		return nil
	}
	if err := s.raiseMark(s.writes.Load()); errors.Is(err, os.ErrPermission) {
		return err
	}
	s.unnoted.Store(false)
	return nil
}

func (s *Store) sawWrites(writes int64) {
	for seen := s.writes.Load(); seen < writes && !s.writes.CompareAndSwap(seen, writes); {
		seen = s.writes.Load()
	}
}

// madeWrites returns a ForgotError if the database has made fewer writes than it had.
func (s *Store) madeWrites(writes, atLeast int64) error {
	if writes < atLeast {
		return s.forget(s.at.forgot("%s", putBack(writes, atLeast)))
	}
	s.sawWrites(writes)
	return nil
}

// putBack says what is wrong with a database that lacks writes.
func putBack(writes, acknowledged int64) string {
	return fmt.Sprintf("the file was put back to an earlier state: it has %d writes, and %d were acknowledged", writes, acknowledged)
}

// countWrites is how many writes the database has made.
func (s *Store) countWrites(ctx context.Context) (writes int64, err error) {
	err = s.reading(ctx, func(c *session) error { return c.row(sqlWrites, &writes) })
	return writes, err
}

// compareWrites returns a ForgotError if the database has made fewer writes than the mark said
// before, or if its records are not of one state.
func (s *Store) compareWrites(ctx context.Context, mark int64) error {
	writes, err := s.countWrites(ctx)
	if err != nil {
		return err
	}
	if err := s.madeWrites(writes, mark); err != nil {
		return err
	}
	return s.reading(ctx, func(c *session) error {
		_, err := s.list(c, "\x7f") // no key begins so: they are summed, and none is returned
		return err
	})
}
