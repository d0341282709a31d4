package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// A Reopening says what to do so that a server which was promoted, restored or copied serves its shards
// again, or a server on which shards are closed.
type Reopening struct {
	Server string
	Shards []topology.Row // to be opened
	Left   []Left         // not to be opened
	Told   []Told         // of what this is a copy of, and open elsewhere
	Closed []Closed       // to be closed on other servers, which serve them too
	Copy   bool           // the server is a copy, and takes an incarnation of its own, also where it opens no shard

	// Incomplete says that a copy is opened as it is of which nobody knows that it has
	// all rows: those that it lacks are lost, and ids are not given again all the same.
	Incomplete bool

	// Compare compares two copies of a shard whose move is not finished. Nil: such a shard is not opened.
	Compare Compare

	Views map[string]*topology.View // of the servers that answered; nil of a plan that LookReopen has not made

	options  ReopenOptions
	above    int64           // the state to open above
	away     []string        // servers that did not answer
	terms    map[int64]int64 // above all that servers have seen, or had
	system   int64           // of the server as it was seen
	timeline string

	incarnation string   // of the server: as it was seen, until it takes its own
	formerly    []string // its earlier ones
	begun       bool
	introduced  map[string]bool // other servers that know the incarnation

	compared map[copyOf]check.Comparison // what other servers have of a shard, with what the server has
}

// A Left is a shard that a plan does not open.
type Left struct {
	Shard int64
	Why   string
}

// Told is a shard of which the server is to be told where it is: what is known there is of
// what this is a copy of, and until then the shard cannot be moved there.
type Told struct {
	Shard, Term int64
	Server      string
}

// A Closed is a shard that another server serves too, because one of the two servers was put back to an
// earlier state. Run closes the shard on that server, and leaves its rows there.
type Closed struct {
	Shard          int64
	Schema, Server string
}

// unseen is by how much the term of a shard may be higher on a server that was lost than all other servers know: it
// opens a shard that comes to it at the next term. What is opened instead is at a higher one, so that the lost server
// is known to be older if it comes back.
const unseen = 1

// PlanReopen says which shards may be opened on a server, by what all servers say. Every server of the
// cluster has to have answered, or to be named in gone: a shard that it serves would otherwise be served
// twice. With asked nil the plan opens the shards that do not serve. Else it opens the shards that
// asked selects, even if they serve. Where another server serves such a shard too, the plan closes it
// there, unless that server opened it later.
func PlanReopen(server string, views map[string]*topology.View, away, gone []string, asked func(shard int64) bool) (*Reopening, error) {
	v := views[server]
	if v == nil {
		return nil, fmt.Errorf("shard: server %s does not answer", server)
	}
	m, err := topology.NewMap(views)
	if err != nil {
		return nil, err
	}
	if err := check.RefuseStandbys(views); err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(away, m.Missing) {
		if !slices.Contains(gone, name) {
			return nil, &AwayError{server, name, unlisted(name, server, views)}
		}
	}
	r := &Reopening{Server: server, Copy: !v.Itself, terms: make(map[int64]int64), compared: make(map[copyOf]check.Comparison), system: v.System, timeline: v.Timeline, incarnation: v.Incarnation, introduced: make(map[string]bool)}
	for _, other := range views {
		for _, row := range other.Shards {
			r.terms[row.Shard] = max(r.terms[row.Shard], row.Term+unseen+1)
		}
	}
	for _, row := range v.Shards {
		closed := closedFor(row, server, views)
		if asked == nil && row.Serves() && len(closed) == 0 || asked != nil && !asked(row.Shard) {
			continue
		}
		if why := whyNot(row, server, views, asked != nil); why != "" {
			r.Left = append(r.Left, Left{row.Shard, why})
			if told := toldOf(row, views); told != nil {
				r.Told = append(r.Told, *told)
			}
		} else if to := row.MovedTo; row.State == topology.StateMoved && views[to] == nil && !slices.Contains(gone, to) {
			return nil, &AwayError{server, to, false} // it may be none of the cluster any more, and have the shard
		} else {
			r.Shards, r.Closed = append(r.Shards, row), append(r.Closed, closed...)
		}
	}
	return r, nil
}

// unlisted reports whether only the server that reopen opens lists a server, and no other server does.
func unlisted(name, server string, views map[string]*topology.View) bool {
	for other, v := range views {
		if other != server && slices.Contains(v.Servers, name) {
			return false
		}
	}
	return len(views) > 1
}

// closedFor are the servers that serve a shard besides one that is to open it.
func closedFor(row topology.Row, server string, views map[string]*topology.View) []Closed {
	var all []Closed
	for _, name := range slices.Sorted(maps.Keys(views)) {
		for _, other := range views[name].Shards {
			if name != server && other.Shard == row.Shard && other.Serves() {
				all = append(all, Closed{row.Shard, other.Schema, name})
			}
		}
	}
	return all
}

// overrules says whether the row of a server counts more than that of another server, which
// serves the shard. Each server that opens a shard does so at a higher term than all before.
// At equal terms the operator decides between two servers that serve it. A copy never counts
// more than who serves, and neither does a server that was told of a later term, which knows
// nothing of what came with it.
func overrules(row, other topology.Row) bool {
	return row.Here && !row.Told && (row.State != topology.StateClosed && row.Term > other.Term || row.Serves() && row.Term == other.Term)
}

// whyNot says why a shard must not be opened on a server, or nothing. One that has moved
// may have to be, where nobody has it: only if it is asked for.
func whyNot(row topology.Row, server string, views map[string]*topology.View, asked bool) string {
	if row.State == topology.StateMoved && !asked {
		return movedText(row, views)
	}
	for _, name := range newestFirst(views, row.Shard) {
		v := views[name]
		i := slices.IndexFunc(v.Shards, func(other topology.Row) bool { return other.Shard == row.Shard })
		if name == server || i < 0 {
			continue
		}
		switch other := v.Shards[i]; {
		case other.Serves() && asked && overrules(row, other):
		case other.Serves():
			return "it is open on " + name
		case other.State == topology.StateMoved && other.MovedTo == server: // it was to come from here, or was let go
		case asked && letGoTo(row, name) && !other.Here: // that is an older state perhaps: their rows say which has more
		case other.State == topology.StateMoved && superseded(other, server, views): // a move that came back here
		case other.Term > row.Term && other.State == topology.StateMoved:
			return fmt.Sprintf("%s has given it to %s since", name, other.MovedTo)
		case other.Term > row.Term:
			return fmt.Sprintf("%s has had it since: the term there is %d, and %d here", name, other.Term, row.Term)
		}
	}
	return ""
}

// newestFirst are the names of servers: first those that serve a shard, then those that know it at the highest term.
func newestFirst(views map[string]*topology.View, n int64) []string {
	rowOf := func(name string) (row topology.Row) {
		for _, row = range views[name].Shards {
			if row.Shard == n {
				return row
			}
		}
		return topology.Row{Term: -1}
	}
	rank := func(name string) int {
		if rowOf(name).Serves() {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(views), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(rowOf(b).Term, rowOf(a).Term), cmp.Compare(a, b))
	})
}

// superseded says whether a server let a shard go to the one that is to open it, after all that another row says.
func superseded(row topology.Row, server string, views map[string]*topology.View) bool {
	for _, v := range views {
		for _, later := range v.Shards {
			if later.Shard == row.Shard && later.State == topology.StateMoved && later.MovedTo == server && later.Term > row.Term {
				return true
			}
		}
	}
	return false
}

// movedText says where a shard was moved to, and where it is now if that is another server.
func movedText(row topology.Row, views map[string]*topology.View) string {
	text := "it was moved to " + row.MovedTo
	for _, name := range slices.Sorted(maps.Keys(views)) {
		if name != row.MovedTo && slices.ContainsFunc(views[name].Shards, func(other topology.Row) bool { return other.Shard == row.Shard && other.Serves() }) {
			return text + ", and is on " + name + " now"
		}
	}
	return text
}

// letGoTo says whether a row is that of a shard which a move took to a server.
func letGoTo(row topology.Row, server string) bool {
	return row.Here && !row.Told && row.State == topology.StateMoved && row.MovedTo == server
}

// toldOf is what a server is to be told of a shard, by its row, or nothing.
func toldOf(row topology.Row, views map[string]*topology.View) *Told {
	if row.Here {
		return nil
	}
	for name, v := range views {
		for _, other := range v.Shards {
			if other.Shard == row.Shard && other.Serves() && other.Term >= row.Term {
				return &Told{other.Shard, other.Term, name}
			}
		}
	}
	return nil
}

// begin has the server take an incarnation of its own, where it is promoted, restored or a copy.
func (r *Reopening) begin(ctx context.Context, conn *pgx.Conn) error {
	if r.begun {
		return nil
	}
	if err := conn.QueryRow(ctx, "SELECT firn.begin_reopen($1)::text", r.incarnation).Scan(&r.incarnation); err != nil {
		return err
	}
	err := conn.QueryRow(ctx, "SELECT formerly::text[] FROM firn.server").Scan(&r.formerly)
	r.begun = err == nil
	return err
}

// introduce has all other servers know the incarnation. One that knows of another copy that was reopened refuses.
func (r *Reopening) introduce(ctx context.Context, others map[string]*pgx.Conn) error {
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if r.introduced[name] || len(r.formerly) == 0 {
			continue
		}
		if _, err := others[name].Exec(ctx, "SELECT firn.know($1, $2, $3, $4)", r.Server, r.incarnation, r.formerly, r.Incomplete); err != nil {
			return &topology.ServerError{Server: name, Err: err}
		}
		r.introduced[name] = true
	}
	return nil
}

// Tell has the server know where the shards are that are open elsewhere.
func (r *Reopening) Tell(ctx context.Context, conn *pgx.Conn) error {
	if err := r.begin(ctx, conn); err != nil {
		return err
	}
	for _, t := range r.Told {
		if _, err := conn.Exec(ctx, "SELECT firn.record_owner($1, $2, $3)", t.Shard, t.Term, t.Server); err != nil {
			return err
		}
	}
	return nil
}

// Reopen opens one shard of the plan, above a state, if the server and its row are still what the plan was
// made of. Before that it has all other servers, which it reaches by these connections, refuse to open
// the shard. It fails where the shard was let go to one of them.
func (r *Reopening) Reopen(ctx context.Context, conn *pgx.Conn, others map[string]*pgx.Conn, row topology.Row, above int64) error {
	term := r.terms[row.Shard]
	if _, err := conn.Exec(ctx, "SELECT firn.floor_above($1)", above); err != nil {
		return err // of the clock, before anything is taken from the others
	}
	if err := r.begin(ctx, conn); err != nil {
		return err
	}
	if err := r.introduce(ctx, others); err != nil {
		return err
	}
	doubt, err := r.checkRow(ctx, conn, others, row)
	if err != nil {
		return err
	}
	for name, other := range others {
		var state int64 // what it gave up to there is not given again
		if r.closes(row.Shard, name) {
			err = other.QueryRow(ctx, "SELECT firn.overrule($1, $2, $3, $4)", row.Shard, term, r.Server, row.Term).Scan(&state)
		} else {
			err = other.QueryRow(ctx, "SELECT coalesce(firn.revoke($1, $2, $3, $4, $5), 0)", row.Shard, row.Schema, term, r.Server, row.Term).Scan(&state)
		}
		if err != nil {
			return &topology.ServerError{Server: name, Err: err}
		}
		above = max(above, state)
	}
	if doubt != nil {
		return r.asItIs(ctx, conn, row, above)
	}
	return r.open(ctx, conn, row, row.State, above)
}

// Check returns the error with which Reopen would refuse the first shard that it would refuse,
// or nil. It changes nothing.
func (r *Reopening) Check(ctx context.Context, conn *pgx.Conn, others map[string]*pgx.Conn) error {
	if err := r.mayWork(ctx, conn, others); err != nil {
		return err
	}
	var first lackError
	for _, row := range r.Shards {
		var one lackError
		switch _, err := r.checkRow(ctx, conn, others, row); {
		case err == nil:
		case !errors.As(err, &one):
			if first == nil {
				return err
			}
		case first == nil:
			first = one
		default:
			first.add(row.Shard, one)
		}
	}
	if first != nil {
		return first
	}
	return nil
}

// checkRow says why rows of a shard may be missing, where the operator has agreed to that, or
// nothing.
func (r *Reopening) checkRow(ctx context.Context, conn *pgx.Conn, others map[string]*pgx.Conn, row topology.Row) (doubt, err error) {
	doubt, err = r.doubtOf(ctx, conn, others, row)
	if err == nil && doubt != nil {
		err = r.something(ctx, conn, row)
	}
	if err == nil {
		err = r.mayRevoke(ctx, others, row)
	}
	switch {
	case err != nil || r.Incomplete:
	case doubt != nil:
		err = &IncompleteError{row.Shard, nil, r.Server, row.MovedTo, doubt}
	default:
		err = r.compare(ctx, conn, others, row)
	}
	return doubt, err
}

// mayRevoke asks all others whether one of them refuses, before anything is taken from any:
// what was taken would stand in the way of the one that has the shard.
func (r *Reopening) mayRevoke(ctx context.Context, others map[string]*pgx.Conn, row topology.Row) error {
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if r.closes(row.Shard, name) {
			continue
		}
		if _, err := others[name].Exec(ctx, "SELECT firn.may_revoke($1, $2, $3, $4)", row.Shard, r.terms[row.Shard], r.Server, row.Term); err != nil {
			return &topology.ServerError{Server: name, Err: err}
		}
	}
	return nil
}

// closes says whether a shard is to be closed on a server.
func (r *Reopening) closes(n int64, server string) bool {
	return slices.ContainsFunc(r.Closed, func(c Closed) bool { return c.Shard == n && c.Server == server })
}

// open is the last step of Reopen, of a row that has a state by now.
func (r *Reopening) open(ctx context.Context, conn *pgx.Conn, row topology.Row, state topology.State, above int64) error {
	_, err := conn.Exec(ctx, "SELECT firn.reopen($1, $2, $3, $4, $5, $6, $7, $8)", row.Shard, row.Term, string(state), r.system, r.timeline, r.incarnation, r.terms[row.Shard], above)
	return err
}

// doubtOf says why rows of a shard may be missing on a server, or nothing. Where it was let
// go from there, the server that it went to says whether it has opened it, if it is asked.
func (r *Reopening) doubtOf(ctx context.Context, conn *pgx.Conn, others map[string]*pgx.Conn, row topology.Row) (doubt, err error) {
	var word string
	err = conn.QueryRow(ctx, "SELECT coalesce(firn.given_to(firn.may_reopen($1, $2, $3, $4, $5, $6)), '')", row.Shard, row.Term, string(row.State), r.system, r.timeline, r.incarnation).Scan(&word)
	switch {
	case row.State != topology.StateMoved:
		return nil, err
	case isCopy(err):
		return err, nil
	case err == nil && word == row.MovedTo && others[word] == nil:
		return fmt.Errorf("it was given to %s, and rows that were written there since may be missing here", word), nil
	case err == nil && word != row.MovedTo: // it was told since where the shard is
		return fmt.Errorf("it was given to %s and is on %s since, and rows that were written there may be missing here", word, row.MovedTo), nil
	case err == nil && word == row.MovedTo && r.closes(row.Shard, word):
		return fmt.Errorf("it was given to %s, which was put back to an earlier state: rows that were written there before may be missing here", word), nil
	}
	return nil, err
}

const somethingSQL = `SELECT EXISTS (SELECT FROM firn.generator AS g JOIN pg_class AS c ON c.oid = g."offset" WHERE g.shard = $1)`

// something refuses a shard that the server has no copy of, or has dropped it.
func (r *Reopening) something(ctx context.Context, conn *pgx.Conn, row topology.Row) error {
	var there bool
	if err := conn.QueryRow(ctx, somethingSQL, row.Shard).Scan(&there); err != nil || there {
		return err
	}
	return &NothingError{row.Shard, r.Server, row.MovedTo}
}

// isCopy says whether a server refuses a shard because rows may be missing there.
func isCopy(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "ID003"
}

// asItIs opens a shard with the rows that are there, which nobody else can have any more.
func (r *Reopening) asItIs(ctx context.Context, conn *pgx.Conn, row topology.Row, above int64) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT firn.make_do($1, $2)", row.Shard, row.Term); err != nil {
			return err
		}
		return r.open(ctx, tx.Conn(), row, topology.StateClosed, above)
	})
	if err == nil { // what would go on writing to it
		_, err = conn.Exec(ctx, "SELECT firn.drop_leftovers()")
	}
	return err
}
