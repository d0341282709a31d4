// Package sqlite keeps records in a SQLite file, for the processes of one host.
// It brings its own driver, because durability depends on how a file is opened.
//
// Start with [Open]. A file that was removed or replaced is a store that
// forgot: every call then returns a [store.ForgotError], in the processes that
// had it open and in those that come later, until [Restored] accepts what is
// there. To know the difference from a store that never was, Open writes a
// small hidden file beside the database (".ids.db.id" beside "ids.db"); it
// holds no records and no secrets. Removing both makes a new store.
//
// A copy of the file, even an exact one, is another store, and would make the same
// ids. So Open refuses a copy with a [CopyError], with the hidden file or without
// it. A file system that is copied as a whole, by a snapshot of a volume or of a
// virtual machine, cannot be told from the original. Restoring a backup
// therefore ends with Restored and with what the protocols on top need ("firn
// store recover" does both). It begins with stopping every process that has the
// file open, and with removing "ids.db-wal" and "ids.db-shm": until then these
// are a part of the database, and would be a part of the next one. What is
// copied over the file in place with the hidden file is not noticed.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	// readers is how many connections of one Store read at once. One more writes.
	readers = 4

	// grace is how long a call whose ctx has ended waits for an answer that
	// says more than "cancelled" before it leaves the disk to itself.
	grace = 100 * time.Millisecond
)

// A Store is a [store.Store] in one file. Several Stores, in one process or in
// many of the same host, may have the same file open.
//
// A call that finds the file locked by another process waits for it, at most 5
// seconds and not longer than its ctx. When the cause of an error goes away
// (a lock, a full disk, a file system that turned read-only), so does the
// error: there is nothing to reopen. Only [store.ForgotError] stays.
type Store struct {
	at       location
	created  bool
	id       string    // of the store, in the file and beside it
	open     []watched // the database, then its journals
	now      func() time.Time
	patience time.Duration // with a file that is locked

	db     *sql.DB
	anchor *sql.Conn     // never used: while it is open, no other file gets its inode number
	write  chan *session // one slot; nil is a connection still to be opened
	read   chan *session

	forgot atomic.Pointer[error]
	writes atomic.Int64 // that the file was seen to have made
	noted  noted

	unnoted atomic.Bool // the last write could not be noted in the sidecar

	mu      sync.Mutex // guards closed, and calls.Add against calls.Wait
	closed  bool
	closing chan struct{}
	calls   sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// Created reports whether the Open that returned s also made the file.
func (s *Store) Created() bool { return s.created }

// Close waits for the calls under way, and closes the file. Later calls fail.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.closing)
	s.mu.Unlock()
	s.calls.Wait()

	var errs []error
	for _, slots := range []chan *session{s.read, s.write} {
		for range cap(slots) {
			if c := <-slots; c != nil {
				errs = append(errs, c.close())
			}
		}
	}
	errs = append(errs, s.anchor.Close(), s.db.Close())
	if err := errors.Join(errs...); err != nil {
		return s.at.explain(err)
	}
	return nil
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	return run(ctx, s, store.Record{}, func(ctx context.Context) (r store.Record, err error) {
		err = s.reading(ctx, func(c *session) error {
			r, err = s.get(c, key)
			return err
		})
		return r, err
	})
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Record, error) {
	return run(ctx, s, nil, func(ctx context.Context) (l []store.Record, err error) {
		err = s.reading(ctx, func(c *session) error {
			l, err = s.list(c, prefix)
			return err
		})
		return l, err
	})
}

// Put implements [store.Store]. Its clock is this host's wall clock.
//
// An error with the zero Version means that nothing was written.
func (s *Store) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := store.CheckValue(value); err != nil {
		return store.Record{}, err
	}
	tried := store.Record{Key: key, Version: store.NewVersion()}
	next := tried
	next.Value = slices.Clone(value)
	return run(ctx, s, tried, func(ctx context.Context) (store.Record, error) {
		return s.put(ctx, next, cond)
	})
}

// put carries out one Put: next has what is to be written but for the time.
func (s *Store) put(ctx context.Context, next store.Record, cond store.Condition) (store.Record, error) {
	deadline := time.Now().Add(s.patience)
	c, err := s.acquire(ctx, s.write)
	if err != nil {
		return store.Record{}, err
	}
	defer func() { s.write <- c }()

	// Nothing is sent before BEGIN IMMEDIATE has the lock: until then it may be
	// tried again, and ctx may stop it. Nothing interrupts what comes after.
	err = s.patiently(ctx, deadline, func() error {
		if err := s.check(); err != nil {
			return err
		}
		return s.begin(&c)
	})
	if err != nil {
		return store.Record{}, err
	}
	tried := store.Record{Key: next.Key, Version: next.Version}
	sent, err := s.compareAndSet(c, &next, cond)
	if err != nil {
		conflict := errors.Is(err, store.ErrConflict)
		c = c.abandon(!conflict)
		if !sent {
			tried = store.Record{}
		}
		if !conflict {
			err = s.at.explain(err)
		}
	}
	// The outcome counts only if this is still the store. A conflict too: the
	// record that was looked at may be one of a file nobody else can see.
	if gone := s.check(); gone != nil {
		return tried, gone
	}
	if err != nil {
		return tried, err
	}
	return next, nil
}

// compareAndSet runs in the transaction that begin opened, and ends it if it
// returns no error. It says whether anything was written by then.
func (s *Store) compareAndSet(c *session, next *store.Record, cond store.Condition) (sent bool, err error) {
	// The lock is held: no other writer's clock is read between this and COMMIT.
	now := s.clock()
	old, state, err := s.getWith(c, next.Key)
	if err != nil {
		return false, err
	}
	if old.Version != cond.Version {
		return false, store.ErrConflict
	}
	if cond.Within != 0 && (cond.Within < 0 || now.Sub(old.Written) > cond.Within) {
		return false, store.ErrConflict
	}
	next.Written, next.Read = now, now
	state.replace(next.Key, old.Version, next.Version)
	writes, err := c.count(state)
	if err != nil {
		return true, err
	}
	if err := c.exec(sqlWrite, next.Key, string(next.Value), string(next.Version), now.UnixNano(), bucketOf(next.Key)); err != nil {
		return true, err
	}
	if err := c.exec(sqlCommit); err != nil {
		return true, err
	}
	s.acknowledged(writes)
	return true, nil
}

// Durability implements [store.Store]. The store is durable unless the file does
// not outlive the host's memory, or somebody changed how it is written.
func (s *Store) Durability(ctx context.Context) (store.Durability, error) {
	return run(ctx, s, store.Durability{}, func(ctx context.Context) (p store.Durability, err error) {
		err = s.reading(ctx, func(c *session) error {
			p, err = s.durability(c)
			return err
		})
		return p, err
	})
}

func (s *Store) durability(c *session) (store.Durability, error) {
	if _, err := s.get(c, "durability"); err != nil { // is it still this store?
		return store.Durability{}, err
	}
	var journal string
	var synchronous int
	if err := c.row("PRAGMA journal_mode", &journal); err != nil {
		return store.Durability{}, err
	}
	if err := c.row("PRAGMA synchronous", &synchronous); err != nil {
		return store.Durability{}, err
	}
	fs, err := fileSystem(s.at.file)
	if err != nil {
		return store.Durability{}, err
	}
	p := store.Durability{
		Durable:    true,
		Why:        fmt.Sprintf("journal_mode=%s synchronous=%s, on %s", journal, levels[synchronous&3], fs.name),
		LocalClock: true, NoticesLoss: true,
	}
	if journal != "wal" || synchronous < 2 || fs.volatile {
		p.Durable = false
	}
	if fs.volatile {
		p.Why += ", which forgets when the host restarts"
	}
	return p, nil
}

// levels are the values of PRAGMA synchronous.
var levels = [4]string{"off", "normal", "full", "extra"}

func (s *Store) clock() time.Time { return s.now().Round(0).UTC() }

// run calls f in a goroutine of its own, so that a caller can leave a disk that
// hangs when its ctx ends; it gets late then.
func run[T any](ctx context.Context, s *Store, late T, f func(context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return none, s.at.explain(errClosed)
	}
	s.calls.Add(1)
	s.mu.Unlock()

	type result struct {
		value T
		err   error
	}
	answer := make(chan result, 1)
	go func() {
		defer s.calls.Done()
		value, err := f(ctx)
		answer <- result{value, err}
	}()
	select {
	case r := <-answer:
		return r.value, r.err
	case <-ctx.Done():
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case r := <-answer:
		return r.value, r.err
	case <-t.C:
		return late, s.at.explain(fmt.Errorf("the disk has not answered: %w", ctx.Err()))
	}
}
