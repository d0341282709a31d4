package move

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// This file ends moves whose other server is permanently gone. Who serves a shard needs
// nobody for that: it forgets of the move at a higher term, below which no mover that may
// still reach both lets the shard go.

// An ElsewhereError says that no server that is left serves some shards.
type ElsewhereError struct {
	Shards     []int64 // in order
	Gone, Left string  // the server that had it, and the one that has a copy
	LetGo      bool    // by Left
}

func (e *ElsewhereError) Error() string {
	if e.LetGo {
		return fmt.Sprintf("shard %s was given to %s: rows that were written there since may be missing on %s", phrase.Numbers(e.Shards), e.Gone, e.Left)
	}
	return fmt.Sprintf("shard %s is on %s, and the copy on %s is not complete", phrase.Numbers(e.Shards), e.Gone, e.Left)
}

// Abandon ends moves whose other server is permanently gone. It takes the shards that asked selects, and
// the shards that moved together with them. A shard that one of the other servers serves stays there.
// Abandon fails, and changes nothing, with an [*ElsewhereError] where none of them serves a shard that
// asked selects, and with a [*check.AnswersError] where the server answers. All others have to answer.
// It returns the shards whose moves it has ended, and replication slots that may be of these moves, or
// may be yours: it does not drop those.
func Abandon(ctx context.Context, servers []topology.Server, gone string, asked func(shard int64) bool) ([]int64, []Leftover, error) {
	rest, err := restOf(ctx, servers, gone)
	defer closeAll(rest)
	if err != nil {
		return nil, nil, err
	}
	all, err := abandonable(ctx, rest, gone, asked) // before anything is done
	if err != nil {
		return nil, nil, err
	}
	var ended []int64
	for _, o := range all {
		if !o.serves() {
			continue // of the same batch; it stays what it is
		}
		if err := o.end(ctx); err != nil {
			return ended, nil, err
		}
		ended = append(ended, o.shard)
	}
	slices.Sort(ended)
	if err := dropLeftovers(ctx, rest, slotPatience*4); err != nil {
		return ended, nil, err
	}
	kept, err := dropSyncs(ctx, rest, gone)
	return ended, kept, err
}

// CheckAbandon returns the error with which [Abandon] would refuse, or nil. It changes nothing.
func CheckAbandon(ctx context.Context, servers []topology.Server, gone string, asked func(shard int64) bool) error {
	rest, err := restOf(ctx, servers, gone)
	defer closeAll(rest)
	if err == nil {
		_, err = abandonable(ctx, rest, gone, asked)
	}
	return err
}

// restOf are the servers besides one that is gone. It fails where that one answers.
func restOf(ctx context.Context, servers []topology.Server, gone string) ([]*end, error) {
	var rest []*end
	for _, s := range servers {
		if s.Name != gone {
			rest = append(rest, newEnd(s))
		} else if err := check.ConfirmGone(ctx, s); err != nil {
			return rest, err
		}
	}
	return rest, nil
}

// abandonable are the orphans whose moves may end without the server that is gone.
func abandonable(ctx context.Context, rest []*end, gone string, asked func(int64) bool) ([]orphan, error) {
	var all []orphan
	for _, e := range rest {
		some, err := e.orphans(ctx, gone, asked)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	var elsewhere *ElsewhereError
	for _, o := range all {
		switch letGo := o.source == o.at.Name; {
		case o.state == topology.StateMoved && asked(o.shard) && elsewhere == nil:
			elsewhere = &ElsewhereError{[]int64{o.shard}, gone, o.at.Name, letGo}
		case o.state == topology.StateMoved && asked(o.shard):
			if elsewhere.Left == o.at.Name && elsewhere.LetGo == letGo {
				elsewhere.Shards = append(elsewhere.Shards, o.shard)
			}
		case o.state != topology.StateMoved && !o.serves():
			return nil, o.at.fault(fmt.Errorf("shard %d is closed there; to open it first: firn shard reopen %s", o.shard, o.at.Name))
		}
	}
	if elsewhere != nil {
		slices.Sort(elsewhere.Shards)
		return nil, elsewhere
	}
	return all, nil
}

// An orphan is what a server knows of a shard whose other server is gone.
type orphan struct {
	at             *end
	shard          int64
	batch          string
	source, target string
	state          topology.State
	here           bool
	term           int64
}

func (o orphan) serves() bool { return o.state == topology.StateOpen && o.here }

const orphansSQL = `
SELECT m.shard, m.batch, m.source, m.target, s.state, firn.is_here(s), s.term FROM firn.move AS m JOIN firn.shard AS s ON s.shard = m.shard
WHERE $1 IN (m.source, m.target) ORDER BY m.shard`

// orphans are those of the batches of shards that are asked for.
func (e *end) orphans(ctx context.Context, gone string, asked func(int64) bool) ([]orphan, error) {
	if err := e.connect(ctx); err != nil {
		return nil, err
	}
	rows, err := e.conn.Query(ctx, orphansSQL, gone)
	if err != nil {
		if isMissing(err) {
			return nil, nil
		}
		return nil, e.fault(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (orphan, error) {
		o := orphan{at: e}
		err := row.Scan(&o.shard, &o.batch, &o.source, &o.target, &o.state, &o.here, &o.term)
		return o, err
	})
	if err != nil {
		if isMissing(err) {
			return nil, nil
		}
		return nil, e.fault(err)
	}
	batches := make(map[string]bool)
	for _, o := range all {
		batches[o.batch] = batches[o.batch] || asked(o.shard)
	}
	return slices.DeleteFunc(all, func(o orphan) bool { return !batches[o.batch] }), nil
}

// end has the server that serves a shard forget of its move, at a term of its own.
func (o orphan) end(ctx context.Context) error {
	attempt := newWord()
	return o.at.fault(pgx.BeginFunc(ctx, o.at.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT firn.begin_move($1, $2, $3, $4, $5, false)", o.shard, o.term+1, attempt, o.batch, o.target); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "SELECT firn.end_move($1, $2, $3)", o.shard, o.term+1, attempt)
		return err
	}))
}

const systemSQL = `SELECT (pg_control_system()).system_identifier::text, servers, NOT EXISTS (SELECT FROM pg_publication WHERE pubname !~ '^firn_(move|back)_[a-z0-9]{12}$') FROM firn.server`

// strangeSyncSQL are slots of first copies of tables that none of some systems makes; those
// that are in use too, or not.
const strangeSyncSQL = `SELECT slot_name::text FROM pg_replication_slots
WHERE slot_name ~ '^pg_\d+_sync_\d+_\d+$' AND database = current_database() AND substring(slot_name FROM '_(\d+)$') <> ALL ($1::text[]) AND ($2 OR NOT active)`

// dropSyncs drops the slots of first copies that the server which is gone was making.
// Their names say which system they are for, not which server: they are its if all others
// of the cluster have another one, and nobody but firn publishes anything. Else they are
// returned.
func dropSyncs(ctx context.Context, rest []*end, gone string) (kept []Leftover, err error) {
	var systems []string
	members, own := map[string]bool{gone: true}, make([]bool, len(rest))
	for i, e := range rest {
		var system string
		var names []string
		if err := e.conn.QueryRow(ctx, systemSQL).Scan(&system, &names, &own[i]); err != nil {
			return nil, e.fault(err)
		}
		systems = append(systems, system)
		for _, name := range names {
			members[name] = members[name] || false
		}
	}
	for _, e := range rest {
		members[e.Name] = true
	}
	all := !slices.Contains(slices.Collect(maps.Values(members)), false)
	for i, e := range rest {
		slots, err := names(ctx, e.conn, strangeSyncSQL, systems, all && own[i])
		if err != nil {
			return kept, e.fault(err)
		}
		for _, slot := range slots {
			l := Leftover{Server: e.Name, Kind: Slot, Name: slot, Shard: -1, Harm: remedies[Slot].harm}
			if !all || !own[i] {
				kept = append(kept, l)
			} else if err := dropSlot(ctx, e.conn, slot, 4*slotPatience); err != nil {
				return kept, e.fault(fmt.Errorf("slot %s: %w", slot, err))
			}
		}
	}
	slices.SortFunc(kept, func(a, b Leftover) int { return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Name, b.Name)) })
	return kept, nil
}
