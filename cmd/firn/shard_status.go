package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsStatus() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show servers and running moves, and what to do next",
		Long: `Show each server: whether it answers, how many shards it serves, how many are closed
there or have moved away, the size of its database, and how far its clock is from
this host's. Then the moves that are under way or were not finished: how far each is,
how much of what was written is not on the other server yet, which server serves the
shards meanwhile, and what to type. Then what is wrong with the cluster as a whole, if
anything is.

A move is begun; copying; following, when the copy is complete and kept up to date;
cutover, while no server serves a shard; arrived, when all are on the target and the old
copies follow; ending, when one of the servers knows nothing of it any more; or unknown,
where a server does not answer. ROWS are PostgreSQL's estimates, as of the last ANALYZE or
VACUUM of each table or the last writes that it has counted: they may be old.

With --json there is an object for each server, which has a "server", and one for each
move, which has a "move".

With --watch it looks every 2 seconds until Ctrl-C, and says how many rows are written
to each server's database a second. A terminal is drawn over; elsewhere each look follows
the one before, after a line with the time, or in JSON with a "time" in each object.

The exit code is 3 if a line says bad: a server cannot be asked, or no server or more than
one serves a shard. A move that is under way is not bad, nor is the moment in which a shard
of it changes over. With --watch the exit code is 0. firn shard doctor looks closer.`,
		Example: `  firn shard status
  firn shard status --watch
  firn shard status --server a=postgres://firn@db1/app --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			servers, err := shardServers(cmd)
			if err != nil {
				return err
			}
			if watch {
				return watchStatus(ctx, cmd.OutOrStdout(), servers, wantsJSON(cmd), hinter{cmd: cmd})
			}
			st := lookPatiently(ctx, servers, hinter{cmd: cmd})
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := st.print(ui.Verdict{Writer: cmd.OutOrStdout()}, wantsJSON(cmd)); err != nil {
				return err
			}
			if n := st.bads(); n > 0 {
				return &ui.Failure{Code: ui.ExitFound, Err: fmt.Errorf("%s bad", phrase.Plural(n, "finding"))}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "look again every 2 seconds, until Ctrl-C")
	addServers(cmd)
	return cmd
}

// A status is what one look at servers has found.
type status struct {
	time   string // of the look; empty: there is only one
	seen   []*check.Server
	moves  []move.Move
	hints  hinter
	unseen string             // which moves nobody can name, and what to do; empty: none
	rates  map[string]float64 // rows written a second, by server; nil: there is only one look
}

// lookStatus looks at servers. With an earlier look it says what was written since.
func lookStatus(ctx context.Context, servers []topology.Server, before *status, hints hinter) *status {
	st := &status{hints: hints}
	asked := make(chan []move.Move, 1)
	go func() {
		// Who does not answer is in the table, and the others' moves are shown.
		moves, err := move.Moves(ctx, servers)
		st.unseen = unseen(moves, err)
		asked <- moves
	}()
	st.seen, st.moves = check.Look(ctx, servers), <-asked
	if before == nil {
		return st
	}
	st.rates = make(map[string]float64)
	for i, s := range st.seen {
		was := before.seen[i]
		if passed := s.At.Sub(was.At).Seconds(); s.Err == nil && was.Err == nil && passed > 0 && s.Writes >= was.Writes {
			st.rates[s.Name] = float64(s.Writes-was.Writes) / passed
		}
	}
	return st
}

// While a shard changes over no server serves it. That is bad only if it lasts.
const (
	changeLooks = 4
	changePause = 500 * time.Millisecond
)

// lookPatiently looks again where nothing may be wrong but that a shard changes over just now.
func lookPatiently(ctx context.Context, servers []topology.Server, hints hinter) *status {
	for looks := 1; ; looks++ {
		st := lookStatus(ctx, servers, nil, hints)
		changing := slices.ContainsFunc(st.moves, func(f move.Move) bool { return f.Phase == move.Between })
		if !changing || st.bads() == 0 || looks == changeLooks {
			return st
		}
		select {
		case <-time.After(changePause):
		case <-ctx.Done():
			return st
		}
	}
}

// together is what is wrong with the cluster as a whole.
func (st *status) together() []check.Finding {
	views := make(map[string]*topology.View)
	for _, s := range st.seen {
		if s.Err == nil {
			views[s.Name] = s.View
		}
	}
	return append(check.Together(views, len(views) == len(st.seen)), outdated(st.seen)...)
}

// bads is how many lines say bad.
func (st *status) bads() (n int) {
	for _, s := range st.seen {
		if s.Err != nil {
			n++
		}
	}
	for _, f := range st.together() {
		if f.Level == check.Bad {
			n++
		}
	}
	return n
}

// watchEvery is how often servers are looked at with --watch.
const watchEvery = 2 * time.Second

// watchStatus prints what it sees again and again, until somebody ends it, which is no
// failure.
func watchStatus(ctx context.Context, out io.Writer, servers []topology.Server, asJSON bool, hints hinter) error {
	next := time.NewTicker(watchEvery)
	defer next.Stop()
	terminal := ui.IsTerminal(out) && !asJSON
	var before *status
	for {
		looking, cancel := context.WithTimeout(ctx, 5*watchEvery) // others go on where one hangs
		st := lookStatus(looking, servers, before, hints)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		st.time = phrase.Instant(time.Now())
		var b strings.Builder
		switch {
		case terminal:
			fmt.Fprintf(&b, "%s, every %s\n\n", st.time, watchEvery)
		case !asJSON:
			fmt.Fprintf(&b, "%s\n", st.time)
		}
		if err := st.print(&b, asJSON); err != nil {
			return err
		}
		text := b.String()
		switch {
		case terminal: // over what is there, line by line, so that nothing flickers
			text = "\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J"
			if before == nil {
				text = "\x1b[2J" + text
			}
		case !asJSON:
			text += "\n"
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
		before = st
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
	}
}
