package move

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/topology"
)

// This file knows what others have to do with a shard, and would lose without a word if
// it moved: they write to it, or read from it, or it has numbers from them.

// leaving is a shard that is to leave a server.
type leaving struct {
	from, to string
	shard    int64
	schema   string
}

// outsiders are what speaks against letting a shard leave because of what others have to do
// with it, and what only a person can judge.
func outsiders(ctx context.Context, q topology.Querier, l leaving, consumers []string) (refused, notes []Obstacle, err error) {
	refused, err = streams(ctx, q, l, consumers)
	if err != nil {
		return nil, nil, err
	}
	rows, err := q.Query(ctx, "SELECT coalesce(sequence, ''), array_agg(part ORDER BY part) FROM firn.numbers_of_others($1) GROUP BY 1 ORDER BY 1", l.schema)
	if err != nil {
		return nil, nil, err
	}
	var sequence string
	var parts []string
	_, err = pgx.ForEachRow(rows, []any{&sequence, &parts}, func() error {
		if sequence == "" {
			notes = append(notes, Obstacle{
				Server: l.from, Shard: l.shard, Object: phrase.Few(parts), Reason: fmt.Sprintf("these draw from a sequence that their text does not name: %s", phrase.Few(parts)),
				Fix: "move it only if that is a sequence of the schema " + l.schema,
			})
			return nil
		}
		refused = append(refused, Obstacle{
			Server: l.from, Shard: l.shard, Object: "sequence " + sequence, Reason: fmt.Sprintf("it has numbers from %s, which begins anew on %s and would repeat them: %s", sequence, l.to, phrase.Few(parts)),
			Fix: fmt.Sprintf("if nobody else draws from it: ALTER SEQUENCE %s SET SCHEMA %s; else draw from a generator of the shard: SET DEFAULT %[2]s.next_id()", sequence, quoted(l.schema)),
		})
		return nil
	})
	return refused, notes, err
}

// quoted is a name as SQL has it.
func quoted(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" {
		return name
	}
	return identifier(name)
}

// streams are the subscriptions that would go on writing where the shard is no more, and
// the publications that would go quiet.
func streams(ctx context.Context, q topology.Querier, l leaving, consumers []string) (refused []Obstacle, err error) {
	rows, err := q.Query(ctx, "SELECT kind, name::text, tables FROM firn.streams_of_others($1) ORDER BY 1 DESC, 2, 3", l.schema)
	if err != nil {
		return nil, err
	}
	var kind, name, tables string
	_, err = pgx.ForEachRow(rows, []any{&kind, &name, &tables}, func() error {
		switch {
		case kind == "subscription":
			refused = append(refused, Obstacle{
				Server: l.from, Shard: l.shard, Object: "subscription " + name, Reason: fmt.Sprintf("the subscription %s writes to it (%s), and would continue to write to the copy that stays here", name, tables),
				Fix: fmt.Sprintf("stop its publisher; DROP SUBSCRIPTION %s; move the shard; on %s CREATE SUBSCRIPTION ... WITH (copy_data = false)", quoted(name), l.to),
			})
		case !slices.Contains(consumers, name):
			refused = append(refused, Obstacle{
				Server: l.from, Shard: l.shard, Object: "publication " + name, Reason: fmt.Sprintf("the publication %s has %s of it, and its consumers would get no rows of it any more", name, tables),
				Fix: fmt.Sprintf("if they know of the move, and read from %s too: --consumers-know %s", l.to, name),
			})
		}
		return nil
	})
	return refused, err
}

// checkOthers refuses to begin with shards of which others would lose something. A move
// that was planned may be begun, or gone on with, long after.
func (m *Mover) checkOthers(ctx context.Context, g goal, some []pairOf) error {
	from, to := m.ends(g)
	var all []Obstacle
	for _, p := range some {
		a, _ := p.sides(g)
		refused, _, err := outsiders(ctx, from.conn, leaving{from.Name, to.Name, p.shard, a.schema}, m.options.Consumers)
		if err != nil {
			return from.fault(err)
		}
		all = append(all, refused...)
	}
	if len(all) > 0 {
		var shards []int64
		for _, p := range some {
			shards = append(shards, p.shard)
		}
		return &RefusedError{shards, from.Name, to.Name, all}
	}
	return nil
}

// readers are those of whole databases: of the target, who would get the copy as rows that
// are new, and of the source, who need no publication.
func (l *planner) readers(ctx context.Context) error {
	found, err := names(ctx, l.target.conn, "SELECT pubname::text FROM pg_publication WHERE puballtables ORDER BY 1")
	if err != nil {
		return &topology.ServerError{Server: l.Target, Err: err}
	}
	for _, name := range found {
		if !slices.Contains(l.options.Consumers, name) {
			l.Obstacles = append(l.Obstacles, Obstacle{
				Server: l.Target, Shard: -1, Object: "publication " + name, Reason: fmt.Sprintf("the publication %s has all tables, and its consumers would get the rows of the copy as new ones", name),
				Fix: "if they know of the move: --consumers-know " + name,
			})
		}
	}
	found, err = names(ctx, l.source.conn, `SELECT format('%s (%s)', slot_name, plugin) FROM pg_replication_slots
		WHERE database = current_database() AND slot_type = 'logical' AND plugin <> 'pgoutput' ORDER BY 1`)
	if err != nil {
		return &topology.ServerError{Server: l.Source, Err: err}
	}
	if len(found) > 0 {
		l.Notes = append(l.Notes, Obstacle{
			Server: l.Source, Shard: -1, Object: phrase.Few(found), Reason: fmt.Sprintf("these slots may read the shards without a publication, and get no rows of them any more: %s", phrase.Few(found)),
			Fix: "have their readers read from " + l.Target + " too",
		})
	}
	return nil
}
