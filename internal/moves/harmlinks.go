package main

import (
	"context"
	"errors"
	"time"
)

// This file harms what is between the two servers.

func noLinks(w *world) error {
	if len(w.links) == 0 {
		return errors.New("the servers do not reach each other through this host")
	}
	return nil
}

// hangLinks has nothing pass for a while, which may be longer than the servers wait for each other.
func hangLinks(_ context.Context, s *scene) error {
	s.hang(true)
	time.Sleep(s.between(time.Second, 2*linkTimeout))
	s.hang(false)
	return nil
}

func (w *world) hang(hang bool) {
	for _, l := range w.links {
		l.Hang(hang)
	}
}

// cutLinks ends all connections, and refuses new ones for a while.
func cutLinks(_ context.Context, s *scene) error {
	for _, l := range s.links {
		l.Refuse(true)
		l.Cut()
	}
	time.Sleep(s.between(100*time.Millisecond, 8*time.Second))
	for _, l := range s.links {
		l.Refuse(false)
	}
	return nil
}

// loseSlot has the source lose what it keeps for the copy: it may keep little, and writes much while
// nothing passes.
func loseSlot(ctx context.Context, s *scene) error {
	s.hang(true)
	defer s.hang(false)
	if err := s.set(ctx, "a", "max_slot_wal_keep_size = '1MB'"); err != nil {
		return err
	}
	c, err := s.reached["a"].Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	var lost int64
	for range 20 {
		for _, sql := range []string{"SELECT pg_logical_emit_message(false, 'moves', repeat('x', 1000000))", "SELECT pg_switch_wal()", "CHECKPOINT"} {
			if _, err := c.Exec(ctx, sql); err != nil {
				return err
			}
		}
		if err := c.QueryRow(ctx, "SELECT count(*) FROM pg_replication_slots WHERE slot_name ~ '^firn_' AND wal_status = 'lost'").Scan(&lost); err != nil {
			return err
		}
		if lost > 0 {
			break
		}
	}
	if lost == 0 {
		s.unnoticed()
	}
	return s.reset(ctx, "a", "max_slot_wal_keep_size")
}

// set changes a setting of a server, and reset takes that back.
func (w *world) set(ctx context.Context, server, setting string) error {
	return errors.Join(w.exec(ctx, server, "ALTER SYSTEM SET "+setting), w.exec(ctx, server, "SELECT pg_reload_conf()"))
}

func (w *world) reset(ctx context.Context, server, name string) error {
	return errors.Join(w.exec(ctx, server, "ALTER SYSTEM RESET "+name), w.exec(ctx, server, "SELECT pg_reload_conf()"))
}
