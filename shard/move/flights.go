package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/check"
)

// A Flight is a batch of shards that is under way, or has arrived and was not finished,
// as far as the servers that answer show it.
type Flight struct {
	Batch, Source, Target string
	Shards                []int64
	Moved                 []int64 // those of them that the target serves
	Kept                  []int64 // those of them that the source serves, as far as it answers
	Waiting               []int64 // those that were let go and not taken yet: no server serves them
	Back                  []int64 // those whose last mover was a revert, whether it came to its end or not
	Parted                []int64 // those that can neither move on nor go back: the copy that does not serve is not the shard any more
	Began                 time.Time
	Phase                 Stage

	Rows, RowsTotal int64 // that the target has, and that there are, as the servers estimate
	Lag             int64 // bytes of WAL that the other server has not applied; -1: not known
	Problem         string
	Forgot          string // of HalfLeft: the server that knows nothing of it
	Err             error  // of Unknown: the [*shard.ServerError] of the server that did not say

	Copy    string // a server of it that is a copy, which has to be reopened before the move goes on or ends
	Standby string // of Unknown: the server whose address leads to a standby

	Lost []check.Opening // those that no server serves and no move opens, if all servers answer
}

// Nowhere are the shards of it that no server serves, as far as servers answer.
func (f Flight) Nowhere() []int64 {
	return slices.DeleteFunc(slices.Clone(f.Shards), func(n int64) bool { return slices.Contains(f.Moved, n) || slices.Contains(f.Kept, n) })
}

// Fresh says that only one server knows of it, and that somebody may be about to tell the other.
func (f Flight) Fresh() bool { return f.Phase == HalfLeft && time.Since(f.Began) < halfAge }

// Openings are the commands that open what was let go and not taken yet: whatever else is typed,
// the server that a shard was let go to opens it first.
func (f Flight) Openings() (commands []string) {
	back := slices.DeleteFunc(slices.Clone(f.Waiting), func(n int64) bool { return !slices.Contains(f.Back, n) })
	if len(back) > 0 {
		commands = append(commands, opening(true, back, f.Target))
	}
	if len(back) < len(f.Waiting) {
		forth := slices.DeleteFunc(slices.Clone(f.Shards), func(n int64) bool { return slices.Contains(f.Back, n) })
		commands = append(commands, opening(false, forth, f.Target))
	}
	if len(f.Lost) > 0 { // the first, because nothing else can end the move
		commands = commands[:0]
		for _, o := range f.Lost {
			commands = append(commands, o.Text())
		}
	}
	return commands
}

// opening is the command that opens shards of a move which were let go to its source, or to its
// target.
func opening(back bool, shards []int64, target string) string {
	if back {
		return revert(shards)
	}
	return moveTo(shards, target)
}

// List writes the numbers of shards as commands take them, those that follow each other as in
// 17-40. They have to be in order.
func List(shards []int64) string {
	var b strings.Builder
	for i := 0; i < len(shards); {
		j := i
		for j+1 < len(shards) && shards[j+1] == shards[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(shards[i], 10))
		if j > i {
			b.WriteString("-" + strconv.FormatInt(shards[j], 10))
		}
		i = j + 1
	}
	return b.String()
}

// A Stage is how far a flight is.
type Stage string

const (
	Begun    Stage = "begun"     // the target has no copy yet
	Filling  Stage = "copying"   // it makes one
	Ready    Stage = "following" // it has one, and keeps it up to date
	Between  Stage = "cutover"   // a shard was let go, and not taken yet
	Arrived  Stage = "arrived"   // all are on the target; their old copies follow
	HalfLeft Stage = "ending"    // one of the servers knows nothing of it any more
	Unknown  Stage = "unknown"   // one of the servers does not answer, or refuses to
)

// Flights are the moves that servers know of, the oldest first. The error is of those
// that did not answer; the others are asked all the same.
func Flights(ctx context.Context, servers []shard.Server) ([]Flight, error) {
	said := make([]map[string]*account, len(servers))
	seen, errs := make([]*shard.View, len(servers)), make([]error, len(servers))
	err := each(servers, func(i int, s shard.Server) error {
		said[i], seen[i], errs[i] = askOfMoves(ctx, s)
		return errs[i]
	})
	views := make(map[string]*shard.View)
	for i, v := range seen {
		if stray := servers[i].Outside(v, errs[i], seen); stray != nil {
			said[i], v, errs[i], err = nil, nil, stray, cmp.Or(err, stray)
		}
		if v != nil {
			views[servers[i].Name] = v
		}
	}
	words := make(map[string]map[string]*account) // by batch and server
	for i, of := range said {
		for batch, w := range of {
			if words[batch] == nil {
				words[batch] = make(map[string]*account)
			}
			words[batch][servers[i].Name] = w
		}
	}
	var all []Flight
	for batch, of := range words {
		f := flightOf(batch, of)
		for i, s := range servers {
			if s.Name != f.Source && s.Name != f.Target {
				continue
			}
			if said[i] == nil {
				f.silent(s.Name, errs[i])
			}
			if v, other := views[s.Name], views[either(s.Name == f.Source, f.Target, f.Source)]; of[s.Name] == nil && v != nil && other != nil && v.Cluster != other.Cluster {
				f.silent(s.Name, &shard.ServerError{Server: s.Name, Err: &shard.StrayError{Database: v.Database, Why: "is in another cluster"}})
			}
			if v := views[s.Name]; v != nil && v.Standby {
				f.Phase, f.Forgot, f.Problem, f.Standby = Unknown, "", "the address of "+s.Name+" leads to a standby", s.Name
			}
		}
		both := map[string]*shard.View{f.Source: views[f.Source], f.Target: views[f.Target]}
		for _, n := range f.Shards {
			if both[f.Source] != nil && both[f.Target] != nil {
				f.Copy = cmp.Or(f.Copy, check.CopyOf(both, n))
			}
			if o, lost := check.OpeningOf(views, n); lost && len(views) == len(servers) {
				f.Lost = append(f.Lost, o)
			}
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Flight) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Batch, b.Batch)) })
	return all, err
}

// silent notes that a server has not said what it knows. Where one refuses and the other one is
// away, that one comes first.
func (f *Flight) silent(server string, err error) {
	if f.Err != nil && !f.Refused() {
		return
	}
	f.Phase, f.Forgot, f.Err, f.Problem = Unknown, "", err, server+" does not answer"
	var stray *shard.StrayError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &stray):
		f.Problem = "server " + server + ": " + stray.Error()
	case errors.As(err, &pg) && strings.HasPrefix(pg.Code, "28"):
		f.Problem = server + " refuses the login: " + pg.Message
	case f.Refused():
		f.Problem = server + " refuses to say: " + reason(err)
	}
}

// Refused reports whether how far the move is is unknown although both servers answer: one of them
// refuses to say.
func (f Flight) Refused() bool {
	var of *shard.ServerError
	return errors.As(f.Err, &of) && !of.Away()
}

// reason is what a server says, without its name.
func reason(err error) string {
	var pg *pgconn.PgError
	var of *shard.ServerError
	switch {
	case errors.As(err, &pg):
		return pg.Message
	case errors.As(err, &of):
		return of.Err.Error()
	}
	return err.Error()
}

// each does something at all servers at once. The error is the first of all of them.
func each(servers []shard.Server, f func(int, shard.Server) error) error {
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { errs[i] = f(i, s) })
	}
	all.Wait()
	return cmp.Or(errs...)
}

// An account is what one server says of one batch.
type account struct {
	source, target string
	began          time.Time
	serves         map[int64]bool // by shard: whether it is open here
	back           map[int64]bool // those whose last mover was a revert, as far as is known here
	loaded         map[int64]bool
	schema         map[int64]string // by shard: what its schema is here
	stream         string           // what it sends
	slot           string           // of that: "", "lost", "idle" or "used"
	lag            int64            // of the slot
	known, ready   int64            // tables of what it receives
	rows           int64            // of its copies, and of what it makes of them now
}

const movesSQL = `
SELECT m.batch, m.source, m.target, m.shard, m.began, m.loaded, CASE WHEN m.loaded THEN coalesce(md5(firn.fingerprint(s.schema)), '') ELSE '' END, s.state = 'open' AND firn.is_here(s), coalesce(CASE WHEN s.state = 'moved' THEN firn.let_go_to(s) = m.source ELSE (s.attempt LIKE '%+') = (m.source = (SELECT v.name FROM firn.server AS v)) END, false), firn.publication_of(m)::text,
	coalesce((SELECT CASE WHEN x.wal_status = 'lost' THEN 'lost' WHEN x.active THEN 'used' ELSE 'idle' END FROM pg_replication_slots AS x WHERE x.slot_name = firn.publication_of(m)), ''),
	coalesce((SELECT greatest(0, pg_current_wal_lsn() - coalesce(r.replay_lsn, x.confirmed_flush_lsn)) FROM pg_replication_slots AS x
		LEFT JOIN pg_stat_replication AS r ON r.pid = x.active_pid WHERE x.slot_name = firn.publication_of(m)), -1)::bigint,
	(SELECT count(*) FROM pg_subscription AS u JOIN pg_subscription_rel AS r ON r.srsubid = u.oid WHERE u.subname = firn.subscription_of(m)),
	(SELECT count(*) FROM pg_subscription AS u JOIN pg_subscription_rel AS r ON r.srsubid = u.oid WHERE u.subname = firn.subscription_of(m) AND r.srsubstate = 'r'),
	coalesce((SELECT sum(greatest(c.reltuples, t.n_live_tup, p.tuples_processed, 0)) FROM firn.relations(s.schema) AS r JOIN pg_class AS c ON c.oid = r.relation
		LEFT JOIN pg_stat_user_tables AS t ON t.relid = c.oid LEFT JOIN pg_stat_progress_copy AS p ON p.relid = c.oid WHERE r.rows), 0)::bigint
FROM firn.move AS m JOIN firn.shard AS s ON s.shard = m.shard ORDER BY m.batch, m.shard`

// askOfMoves has a server say what it knows, by batch, and of its shards. The view is nil where
// the server is in no cluster.
func askOfMoves(ctx context.Context, s shard.Server) (map[string]*account, *shard.View, error) {
	c, err := s.Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close(context.WithoutCancel(ctx))
	said := make(map[string]*account)
	rows, err := c.Query(ctx, movesSQL)
	if err == nil {
		var batch string
		var n, tuples int64
		var loaded, serves, back bool
		var schema string
		var one account
		_, err = pgx.ForEachRow(rows, []any{&batch, &one.source, &one.target, &n, &one.began, &loaded, &schema, &serves, &back, &one.stream, &one.slot, &one.lag, &one.known, &one.ready, &tuples}, func() error {
			w := said[batch]
			if w == nil {
				first := one
				first.serves, first.back, first.loaded, first.schema = make(map[int64]bool), make(map[int64]bool), make(map[int64]bool), make(map[int64]string)
				w = &first
				said[batch] = w
			}
			w.serves[n], w.back[n], w.loaded[n], w.schema[n] = serves, back, loaded, schema
			w.rows += tuples
			return nil
		})
	}
	if err != nil && !isMissing(err) && !inRecovery(err) {
		return nil, nil, &shard.ServerError{Server: s.Name, Err: err}
	}
	view, err := s.LookAt(ctx, c)
	if err != nil && !errors.Is(err, shard.ErrNoShards) {
		return nil, nil, err
	}
	return said, view, nil
}

// flightOf puts together what servers say of a batch. One that did not answer says nothing.
func flightOf(batch string, said map[string]*account) Flight {
	f := Flight{Batch: batch, Lag: -1}
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
	}
	f.Parted = parted(f, a, b)
	f.RowsTotal, f.Rows, f.Lag = a.rows, min(a.rows, b.rows), a.lag
	from, to := a, b
	switch {
	case len(f.Waiting) > 0:
		f.Phase = Between
	case len(f.Moved) == len(f.Shards):
		f.Phase, f.RowsTotal, f.Rows, f.Lag = Arrived, b.rows, b.rows, b.lag
		from, to = b, a
	case b.known == 0:
		f.Phase, f.Rows = Begun, 0
	case b.ready < b.known:
		f.Phase = Filling
	default:
		f.Phase = Ready
	}
	switch {
	case from.slot == "lost":
		f.Problem = "the replication slot " + from.stream + " has lost what it kept"
	case len(f.Parted) > 0:
		f.Problem = fmt.Sprintf("the two copies of shard %s are not alike any more", List(f.Parted))
	case from.slot == "idle" && to.known > 0:
		f.Problem = "nobody reads " + from.stream
	}
	return f
}

// parted are the shards of a move that no cutover takes, in neither direction: their schema was
// changed on the server that serves them, or the way back of those that have moved is gone.
func parted(f Flight, a, b *account) (all []int64) {
	wayBack := a.slot != "" && a.slot != "lost" && b.slot != "" && b.slot != "lost"
	for _, n := range f.Shards {
		both := a.loaded[n] && b.loaded[n]
		switch {
		case slices.Contains(f.Waiting, n): // it opens by what it was when it was let go
		case slices.Contains(f.Moved, n) && (!a.loaded[n] || !wayBack), both && a.schema[n] != b.schema[n]:
			all = append(all, n)
		}
	}
	return all
}

// knows says whether a server has a shard in the batch, and let whether it does not serve it.
func (w *account) knows(n int64) bool { _, known := w.serves[n]; return known }
func (w *account) let(n int64) bool   { return w.knows(n) && !w.serves[n] }

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

func either(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}
