package setup

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/topology"
)

// ReopenOptions say how a server is reopened.
type ReopenOptions struct {
	// Gone are servers that do not answer, of which an operator says that they are permanently gone.
	Gone []string

	// Asked says which shards are to be opened, though they may serve. Nil means all that do not serve.
	Asked func(shard int64) bool

	// Margin is by how much ids start above the latest clock.
	Margin time.Duration

	// Incomplete opens a copy as it is of which nobody knows that it has all rows, or of which another
	// server has more.
	Incomplete bool

	// Compare compares two copies of a shard whose move is not finished. It is move.Compare. With nil
	// such a shard is not opened.
	Compare Compare
}

// LookReopen asks all servers, and plans as [PlanReopen] does which shards to open on one of them. It changes
// nothing. It fails with a [*check.AnswersError] where a server of o.Gone answers, with a [*RefusesError]
// where a server does not say what it serves, and with a [*ClockError] where clocks differ so much that
// one of them is wrong.
func LookReopen(ctx context.Context, servers []topology.Server, name string, o ReopenOptions) (*Reopening, error) {
	seen := check.Look(ctx, servers)
	for _, s := range seen {
		if s.Err == nil && s.Standby {
			return nil, &check.StandbyError{Server: s.Name}
		}
	}
	views, ahead := make(map[string]*topology.View), make(map[string]time.Duration)
	var away []string
	for i, s := range seen {
		if s.Name != name {
			if err := o.silent(ctx, servers[i], s.Err); err != nil {
				return nil, err
			}
		}
		switch {
		case s.Err == nil:
			views[s.Name], ahead[s.Name] = s.View, s.Offset+s.Error
		case s.Name == name:
			return nil, s.Err
		default:
			away = append(away, s.Name)
		}
	}
	if !o.Incomplete {
		if err := check.RefuseTwins(views); err != nil {
			return nil, err
		}
	}
	r, err := PlanReopen(name, views, away, o.Gone, o.Asked)
	if err != nil {
		return nil, err
	}
	r.Incomplete, r.Compare, r.Views, r.away, r.options = o.Incomplete, o.Compare, views, away, o
	r.above, err = Above(views[name].Layout, time.Now(), ahead, o.Margin)
	return r, err
}

// silent returns the error of a server that answers although it is said to be gone, or that does
// not say what it serves. Err is what the server has answered.
func (o ReopenOptions) silent(ctx context.Context, s topology.Server, err error) error {
	if slices.Contains(o.Gone, s.Name) {
		return check.ConfirmGone(ctx, s)
	}
	if err == nil || !(&topology.ServerError{Server: s.Name, Err: err}).Answered() {
		return nil
	}
	if check.AddressDo(err) != "" {
		return err
	}
	var of *topology.ServerError
	if errors.As(err, &of) {
		err = of.Err
	}
	return &RefusesError{s.Name, err}
}

// CheckOn is [Reopening.Check] on servers that it connects to.
func (r *Reopening) CheckOn(ctx context.Context, servers []topology.Server) error {
	if len(r.Shards) == 0 {
		return nil
	}
	c, others, err := r.connect(ctx, servers)
	defer hangUp(ctx, c, others)
	if err != nil {
		return err
	}
	return r.Check(ctx, c, others)
}

// Run does what is planned, under the locks of all servers that answer, and counts the shards that
// it has opened. It fails with [ErrOvertaken], and has done nothing, where the servers do not say
// any more what they said when the plan was made. Run again it goes on with the shards that are left.
func (r *Reopening) Run(ctx context.Context, servers []topology.Server, done *atomic.Int64) error {
	release, err := install.LockAll(ctx, r.answering(servers))
	if err != nil {
		return err
	}
	defer release()
	again, err := LookReopen(ctx, servers, r.Server, r.options)
	if err != nil {
		return err
	}
	if !slices.Equal(again.Shards, r.Shards) || !slices.Equal(again.Told, r.Told) || !slices.Equal(again.Closed, r.Closed) {
		return ErrOvertaken
	}
	again.compared = r.compared
	return again.openAll(ctx, servers, done)
}

func (r *Reopening) openAll(ctx context.Context, servers []topology.Server, done *atomic.Int64) error {
	c, others, err := r.connect(ctx, servers)
	defer hangUp(ctx, c, others)
	if err != nil {
		return err
	}
	if err := r.Tell(ctx, c); err != nil {
		return &topology.ServerError{Server: r.Server, Err: err}
	}
	for _, row := range r.Shards {
		if err := r.Reopen(ctx, c, others, row, r.above); err != nil {
			return err
		}
		done.Add(1)
	}
	return nil
}

// answering are the servers but those that did not answer.
func (r *Reopening) answering(servers []topology.Server) []topology.Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s topology.Server) bool { return slices.Contains(r.away, s.Name) })
}

// connect connects to the server of the plan, and to the others that answer.
func (r *Reopening) connect(ctx context.Context, servers []topology.Server) (c *pgx.Conn, others map[string]*pgx.Conn, err error) {
	others = make(map[string]*pgx.Conn)
	for _, s := range r.answering(servers) {
		conn, err := s.Connect(ctx)
		switch {
		case err != nil:
			return c, others, err
		case s.Name == r.Server:
			c = conn
		default:
			others[s.Name] = conn
		}
	}
	return c, others, nil
}

// hangUp closes what connect has opened.
func hangUp(ctx context.Context, c *pgx.Conn, others map[string]*pgx.Conn) {
	ctx = context.WithoutCancel(ctx)
	if c != nil {
		c.Close(ctx)
	}
	for _, other := range others {
		other.Close(ctx)
	}
}

// Opens returns which command opens a shard, where another server than that of the plan has to open it.
func (r *Reopening) Opens(n int64) (check.Opening, bool) {
	o, lost := check.OpeningOf(r.Views, n)
	return o, lost && o.Server != r.Server
}

// StillServed are what is wrong about the shards that the plan leaves: those that no server serves, and
// those that two serve.
func (r *Reopening) StillServed() (nowhere, twice []check.Finding) {
	left := func(n int64) bool {
		return slices.ContainsFunc(r.Left, func(l Left) bool { return l.Shard == n })
	}
	return check.Nowhere(r.Views, left), check.Twice(r.Views, left)
}

// Questions returns what a person has to confirm before Run, because no server knows it. There is at least
// one question.
func (r *Reopening) Questions() (all []string) {
	for _, gone := range r.options.Gone {
		all = append(all, "Is server "+gone+" permanently gone? What it serves would be served twice.")
	}
	if len(r.Closed) > 0 {
		all = append(all, "Is the copy on "+r.Server+" the one to keep? Programs do not see the rows of the other copy any more.")
	}
	back, forgotten := r.putBack(), r.Forgotten()
	switch {
	case len(forgotten.Shards) > 0:
		all = append(all, "If "+r.Server+" was put back to an earlier state, rows that were written to "+forgotten.Text()+" since, on "+r.Server+" or another server, are lost. Is there no newer backup and no standby of "+r.Server+"?")
	case back != "":
		all = append(all, "Rows that only "+back+" had before it was put back are lost. Is there no newer backup and no standby of "+back+"?")
	}
	switch {
	case r.Incomplete:
		all = append(all, "Rows that are not on "+r.Server+" are lost. Is there no standby and no backup that has them?")
	case len(r.Told) > 0 || slices.ContainsFunc(r.Shards, func(row topology.Row) bool { return !row.Serves() && (back == "" || !row.Here) }) || len(all) == 0:
		all = append(all, "Is what "+r.Server+" is a copy of, as its old primary, permanently gone? Rows that were written there and have not come here are lost.")
	}
	return all
}

// putBack is a server that was put back to an earlier state, and that a shard of the plan had been
// given to or came from; empty: there is none.
func (r *Reopening) putBack() string {
	for _, row := range r.Shards {
		if o, lost := check.OpeningOf(r.Views, row.Shard); lost && o.Server == r.Server && o.Back != "" {
			return o.Back
		}
		if v := r.Views[row.MovedTo]; v != nil && letGoTo(row, row.MovedTo) && slices.ContainsFunc(v.Shards, func(other topology.Row) bool {
			return other.Shard == row.Shard && other.Term > row.Term && !other.Here
		}) {
			return row.MovedTo
		}
	}
	return ""
}
