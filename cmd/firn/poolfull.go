package main

import (
	"errors"
	"time"

	"github.com/firn-id/firn/internal/beside"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
)

// fullPool says what to do where a pool has no free worker. To wait comes last: a process that runs
// keeps its worker.
func fullPool(err error, full *lease.FullError, at poolPlace) *ui.Failure {
	name, held := phrase.ShellWord(full.Pool), isHeld(full)
	f := ui.Failed("%w", ui.Rename(phrase.Reason(full), err))
	if full.Behind > 0 {
		f.Hint("%s", remedy.WrongClock)
	}
	if full.Layout.Shards() > 1 {
		f.Hint("shard %d has no worker of its own (%s): a worker makes ids of all shards of layout %s, and this process may take %s. To make ids of a shard for several programs, let them ask one server, with series: { NAME: { kind: flake, shard: %d } } in its firn.yaml: docs/guides/server.md",
			at.shard, remedy.Setting(at.from, "shard"), layoutName(full.Layout), phrase.Counted(full.Workers, "worker", "workers"), at.shard)
	}
	if held {
		f.Hint("to see who holds them: firn worker ls; a process that runs keeps its worker, so one falls free only when its process has ended or died")
	} else {
		f.Hint("no process holds them; to see up to when each may have issued ids: firn worker ls")
	}
	var room *beside.FullPoolError
	known := errors.As(err, &room)
	switch {
	case known && room.One:
		f.Hint("leave out %s to take any free one", remedy.Setting(at.from, "worker"))
	case known && room.Wider != "":
		f.Hint("to give the pool more workers (of workers that several stores share: only its own): firn pool set %s --workers %s", name, room.Wider)
	case known:
		f.Hint("the pool can have no more workers: other pools have or had those beside them, or its layout has no more. To see the pools: firn pool ls")
	}
	if full.Reserved != "" {
		f.Hint("to see what the change of the pool's workers waits for: firn pool show %s", name)
	}
	if held {
		f.Hint("or end one of these processes")
	}
	for _, h := range full.Holders {
		if h.Name == "" { // it falls free at that time, as no process has it
			return f.HintFlag("wait", "or wait until worker %d falls free: --wait %s", h.Worker, fullWait(h.Free))
		}
	}
	wait := time.Minute
	if len(full.Holders) > 0 {
		wait = full.Holders[0].Free
	}
	return f.HintFlag("wait", "only if one of these processes is ending or has died, to wait for its worker: --wait %s", fullWait(wait))
}

// isHeld reports whether a process may hold a worker of the pool. Those of a pool that is too large to list
// are not known, nor are those whose records nobody can read.
func isHeld(full *lease.FullError) bool {
	for _, h := range full.Holders {
		if h.Name != "" {
			return true
		}
	}
	return int64(len(full.Holders)) < full.Workers
}

// fullWait is how long to wait for a worker that falls free after a time, as a flag says it.
func fullWait(free time.Duration) string {
	return phrase.Duration(max(time.Minute, free.Truncate(10*time.Second)+10*time.Second))
}
