package move

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/internal/atonce"
	"github.com/firn-id/firn/shard/topology"
)

// A Leftover is something that a move has left, and that no move needs any more.
type Leftover struct {
	Server string
	Kind   Kind
	Name   string
	Shard  int64 // -1: of none in particular
	Harm   string
	Blocks bool // nobody can write because of it

	of    *Move // of a half
	moved bool  // its target has the shard

	copy OldCopy // of Copy and Old
}

// A Kind says what is left.
type Kind string

const (
	Subscription Kind = "subscription"
	Publication  Kind = "publication"
	Slot         Kind = "slot"
	Fence        Kind = "fence"    // on a table of a shard that is open there: triggers that refuse writes, in use or not
	Receiver     Kind = "receiver" // the same without a fence: triggers that check who applies a move
	Mark         Kind = "mark"     // the table in a shard that no move is of
	Copy         Kind = "copy"     // of a shard that is open elsewhere
	Old          Kind = "old copy" // the same, of which firn shard reopen has left the rows: only a person can say whether they are needed
	Record       Kind = "record"   // of generators of a copy that somebody has dropped by hand
	Half         Kind = "move"     // one server only knows of it
)

// Text says what is left, for people.
func (k Kind) Text() string {
	switch k {
	case Fence:
		return "triggers that refuse writes during a move, on"
	case Receiver:
		return "triggers that checked who applies a move, on"
	case Mark:
		return "the marker table of a move,"
	case Record:
		return "the list of sequences of"
	}
	return string(k)
}

// leftoverSQL: what replicates and belongs to no move here; and what a shard that is in
// no move has. A fence may be in use, a copy may be the only one, or firn shard reopen may have
// left it: that is said with them.
const leftoverSQL = `
SELECT r.kind, r.name::text, -1, false FROM firn.leftovers() AS r
UNION ALL
SELECT CASE WHEN bool_or(t.tgname = 'firn_fence') THEN 'fence' ELSE 'receiver' END, n.nspname || '.' || c.relname, s.shard, bool_or(t.tgname = 'firn_fence' AND t.tgenabled <> 'D')
FROM firn.shard AS s JOIN pg_namespace AS n ON n.nspname = s.schema JOIN pg_class AS c ON c.relnamespace = n.oid
JOIN pg_trigger AS t ON t.tgrelid = c.oid AND (t.tgname = 'firn_fence' OR t.tgfoid = 'firn.check_receiver()'::regprocedure)
WHERE s.state = 'open' AND firn.is_here(s) AND NOT EXISTS (SELECT FROM firn.move AS m WHERE m.shard = s.shard)
GROUP BY n.nspname, c.relname, s.shard
UNION ALL
SELECT 'mark', n.nspname || '.' || c.relname, s.shard, false
FROM firn.shard AS s JOIN pg_namespace AS n ON n.nspname = s.schema JOIN pg_class AS c ON c.oid = firn.mark(s.schema)
WHERE s.state = 'open' AND firn.is_here(s) AND NOT EXISTS (SELECT FROM firn.move AS m WHERE m.shard = s.shard)
UNION ALL
SELECT 'copy', s.schema::text, s.shard, s.attempt IS NULL FROM firn.shard AS s JOIN pg_namespace AS n ON n.nspname = s.schema
WHERE s.state = 'moved' AND NOT EXISTS (SELECT FROM firn.move AS m WHERE m.shard = s.shard)
	AND EXISTS (SELECT FROM firn.generator AS g JOIN pg_class AS c ON c.oid = g."offset" WHERE g.shard = s.shard AND c.relnamespace = n.oid)
UNION ALL
SELECT DISTINCT 'record', s.schema::text, s.shard, false FROM firn.dropped() AS d JOIN firn.shard AS s ON s.shard = d.shard
ORDER BY 1, 2`

// syncSQL are slots of the first copies of tables, which PostgreSQL makes and names: the
// subscription, the table, and the system that it is on.
const syncSQL = `SELECT slot_name::text, substring(slot_name FROM '^pg_(\d+)_sync_')::bigint, substring(slot_name FROM '_(\d+)$')::numeric::text FROM pg_replication_slots
WHERE slot_name ~ '^pg_\d+_sync_\d+_\d+$' AND database = current_database() AND NOT active`

// Leftovers returns what moves have left on the servers of a cluster. All servers have to answer: what
// looks left on one server may be needed by another.
func Leftovers(ctx context.Context, servers []topology.Server) ([]Leftover, error) {
	all, found, err := ofNoMove(ctx, servers)
	if err != nil {
		return nil, err
	}
	moves, err := Moves(ctx, servers)
	if err != nil {
		return nil, err
	}
	return append(all, halves(servers, found, moves)...), nil
}

// ofNoMove are the leftovers that no server counts to a move. A role may see these that may not see all of a
// move which a superuser began.
func ofNoMove(ctx context.Context, servers []topology.Server) (all []Leftover, found []residue, err error) {
	found = make([]residue, len(servers))
	err = atonce.Each(servers, func(i int, s topology.Server) (err error) {
		found[i], err = residueOf(ctx, s)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	for i, r := range found {
		name := servers[i].Name
		for _, l := range r.list {
			if l.Kind == Copy && !open(found, l.Shard, termOf(r, l.Shard)) || l.Kind == Old && !open(found, l.Shard, termOf(r, l.Shard)-1) {
				continue // the last one there is, or younger than what is open
			}
			l.Server = name
			if l.Kind == Copy || l.Kind == Old {
				l.copy = oldCopyOf(servers, found, l)
			}
			all = append(all, l)
		}
		for _, slot := range r.syncs {
			if slot.isLeft(found) {
				all = append(all, Leftover{Server: name, Kind: Slot, Name: slot.name, Shard: -1, Harm: remedies[Slot].harm})
			}
		}
	}
	return all, found, nil
}

// halfAge is how old a move is that one server only knows of, and that does not begin.
const halfAge = time.Minute

// halves are the moves that one of two servers does not know any more.
func halves(servers []topology.Server, found []residue, moves []Move) []Leftover {
	named := func(name string) int {
		return slices.IndexFunc(servers, func(s topology.Server) bool { return s.Name == name })
	}
	var all []Leftover
	for _, f := range moves {
		target := named(f.Target)
		if f.Phase != HalfLeft || f.Fresh() || named(f.Source) < 0 || target < 0 {
			continue
		}
		for _, n := range f.Shards {
			all = append(all, Leftover{
				Server: f.Source, Kind: Half, Name: fmt.Sprintf("%s of shard %d to %s", f.Batch, n, f.Target), Shard: n, Harm: remedies[Half].harm,
				of: &f, moved: open(found[target:target+1], n, 0),
			})
		}
	}
	return all
}

// A residue is what was found on one server.
type residue struct {
	system        string
	subscriptions []int64
	shards        []topology.Row
	list          []Leftover
	syncs         []syncSlot
}

type syncSlot struct {
	name, system string
	subscription int64
}

// isLeft says that the slot is of a server of the cluster, which has no such
// subscription any more.
func (s syncSlot) isLeft(found []residue) bool {
	i := slices.IndexFunc(found, func(r residue) bool { return r.system == s.system })
	return i >= 0 && !slices.Contains(found[i].subscriptions, s.subscription)
}

func residueOf(ctx context.Context, s topology.Server) (r residue, err error) {
	err = s.Ask(ctx, func(c *pgx.Conn) (err error) {
		r, err = readResidue(ctx, c)
		return err
	})
	return r, err
}

func readResidue(ctx context.Context, c *pgx.Conn) (r residue, err error) {
	view, err := topology.Look(ctx, c)
	if err != nil {
		return r, err
	}
	r.shards = view.Shards
	if err := c.QueryRow(ctx, "SELECT (pg_control_system()).system_identifier::text, ARRAY(SELECT oid::bigint FROM pg_subscription)").Scan(&r.system, &r.subscriptions); err != nil {
		return r, err
	}
	rows, err := c.Query(ctx, leftoverSQL)
	if err == nil {
		var l Leftover
		var used bool
		_, err = pgx.ForEachRow(rows, []any{&l.Kind, &l.Name, &l.Shard, &used}, func() error {
			if l.Kind == Copy && used {
				l.Kind, used = Old, false
			}
			l.Harm, l.Blocks = remedies[l.Kind].harm, used
			if used {
				l.Harm = "they refuse all writes to the table"
			}
			r.list = append(r.list, l)
			return nil
		})
	}
	if err != nil {
		if isMissing(err) {
			err = nil
		}
		return r, err
	}
	for i, l := range r.list {
		if l.Kind == Old {
			if r.list[i].Harm, err = oldCopyText(ctx, c, l.Name); err != nil {
				return r, err
			}
		}
	}
	rows, err = c.Query(ctx, syncSQL)
	if err != nil {
		return r, err
	}
	r.syncs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s syncSlot, err error) {
		err = row.Scan(&s.name, &s.subscription, &s.system)
		return s, err
	})
	return r, err
}

// open says whether a server has a shard open, at a term above one.
func open(found []residue, n, term int64) bool {
	return slices.ContainsFunc(found, func(r residue) bool {
		return slices.ContainsFunc(r.shards, func(row topology.Row) bool {
			return row.Shard == n && row.Serves() && row.Term > term
		})
	})
}

// termOf is the term that a server knows of a shard.
func termOf(r residue, n int64) int64 {
	i := slices.IndexFunc(r.shards, func(row topology.Row) bool { return row.Shard == n })
	if i < 0 {
		return 0
	}
	return r.shards[i].Term
}
