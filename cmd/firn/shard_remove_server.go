package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsRemoveServer() *cobra.Command {
	var gone []string
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove-server NAME",
		Short: "Remove a server that has no shards",
		Long: `Take a PostgreSQL server that has no shards any more out of a cluster: the others no
longer know it, and need no answer from it. Its database stays as it is.

firn shard rebalance --drain NAME moves its shards to the others. All servers have to be
there, this one too. One that is lost with shards is not removed: it is replaced by its
standby or its backup, on which firn shard reopen opens what it had. One that had none,
as each of the others has to show, and is permanently gone, is taken out with --gone.`,
		Example: `  firn shard rebalance --drain a
  firn shard remove-server a
  firn shard remove-server a --gone a`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(gone) > 1 || len(gone) == 1 && gone[0] != args[0] {
				return ui.Bad("--gone %s: it names the server that is removed, %s", strings.Join(gone, ","), args[0])
			}
			return removeShardServer(cmd, args[0], len(gone) > 0, yes)
		},
	}
	addServers(cmd)
	addGone(cmd, &gone)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask: a server that --gone names is permanently gone, or the database of the server is kept for the old copies in it")
	return cmd
}

// A removalLine is a server that was removed as --json prints it.
type removalLine struct {
	Server  string `json:"server"`
	Removed bool   `json:"removed"` // else it was none of the cluster's before
}

func removeShardServer(cmd *cobra.Command, name string, gone, yes bool) error {
	servers, err := shardServers(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	at := slices.IndexFunc(servers, func(s topology.Server) bool { return s.Name == name })
	switch {
	case at >= 0 && gone:
		if err := check.ConfirmGone(ctx, servers[at]); err != nil {
			if answers := new(check.AnswersError); !errors.As(err, &answers) || answers.Err != nil {
				return goneButAnswers(err, name)
			}
			return ui.Failed("%w", err).Hint("firn shard remove-server %s, without --gone: it has to know too", name)
		}
		servers = slices.Delete(slices.Clone(servers), at, at+1)
	case at < 0 && !gone:
		return unknownServer(name, servers)
	}
	if err := inNoMove(ctx, servers, name, gone); err != nil {
		return err
	}
	var copies []int64
	if !gone {
		if copies, err = copiesLeft(ctx, servers, name, yes); err != nil {
			return err
		}
	}
	opened, err := setup.Open(ctx, servers, true)
	if err != nil {
		return setupFailure(err)
	}
	defer opened.Close()
	r, err := removal(opened, name, gone)
	if err != nil {
		return err
	}
	if gone && r.Member && !yes {
		question := "Is server " + name + " permanently gone? The cluster no longer reckons with it: if it has a shard after all, that shard is lost."
		if err := ui.MustAsk(ctx, cmd, question, "the same command with --yes"); err != nil {
			return err
		}
	}
	if err := r.Run(ctx); err != nil {
		return setupFailure(err).Hint("firn shard status; then run it again: it continues where it stopped")
	}
	return printRemoval(cmd, r, copies)
}

// goneButAnswers is the error of a server that is not gone, because its address leads to a database that is not the
// server.
func goneButAnswers(err error, name string) *ui.Failure {
	f := goneFailure(err)
	var answers *check.AnswersError
	if errors.As(err, &answers) && errors.Is(answers.Err, topology.ErrNoCluster) && !errors.As(answers.Err, new(*topology.UnrecordedError)) {
		f = f.Hint("if %s", check.AddedElsewhere(name))
	}
	return f
}

// copiesLeft returns the shards of which a server has old copies, and refuses the server unless somebody wants
// to keep them there: rows of them may be nowhere else.
func copiesLeft(ctx context.Context, servers []topology.Server, name string, keep bool) ([]int64, error) {
	old, err := move.OldCopies(ctx, servers, func(int64) bool { return true })
	if err != nil {
		return nil, setupFailure(err)
	}
	var shards []int64
	for _, c := range old {
		if c.Server == name {
			shards = append(shards, c.Shard)
		}
	}
	slices.Sort(shards)
	if len(shards) == 0 || keep {
		return shards, nil
	}
	list := phrase.Numbers(shards)
	return nil, ui.Failed("server %s has an old copy of shard %s, and nobody has compared its rows with those of the server that serves the shard", name, list).
		Hint("to drop the copy, after a comparison: firn shard finish %s", list).
		Hint("to keep the copy in the database of %s, and take the server out all the same: --yes", name)
}

// inNoMove refuses a server that a move is not finished of. The owner may see of a superuser's move between which
// servers it is, and no more.
func inNoMove(ctx context.Context, servers []topology.Server, name string, gone bool) error {
	moves, err := move.Moves(ctx, servers)
	if lacksRight(err) {
		if _, notOwner := setup.Open(ctx, servers, false); errors.As(notOwner, new(*setup.OwnerError)) || errors.As(notOwner, new(*setup.OwnersError)) {
			return setupFailure(notOwner)
		}
	} else if err != nil {
		return setupFailure(err)
	}
	for _, f := range moves {
		if f.Source != name && f.Target != name {
			continue
		}
		do := nextText(f)
		if gone {
			do = withoutServer(f, name)
		}
		if lacksRight(err) {
			do = "to see how it ends, " + lookAgain
		}
		return ui.Failed("the move of shard %s from %s to %s is not finished", phrase.Numbers(f.Shards), f.Source, f.Target).Hint("%s", do)
	}
	return nil
}

// withoutServer says how a move ends whose other server is permanently gone.
func withoutServer(f move.Move, gone string) string {
	served, command := f.Kept, "abort"
	if gone == f.Source {
		served, command = f.Moved, "finish"
	}
	if len(served) < len(f.Shards) {
		return lostPage + " says how it ends"
	}
	return fmt.Sprintf("to end it without %s: firn shard %s %s --gone %[1]s", gone, command, phrase.Numbers(f.Shards))
}

func removal(opened *setup.Servers, name string, gone bool) (*setup.Removal, error) {
	plan := opened.Remove
	if gone {
		plan = opened.RemoveGone
	}
	r, err := plan(name)
	if err == nil {
		return r, nil
	}
	f := setupFailure(err)
	var unnamed *setup.UnnamedError
	switch {
	case gone && !errors.As(err, &unnamed): // whatever opens the shards needs the rows of the server
		f.Hints = nil
		f = f.Hint("start server %s, or its standby or backup in its place: %s", name, lostPage)
	case len(f.Hints) == 0: // else it says what to do
		f = f.Hint("to move what it has to the others: firn shard rebalance --drain %s; to drop old copies: firn shard finish LIST", name)
	}
	return nil, f
}

func printRemoval(cmd *cobra.Command, r *setup.Removal, copies []int64) (err error) {
	out := cmd.OutOrStdout()
	switch {
	case wantsJSON(cmd):
		return json.NewEncoder(out).Encode(removalLine{r.Server, r.Member})
	case r.Member && len(copies) > 0:
		_, err = fmt.Fprintf(out, "server %s is no longer in the cluster: take it out of firn.yaml and of your programs. Keep its database: it has an old copy of shard %s, with rows that may be nowhere else\n", r.Server, phrase.Numbers(copies))
	case r.Member:
		_, err = fmt.Fprintf(out, "server %s is no longer in the cluster: take it out of firn.yaml and of your programs, then stop it\n", r.Server)
	default:
		_, err = fmt.Fprintf(out, "server %s is not in the cluster\n", r.Server)
	}
	return err
}
