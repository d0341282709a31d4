package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/topology"
)

// An account is what one server says of one batch.
type account struct {
	source, target string
	began          time.Time
	serves         map[int64]bool // by shard: whether it is open here
	back           map[int64]bool // those whose last mover was a revert, as far as is known here
	loaded         map[int64]bool
	changed        map[int64]bool // by shard: whether its schema was changed here since the copy was made
	open           []string       // tables of copies that programs can write to, because their fences are out of use
	stream         string         // what it sends
	slot           string         // of that: "", "lost", "idle" or "used"
	unapplied      int64          // of the slot
	reader         string         // of that slot: the address of who reads it
	known, ready   int64          // tables of what it receives
	apart          bool           // its subscription is not connected to what it reads
	surplus        map[int64]bool // by shard: whether its copy has rows that the server that serves lacks
	rows           int64          // of its copies, and of what it makes of them now
	wal            int64          // what the slot of what it sends keeps of its log, in bytes
	paused         bool           // its subscription is, because the move is paused
	mover          string         // whether a mover of the batch is connected: "yes", "no", or "" where the role may not see
}

const movesSQL = `
SELECT m.batch, m.source, m.target, m.shard, m.began, m.loaded, m.loaded AND m.copied IS NOT NULL AND m.copied IS DISTINCT FROM firn.fingerprint(s.schema, false),
	ARRAY(SELECT r.relation::text FROM firn.relations(s.schema) AS r WHERE m.loaded AND s.state = 'moved'
		AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = r.relation AND t.tgname = 'firn_fence' AND t.tgenabled <> 'D')),
	s.state = 'open' AND firn.is_here(s), coalesce(CASE WHEN s.state = 'moved' THEN firn.given_to(s) = m.source ELSE (s.attempt LIKE '%+') = (m.source = (SELECT v.name FROM firn.server AS v)) END, false), firn.publication_of(m)::text,
	coalesce((SELECT CASE WHEN x.wal_status = 'lost' THEN 'lost' WHEN x.active THEN 'used' ELSE 'idle' END FROM pg_replication_slots AS x WHERE x.slot_name = firn.publication_of(m)), ''),
	coalesce((SELECT greatest(0, pg_current_wal_lsn() - coalesce(r.replay_lsn, x.confirmed_flush_lsn)) FROM pg_replication_slots AS x
		LEFT JOIN pg_stat_replication AS r ON r.pid = x.active_pid WHERE x.slot_name = firn.publication_of(m)), -1)::bigint,
	coalesce((SELECT host(r.client_addr) || ', port ' || r.client_port FROM pg_replication_slots AS x JOIN pg_stat_replication AS r ON r.pid = x.active_pid WHERE x.slot_name = firn.publication_of(m)), ''),
	NOT EXISTS (SELECT FROM pg_stat_subscription AS u WHERE u.subname = firn.subscription_of(m) AND u.relid IS NULL AND u.received_lsn IS NOT NULL),
	m.surplus IS NOT NULL AND s.state = 'moved',
	(SELECT count(*) FROM pg_subscription AS u JOIN pg_subscription_rel AS r ON r.srsubid = u.oid WHERE u.subname = firn.subscription_of(m)),
	(SELECT count(*) FROM pg_subscription AS u JOIN pg_subscription_rel AS r ON r.srsubid = u.oid WHERE u.subname = firn.subscription_of(m) AND r.srsubstate = 'r'),
	coalesce((SELECT sum(greatest(c.reltuples, t.n_live_tup, p.tuples_processed, 0)) FROM firn.relations(s.schema) AS r JOIN pg_class AS c ON c.oid = r.relation
		LEFT JOIN pg_stat_user_tables AS t ON t.relid = c.oid LEFT JOIN pg_stat_progress_copy AS p ON p.relid = c.oid WHERE r.rows), 0)::bigint,
	coalesce((SELECT greatest(0, pg_current_wal_lsn() - x.restart_lsn) FROM pg_replication_slots AS x WHERE x.slot_name = firn.publication_of(m)), 0)::bigint,
	CASE WHEN EXISTS (SELECT FROM pg_stat_activity AS y WHERE y.datname = current_database() AND y.application_name = '` + moverSession + `' || m.batch) THEN 'yes'
		WHEN pg_has_role('pg_read_all_stats', 'USAGE') THEN 'no' ELSE '' END,
	EXISTS (SELECT FROM pg_subscription AS u WHERE u.subname = firn.subscription_of(m) AND obj_description(u.oid, 'pg_subscription') = '` + pausedComment + `')
FROM firn.move AS m JOIN firn.shard AS s ON s.shard = m.shard ORDER BY m.batch, m.shard`

// knownSQL is as much as a role may read that owns the shards and not the move, which a superuser began.
const knownSQL = `
SELECT m.batch, m.source, m.target, m.shard, m.began, s.state = 'open' AND firn.is_here(s)
FROM firn.move AS m JOIN firn.shard AS s ON s.shard = m.shard ORDER BY m.batch, m.shard`

// knownMoves are the batches that a server knows, with which shards it serves, and nothing else.
func knownMoves(ctx context.Context, c *pgx.Conn) map[string]*account {
	said := make(map[string]*account)
	rows, err := c.Query(ctx, knownSQL)
	if err != nil {
		return said
	}
	var batch string
	var n int64
	var serves bool
	var one account
	// The caller has the error of the query that says more.
	_, _ = pgx.ForEachRow(rows, []any{&batch, &one.source, &one.target, &n, &one.began, &serves}, func() error {
		if said[batch] == nil {
			first := one
			first.serves = make(map[int64]bool)
			said[batch] = &first
		}
		said[batch].serves[n] = serves
		return nil
	})
	return said
}

// askOfMoves has a server say what it knows, by batch, and of its shards. The view is nil where
// the server is in no cluster. Where the role may not see all of a move, the error says so, and the
// moves are known all the same.
func askOfMoves(ctx context.Context, s topology.Server) (said map[string]*account, view *topology.View, err error) {
	err = s.Ask(ctx, func(c *pgx.Conn) (err error) {
		said, view, err = allMoves(ctx, c, s)
		return err
	})
	return said, view, err
}

func allMoves(ctx context.Context, c *pgx.Conn, s topology.Server) (map[string]*account, *topology.View, error) {
	said, err := accountsOf(ctx, c)
	for tries := 0; dropped(err) && tries < staleTries; tries++ {
		said, err = accountsOf(ctx, c)
	}
	if sqlstate(err) == "42501" {
		said = knownMoves(ctx, c)
		view, _ := s.LookAt(ctx, c) // what it says of shards all may read
		return said, view, &topology.ServerError{Server: s.Name, Err: err}
	}
	if err != nil && !isMissing(err) && !inRecovery(err) {
		return nil, nil, &topology.ServerError{Server: s.Name, Err: err}
	}
	view, err := s.LookAt(ctx, c)
	if err != nil && (!errors.Is(err, topology.ErrNoCluster) || errors.As(err, new(*topology.UnrecordedError))) {
		return nil, nil, err
	}
	return said, view, nil
}

// accountsOf has a server say what it knows, by batch.
func accountsOf(ctx context.Context, c *pgx.Conn) (map[string]*account, error) {
	said := make(map[string]*account)
	// Mostly there are none, and to plan movesSQL takes a server longer than all else that it is asked.
	var some bool
	if err := c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM firn.move)").Scan(&some); err != nil || !some {
		return said, err
	}
	rows, err := c.Query(ctx, movesSQL)
	if err != nil {
		return said, err
	}
	var batch string
	var n, tuples int64
	var loaded, changed, serves, back, surplus bool
	var open []string
	var one account
	_, err = pgx.ForEachRow(rows, []any{&batch, &one.source, &one.target, &n, &one.began, &loaded, &changed, &open, &serves, &back, &one.stream, &one.slot, &one.unapplied, &one.reader, &one.apart, &surplus, &one.known, &one.ready, &tuples, &one.wal, &one.mover, &one.paused}, func() error {
		w := said[batch]
		if w == nil {
			first := one
			first.serves, first.back, first.loaded, first.surplus, first.changed = make(map[int64]bool), make(map[int64]bool), make(map[int64]bool), make(map[int64]bool), make(map[int64]bool)
			w = &first
			said[batch] = w
		}
		w.serves[n], w.back[n], w.loaded[n], w.surplus[n], w.changed[n] = serves, back, loaded, surplus, changed
		w.open = append(w.open, open...)
		w.rows += tuples
		return nil
	})
	return said, err
}

// moveOf puts together what servers say of a batch. One that did not answer says nothing.
func moveOf(batch string, said map[string]*account) Move {
	f := Move{Batch: batch, Unapplied: -1}
	for _, w := range said {
		if f.Began.IsZero() || w.began.Before(f.Began) {
			f.Source, f.Target, f.Began = w.source, w.target, w.began
		}
		for n := range w.serves {
			if !slices.Contains(f.Shards, n) {
				f.Shards = append(f.Shards, n)
			}
		}
	}
	slices.Sort(f.Shards)
	f.lookAtMover(said)
	a, b := said[f.Source], said[f.Target]
	if a != nil {
		f.Kept = served(a)
	}
	if a == nil || b == nil {
		f.Phase, f.Forgot, f.Problem = HalfLeft, either(a == nil, f.Source, f.Target), fmt.Sprintf("only %s knows of it", either(a != nil, f.Source, f.Target))
		if b != nil {
			f.Moved = served(b)
		}
		return f
	}
	for _, n := range f.Shards {
		// Who has a shard is the first to forget of its move: what one has let go, and the other
		// one does not know of, is there.
		if b.serves[n] || a.let(n) && !b.knows(n) {
			f.Moved = append(f.Moved, n)
		}
		// Who serves a shard knows best which mover was the last.
		back := a.back[n] || b.back[n]
		switch {
		case a.serves[n]:
			back = a.back[n]
		case b.serves[n]:
			back = b.back[n]
		case a.let(n) && b.let(n):
			f.Waiting = append(f.Waiting, n)
		}
		if back {
			f.Back = append(f.Back, n)
		}
		if a.surplus[n] || b.surplus[n] {
			f.Surplus = append(f.Surplus, n)
		}
	}
	parted := partedOf(f, a, b)
	f.Parted = slices.Concat(parted, without(f.Moved, slices.Collect(maps.Keys(b.serves)))) // the end of these was begun
	slices.Sort(f.Parted)
	f.RowsTotal, f.Rows, f.Unapplied = a.rows, min(a.rows, b.rows), a.unapplied
	from, to := a, b
	switch {
	case len(f.Waiting) > 0:
		f.Phase = Between
	case len(f.Moved) == len(f.Shards):
		f.Phase, f.RowsTotal, f.Rows, f.Unapplied = Arrived, b.rows, b.rows, b.unapplied
		from, to = b, a
	case b.known == 0:
		f.Phase, f.Rows = Begun, 0
	case b.ready < b.known:
		f.Phase = Filling
	default:
		f.Phase = Ready
	}
	f.Paused = b.paused && len(f.Moved) < len(f.Shards)
	f.Problem = f.problem(a, b, from, to, parted)
	return f
}

// lookAtMover notes what servers keep for a move, and whether a mover is at work on it.
func (f *Move) lookAtMover(said map[string]*account) {
	f.WAL, f.Idle = make(map[string]int64), len(said) > 0
	for name, w := range said {
		f.Idle = f.Idle && w.mover == "no"
		if w.wal > 0 {
			f.WAL[name] = w.wal
		}
	}
}

// problem is what is wrong with a move that both servers know, or "". From sends what to receives.
func (f Move) problem(a, b, from, to *account, parted []int64) string {
	copied, server := a.open, f.Source
	if len(copied) == 0 {
		copied, server = b.open, f.Target
	}
	switch {
	case from.slot == "lost":
		return "the replication slot " + from.stream + " has lost what it kept"
	case len(copied) > 0:
		return fmt.Sprintf("programs can write to the copy on %s, because fences are out of use (%s): on %[1]s ALTER TABLE ... ENABLE TRIGGER firn_fence", server, phrase.Few(copied))
	case len(f.Surplus) > 0:
		return fmt.Sprintf("the last comparison of shard %s found rows in the copy that the server that serves lacks", phrase.Numbers(f.Surplus))
	case from.slot == "used" && to.known > 0 && to.apart:
		return fmt.Sprintf("another server (%s) reads %s, in the place of %s: stop it, if it is a copy of %[3]s; it can take no rows", cmp.Or(from.reader, "its address is not known"), from.stream, either(to == a, f.Source, f.Target))
	case len(parted) > 0:
		return notAlikeText(parted...)
	case f.Paused:
		return fmt.Sprintf("it is paused: the copy does not follow, and %s keeps all WAL that it writes", f.Source)
	case from.slot == "idle" && to.known > 0:
		return "nobody reads " + from.stream
	}
	return ""
}

// partedOf are the shards of a move that no cutover takes, in neither direction: their schema was
// changed on one of the servers, or the way back of those that have moved is gone.
func partedOf(f Move, a, b *account) (all []int64) {
	wayBack := a.slot != "" && a.slot != "lost" && b.slot != "" && b.slot != "lost"
	for _, n := range f.Shards {
		switch {
		case !a.knows(n) || !b.knows(n), slices.Contains(f.Waiting, n): // what is let go opens by what it was then
		case slices.Contains(f.Moved, n) && (!a.loaded[n] || !wayBack), a.loaded[n] && b.loaded[n] && (a.changed[n] || b.changed[n]):
			all = append(all, n)
		}
	}
	return all
}

// knows says whether a server has a shard in the batch, and let whether it does not serve it.
func (w *account) knows(n int64) bool { _, known := w.serves[n]; return known }

func (w *account) let(n int64) bool { return w.knows(n) && !w.serves[n] }

// served are the shards that a server serves, in order.
func served(w *account) []int64 {
	var all []int64
	for n, serves := range w.serves {
		if serves {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}
