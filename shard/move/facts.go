package move

import (
	"cmp"
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/firn-id/firn/shard/topology"
)

// facts are what both servers say of some shards and of the batch that they are in.
type facts struct {
	shards         []pairOf // in order
	source, target stream
}

// pairOf is what both say of one shard.
type pairOf struct {
	shard          int64
	source, target copyOf
}

// A copyOf is what one server says of one shard.
type copyOf struct {
	there   bool // it has a row
	schema  string
	state   topology.State
	here    bool
	term    int64
	attempt string
	movedTo string
	givenTo string // the server that it was let go to at this term, as far as is known here

	batch  string // of the move that it is in; empty: none
	toward string // the target of that move
	loaded bool

	counted bool   // that is so since it was let go, when it had all rows
	surplus string // rows that this copy has and the server that serves lacks, by the last comparison; empty: none
}

// view is what the server says of the shard, as far as that is read here.
func (c copyOf) view(n int64) *topology.View {
	v := new(topology.View)
	if c.there {
		told := c.state == topology.StateMoved && c.attempt == "" && c.term > 0
		v.Shards = []topology.Row{{Shard: n, Schema: c.schema, State: c.state, Term: c.term, MovedTo: c.movedTo, Here: c.here, Told: told}}
	}
	return v
}

// serves says whether the shard is owned here.
func (c copyOf) serves() bool { return c.state == topology.StateOpen && c.here }

// A stream is what a server has of a batch: what it sends, and what it receives.
type stream struct {
	publication, slot, lost, subscription, enabled bool
	paused                                         bool // the move is, on the target

	published int64 // tables in the publication
	known     int64 // tables that the subscription knows
	copying   int64 // those of them that are not all here yet
	unguarded int64 // tables of its shards on which a copy of this server would receive
}

const shardFacts = `
SELECT x, s.shard IS NOT NULL, coalesce(s.schema::text, ''), coalesce(s.state, ''), coalesce(firn.is_here(s), false), coalesce(s.term, 0), coalesce(s.attempt, ''), coalesce(s.moved_to, ''), coalesce(CASE WHEN s.state = 'moved' THEN firn.given_to(s) END, ''),
	coalesce(m.batch, ''), coalesce(m.target, ''), coalesce(m.loaded, false), coalesce(m.surplus, ''), coalesce(m.counted, false)
FROM unnest($1::integer[]) AS x LEFT JOIN firn.shard AS s ON s.shard = x LEFT JOIN firn.move AS m ON m.shard = x ORDER BY x`

// A slot that is still being made keeps nothing yet.
const streamFacts = `
SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = $1),
	EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1 AND database = current_database() AND confirmed_flush_lsn IS NOT NULL),
	EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1 AND wal_status = 'lost'),
	s.oid IS NOT NULL, coalesce(s.subenabled, false), coalesce(obj_description(s.oid, 'pg_subscription') = '` + pausedComment + `', false),
	(SELECT count(*) FROM pg_publication AS p JOIN pg_publication_rel AS r ON r.prpubid = p.oid WHERE p.pubname = $1),
	(SELECT count(*) FROM pg_subscription_rel AS r WHERE r.srsubid = s.oid),
	(SELECT count(*) FROM pg_subscription_rel AS r WHERE r.srsubid = s.oid AND r.srsubstate <> 'r'),
	(SELECT count(*) FROM firn.move AS m JOIN firn.shard AS x ON x.shard = m.shard CROSS JOIN LATERAL firn.replicated(x.schema) AS r WHERE s.oid IS NULL AND m.batch = right($1, 12) AND NOT firn.is_guarded(r))
FROM (SELECT) AS one LEFT JOIN pg_subscription AS s ON s.subname = $2 AND s.subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())`

// look asks both servers.
func (m *Mover) look(ctx context.Context, shards []int64) (*facts, error) {
	f := &facts{shards: make([]pairOf, len(shards))}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		return m.source.look(ctx, shards, m.forth(), m.back(), &f.source, func(i int) *copyOf { return &f.shards[i].source })
	})
	both.Go(func() error {
		return m.target.look(ctx, shards, m.back(), m.forth(), &f.target, func(i int) *copyOf { return &f.shards[i].target })
	})
	if err := both.Wait(); err != nil {
		return nil, err
	}
	for i, n := range shards {
		f.shards[i].shard = n
	}
	return f, nil
}

// letGoTo is the server that a shard was let go to; "" where nobody knows. Who lets it go
// knows that first, and the other server when it has received all.
func (p pairOf) letGoTo() string { return cmp.Or(p.source.givenTo, p.target.givenTo) }

func (e *end) look(ctx context.Context, shards []int64, sends, receives string, st *stream, into func(int) *copyOf) error {
	if err := e.connect(ctx); err != nil {
		return err
	}
	rows, err := e.conn.Query(ctx, shardFacts, shards)
	if err != nil {
		return e.fault(err)
	}
	defer rows.Close()
	for i := 0; rows.Next(); i++ {
		var n int64
		c := into(i)
		if err := rows.Scan(&n, &c.there, &c.schema, &c.state, &c.here, &c.term, &c.attempt, &c.movedTo, &c.givenTo, &c.batch, &c.toward, &c.loaded, &c.surplus, &c.counted); err != nil {
			return e.fault(err)
		}
		if n != shards[i] {
			return fmt.Errorf("shard: shard %d is asked for twice", n)
		}
	}
	if rows.Err() != nil {
		return e.fault(rows.Err())
	}
	return e.fault(e.conn.QueryRow(ctx, streamFacts, sends, receives).Scan(&st.publication, &st.slot, &st.lost, &st.subscription, &st.enabled, &st.paused, &st.published, &st.known, &st.copying, &st.unguarded))
}
