package main

import (
	"errors"
	"maps"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/trouble"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
	"github.com/firn-id/firn/store"
)

// This file says what an error tells a program with --json, besides its text: docs/reference/exit-codes.md.

type facts = map[string]any

// errorFacts are the errors that tell more than a text: what they are called, and their facts.
// An error may be several of them, such as one of a server about a shard.
var errorFacts = []func(error) facts{
	factsIf("pool-missing", func(e *lease.MissingPoolError) facts { return facts{"pool": e.Pool, "pools": orNone(e.Pools)} }),
	factsIf("pool-exists", func(e *pool.ExistsError) facts { return facts{"pool": e.Info.Name} }),
	factsIf("pool-lost", func(e *pool.RemainsError) facts { return facts{"pool": e.Pool} }),
	factsIf("pool-overlaps", func(e *pool.OverlapError) facts {
		return facts{"pool": e.Pool, "other_pool": e.Other.Name, "workers": e.Same}
	}),
	factsIf("pool-starts-later", func(e *lease.NotYetError) facts {
		return facts{"pool": e.Pool, "starts_at": phrase.Instant(e.StartsAt)}
	}),
	factsIf("pool-full", func(e *lease.FullError) facts {
		f := facts{"pool": e.Pool, "workers": e.Workers}
		if len(e.Holders) > 0 {
			f["free_in_seconds"] = e.Holders[0].Free.Seconds()
		}
		return f
	}),
	factsIf("layout-differs", func(e *lease.LayoutError) facts {
		return facts{"pool": e.Pool, "layout": e.Have, "asked_layout": e.Want}
	}),
	factsIf("worker-outside", func(e *lease.WorkerError) facts {
		return facts{"pool": e.Pool, "worker": e.Worker, "first": e.First, "last": e.Last}
	}),
	factsIf("worker-in-use", func(e *pool.InUseError) facts {
		return facts{"pool": e.Pool, "worker": e.Worker, "holder": e.Name, "until": phrase.Instant(e.Until)}
	}),
	factsIf("worker-lost", func(e *lease.LostError) facts { return facts{"worker": e.Worker, "holder": e.Name} }),
	factsIf("series-missing", func(e *sequence.MissingError) facts { return facts{"series": e.Name} }),
	factsIf("series-missing", func(e *document.MissingError) facts { return facts{"series": e.Series} }),
	factsIf("series-exists", func(e *sequence.ExistsError) facts { return facts{"series": e.Info.Name} }),
	factsIf("series-exists", func(e *document.ExistsError) facts { return facts{"series": e.Info.Name} }),
	factsIf("series-ended", func(e *sequence.EndError) facts { return facts{"series": e.Name} }),
	factsIf("series-ended", func(e *document.EndError) facts {
		return facts{"series": e.Series, "starts_at": phrase.Instant(e.NextAt)}
	}),
	factsIf("template-full", func(e *document.FullError) facts {
		return facts{"template": e.Template, "series": e.Name, "names": e.Names}
	}),
	factsIf("series-may-be-lost", func(e *sequence.LostError) facts { return facts{"series": e.Name} }),
	factsIf("series-may-be-lost", func(e *document.LostError) facts { return facts{"series": e.Series} }),
	factsIf("series-may-be-lost", func(e *document.InstanceError) facts { return facts{"series": e.Series} }),
	factsIf("series-may-be-lost", func(e *countername.LostNameError) facts { return facts{"series": e.Name} }),
	factsIf("store-forgot", func(e *store.ForgotError) facts { return facts{"store": e.Store} }),
	factsIf("store-is-a-copy", func(e *store.OtherStoreError) facts { return facts{"this_store": e.Have, "other_store": e.Want} }),
	factsIf("config-faults", func(e *config.FaultsError) facts { return facts{"file": e.Path, "faults": len(e.Faults)} }),
	factsIf("move-refused", func(e *move.RefusedError) facts {
		return facts{"shards": e.Shards, "obstacles": obstacleLines(e.Obstacles)}
	}),
	factsIf("shard-in-use", func(e *move.HoldersError) facts { return facts{"shard": e.Shard} }),
	factsIf("shard-in-a-move", func(e *move.UnderwayError) facts {
		return facts{"shard": e.Shard, "from": e.Source, "to": e.Target, "serves": e.Serves}
	}),
	factsIf("shard-in-a-move", func(e *move.OtherMoveError) facts {
		return facts{"shard": e.Shard, "from": e.Source, "to": e.Target}
	}),
	factsIf("server-failed", func(e *topology.ServerError) facts { return facts{"server": e.Server} }),
}

// factsIf are the facts of an error of type E, or none of another error.
func factsIf[E error](name string, of func(E) facts) func(error) facts {
	return func(err error) facts {
		var e E
		if !errors.As(err, &e) {
			return nil
		}
		f := of(e)
		f["type"] = name
		return f
	}
}

// factsOfError is what an error tells a program. The type is that of the first error of the table that
// it is; retry says that the same command may succeed later though nobody changes anything.
func factsOfError(err error) facts {
	all := facts{}
	for _, of := range errorFacts {
		f := of(err)
		maps.DeleteFunc(f, func(name string, value any) bool {
			_, known := all[name]
			return known || value == ""
		})
		maps.Copy(all, f)
	}
	all["retry"] = mayPass(err)
	return all
}

// mayPass reports whether the same command may succeed later though nobody changes anything: the
// error says so, or a store or a server cannot be reached. Unlike firn.Retryable it is false for
// errors that it does not know, such as those of flags.
func mayPass(err error) bool {
	var used *document.EndError
	if errors.As(err, &used) {
		return !used.NextAt.IsZero()
	}
	var says interface{ Retryable() bool }
	if errors.As(err, &says) {
		return says.Retryable()
	}
	var store interface{ Unreachable() bool }
	return errors.As(err, &store) && store.Unreachable() || trouble.Passes(err)
}

// orNone is a list that JSON shows as [] where it is empty.
func orNone(all []string) []string { return append([]string{}, all...) }
