package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// This file harms servers: a standby takes the place of one, and a disk is full.

// makeStandby gives a server a standby that has all that the server acknowledges.
func makeStandby(name string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		s.standby = testserver.PostgresStandby(s.tb, s.servers[name], s.options...)
		if err := s.set(ctx, name, "synchronous_standby_names = 'walreceiver'"); err != nil {
			return err
		}
		c, err := s.reached[name].Connect(ctx)
		if err != nil {
			return err
		}
		defer c.Close(ctx)
		for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(50 * time.Millisecond) {
			var ready bool
			if err := c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming')").Scan(&ready); err != nil || ready {
				return err
			}
		}
		return fmt.Errorf("the standby of %s does not follow", name)
	}
}

// promote ends a server, and has its standby take its place and address.
func promote(name string) func(context.Context, *scene) error {
	return func(_ context.Context, s *scene) error {
		s.servers[name].Kill(s.tb)
		s.standby.Promote(s.tb)
		s.servers[name] = s.standby.Server
		for _, p := range []*testserver.Proxy{s.doors[name], s.links[name]} {
			p.Target(s.standby.Addr())
			p.Cut()
		}
		if s.standby = nil; name == "b" {
			s.behind = 0 // the standby's clock is this machine's
		}
		s.o.Promoted = name
		return nil
	}
}

// endStandby ends the standby if it was not needed.
func endStandby(name string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		if s.standby == nil {
			return nil
		}
		err := s.reset(ctx, name, "synchronous_standby_names")
		s.standby.Kill(s.tb)
		s.standby = nil
		return err
	}
}

// diskSize has room for a shard several times over.
const diskSize = 512 << 20

// noDisk: to make a small disk needs the right to mount.
func noDisk(w *world) error {
	if err := noControl(w); err != nil {
		return err
	}
	d, err := w.servers["b"].SmallDisk(1 << 20)
	if err != nil {
		return err
	}
	return d.Remove()
}

// makeDisk has the tables of the shard be in a tablespace, which is a small disk on each server.
func makeDisk(ctx context.Context, s *scene) error {
	s.tablespace = fmt.Sprintf("small_%d", s.n)
	for name, server := range s.servers {
		d, err := server.SmallDisk(diskSize)
		if err != nil {
			return err
		}
		s.disks[name] = d
		if err := s.exec(ctx, name, fmt.Sprintf("CREATE TABLESPACE %s LOCATION '%s'", s.tablespace, d.Dir)); err != nil {
			return err
		}
	}
	return nil
}

// noSpace is what a server says that finds no room.
const noSpace = "No space left on device"

// fillDisk has the disk of the copy be full for a while.
func fillDisk(_ context.Context, s *scene) error {
	before := strings.Count(s.servers["b"].Log(), noSpace)
	if err := s.disks["b"].Fill(); err != nil {
		return err
	}
	time.Sleep(s.between(time.Second, 12*time.Second))
	if strings.Count(s.servers["b"].Log(), noSpace) == before {
		s.unnoticed()
	}
	return s.disks["b"].Free()
}

// endDisk removes the tablespaces, which are empty then but for what a killed server left there.
func endDisk(ctx context.Context, s *scene) error {
	for name, d := range s.disks {
		drop := "DROP TABLESPACE " + s.tablespace
		err := s.exec(ctx, name, drop)
		if err != nil {
			files, _ := filepath.Glob(filepath.Join(d.Dir, "PG_*", "*", "*"))
			for _, f := range files {
				err = errors.Join(err, os.Remove(f))
			}
			if failed := s.exec(ctx, name, drop); failed != nil {
				return errors.Join(err, failed)
			}
		}
		delete(s.disks, name)
		if err := d.Remove(); err != nil {
			return err
		}
	}
	return nil
}
