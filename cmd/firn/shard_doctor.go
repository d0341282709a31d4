package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/doctor"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsDoctor() *cobra.Command {
	var clean bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that servers can serve, move and split shards",
		Long: `Check each server: its version, what its settings risk, what is missing for moves,
its clock, its schemas and generators, functions beside these that make ids, who may set
them; what is left of moves that nobody continues; and that the servers agree about who serves which shard.

A line for each finding, bad or warn, and what to do. The exit code is 3 if something
is bad.

Nothing is changed, unless with --clean, which first removes what is left of moves:
replication slots, publications, subscriptions, triggers and tables that no move needs, and copies of
shards that another server serves.`,
		Example: `  firn shard doctor
  firn shard doctor --clean
  firn shard doctor --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			servers, err := shardServers(cmd)
			if err != nil {
				return err
			}
			if clean {
				if err := cleanShards(ctx, cmd, servers); err != nil {
					return err
				}
			}
			seen := check.Examine(ctx, servers)
			moves, waiting, err := ofMoves(ctx, servers)
			found := append(check.Findings(seen, time.Now(), func(n int64) bool { return slices.Contains(waiting, n) }), otherGenerators(ctx, servers, seen)...)
			found = append(append(found, otherOwners(ctx, servers)...), outdated(seen)...)
			found = append(found, rightsToMove(ctx, servers, seen)...)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			// A server that does not answer, or is a standby, is a finding already.
			if err != nil && !slices.ContainsFunc(seen, func(s *check.Server) bool { return s.Err != nil || s.Standby }) {
				do := ""
				if lacksRight(err) {
					do = whoseMove + ": " + otherRole + ": firn shard doctor " + asSuperuser
				}
				found = append(found, check.Finding{Level: check.Warn, Text: "nobody can say what is left of moves: " + phrase.OneLine(err), Do: do})
			}
			if servedTwice(seen) {
				cleanLater(moves)
			}
			return printFindings(cmd, slices.Concat(found, moves), len(servers))
		},
	}
	addServers(cmd)
	cmd.Flags().BoolVar(&clean, "clean", false, "first remove what is left of moves")
	return cmd
}

// cleanDo is what to do about what is left of moves.
const cleanDo = "to remove it: firn shard doctor --clean"

// servedTwice says whether two servers serve one shard, or one serves what it has given away.
func servedTwice(seen []*check.Server) bool {
	views := make(map[string]*topology.View)
	for _, s := range seen {
		if s.Err == nil {
			views[s.Name] = s.View
		}
	}
	return len(check.Twice(views, func(int64) bool { return true })) > 0
}

// cleanLater has the findings of what is left of moves offer to remove nothing yet: while two servers serve one shard
// nobody knows which of its copies is left of a move.
func cleanLater(found []check.Finding) {
	for i, f := range found {
		if f.Do == cleanDo {
			found[i].Do = "first do what is said of the shards that more than one server serves, then: firn shard doctor"
		}
	}
}

// cleanShards removes what is left of moves, a line for each, and says which moves it leaves.
func cleanShards(ctx context.Context, cmd *cobra.Command, servers []topology.Server) error {
	if _, err := mapOf(ctx, servers); err != nil {
		return err
	}
	err := move.CleanAll(ctx, servers, func(l move.Leftover) {
		ui.PrintNote(cmd.ErrOrStderr(), "removed from server %s: %s %s", l.Server, l.Kind.Text(), l.Name)
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" {
		return moveFailure(err).Hint("programs use the table, and it was not waited for any longer: run the same command again, which removes what is left")
	} else if err != nil {
		return moveFailure(err)
	}
	moves, err := move.Moves(ctx, servers)
	if err != nil {
		return err
	}
	for _, f := range moves {
		switch {
		case f.Fresh():
			ui.PrintWarning(cmd.ErrOrStderr(), "the move of shard %s from %s to %s began less than a minute ago: it is left, because somebody may be at work on it; %s",
				phrase.Numbers(f.Shards), f.Source, f.Target, hinter{cmd: cmd}.compose(nextOf(ctx, servers, f)))
		case !isFinding(f):
			ui.PrintNote(cmd.ErrOrStderr(), "the move of shard %s from %s to %s is not finished (%s), and is left; %s",
				phrase.Numbers(f.Shards), f.Source, f.Target, f.Stage(), hinter{cmd: cmd}.compose("to see how far it is, and what ends it: firn shard status"))
		}
	}
	return nil
}

// isFinding reports whether doctor has a finding about a move.
func isFinding(f move.Move) bool {
	return len(f.Lost)+len(f.Twice) > 0 || f.Phase == move.Between || f.Copy != "" || f.Problem != ""
}

// rightsToMove says where a move of shards takes another role than that of the address. Programs need no such
// right, so it is nothing bad.
func rightsToMove(ctx context.Context, servers []topology.Server, seen []*check.Server) (found []check.Finding) {
	for i, s := range servers {
		if len(servers) < 2 || seen[i].Err != nil || seen[i].Standby {
			continue
		}
		lacking, err := move.Rights(ctx, s)
		if err != nil {
			found = append(found, check.Finding{Level: check.Warn, Server: s.Name, Text: "nobody can say whether its role may move shards: " + phrase.OneLine(err)})
		}
		for _, o := range lacking {
			found = append(found, check.Finding{Level: check.Note, Server: s.Name, Text: "this role cannot move shards: " + o.Reason, Do: "to move shards: " + o.Fix})
		}
	}
	return found
}

// otherGenerators are functions that make ids in the schemas of shards, beside firn's, on the
// servers that answer.
func otherGenerators(ctx context.Context, servers []topology.Server, seen []*check.Server) []check.Finding {
	var found []check.Finding
	for i, s := range servers {
		if seen[i].Err != nil {
			continue
		}
		others, err := setup.Others(ctx, s)
		if err != nil {
			found = append(found, check.Finding{Level: check.Warn, Server: s.Name, Text: "its functions cannot be read: " + phrase.WithoutPackage(err.Error())})
		}
		found = append(found, ofOthers(s.Name, others)...)
	}
	return found
}

// ofOthers are the findings about functions of a server. Of those that have one name the first is said, and how
// many more there are.
func ofOthers(server string, others []setup.OtherFunction) (found []check.Finding) {
	count, first := make(map[string]int), make(map[string]setup.OtherFunction)
	for _, f := range others {
		if count[f.Name]++; count[f.Name] == 1 {
			first[f.Name] = f
		}
	}
	for _, name := range slices.Sorted(maps.Keys(first)) {
		f, more, do := first[name], "", "to put a generator of firn in its place: firn shard adopt --function "+name
		if f.Outside {
			do = "have column defaults call the shard's own function, then drop this one"
		}
		if n := count[name] - 1; n > 0 {
			more = fmt.Sprintf(" (and the same in %s more)", phrase.Plural(n, "schema"))
		}
		found = append(found, check.Finding{
			Level: check.Warn, Server: server, Do: do,
			Text: fmt.Sprintf("shard %d: the function %s.%s() makes ids too, and may repeat them%s", f.Shard, f.Schema, f.Name, more),
		})
	}
	return found
}

// ofMoves is what is wrong with moves, and which shards wait for theirs. Where one of the servers
// cannot be asked, nobody can say what is left of moves.
func ofMoves(ctx context.Context, servers []topology.Server) (found []check.Finding, waiting []int64, err error) {
	moves, err := move.Moves(ctx, servers)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range moves {
		switch {
		case len(f.Lost)+len(f.Twice) > 0: // a finding already, and no move ends before
		case f.Phase == move.Between:
			waiting = append(waiting, f.Waiting...)
			found = append(found, check.Finding{Level: check.Bad, Text: "a move was broken off: " + standsText(f), Do: nextOf(ctx, servers, f)})
		case f.Copy != "":
			found = append(found, check.Finding{
				Level: check.Warn, Text: fmt.Sprintf("the move of shard %s from %s to %s neither continues nor ends", phrase.Numbers(f.Shards), f.Source, f.Target),
				Do: nextOf(ctx, servers, f),
			})
		case f.Problem != "":
			found = append(found, check.Finding{
				Level: check.Warn, Text: fmt.Sprintf("the move of shard %s from %s to %s: %s", phrase.Numbers(f.Shards), f.Source, f.Target, f.Problem+keptText(f)),
				Do: nextOf(ctx, servers, f),
			})
		case isForgotten(f):
			found = append(found, check.Finding{Level: check.Warn, Text: forgottenText(f), Do: nextOf(ctx, servers, f)})
		}
	}
	left, err := move.Leftovers(ctx, servers)
	if err != nil {
		return found, waiting, err
	}
	return append(found, ofLeftovers(left)...), waiting, nil
}

// ofLeftovers are the findings about what is left of moves, one for all things of one kind on a server.
func ofLeftovers(left []move.Leftover) (found []check.Finding) {
	type key struct {
		level              check.Level
		server, kind, harm string
	}
	var keys []key
	names := make(map[key][]string)
	for _, l := range left {
		switch {
		case l.Kind == move.Old:
			found = append(found, check.Finding{Level: check.Warn, Server: l.Server, Text: fmt.Sprintf("shard %d: %s", l.Shard, l.Harm), Do: move.OldCopyHint(l.Shard)})
		default:
			k := key{check.Warn, l.Server, l.Kind.Text(), l.Harm}
			switch {
			case l.Blocks:
				k.level = check.Bad
			case l.Kind == move.Fence || l.Kind == move.Receiver: // a move leaves them where programs keep using the table: the next move takes them into use
				k.level = check.Note
			}
			if names[k] == nil {
				keys = append(keys, k)
			}
			names[k] = append(names[k], l.Name)
		}
	}
	for _, k := range keys {
		found = append(found, check.Finding{Level: k.level, Server: k.server, Text: fmt.Sprintf("left of a move: %s %s: %s", k.kind, phrase.Few(names[k]), k.harm), Do: cleanDo})
	}
	return found
}

func printFindings(cmd *cobra.Command, found []check.Finding, servers int) error {
	p := &findings{cmd: cmd, out: ui.Verdict{Writer: cmd.OutOrStdout()}, json: wantsJSON(cmd), hints: hinter{cmd: cmd}}
	states := map[check.Level]doctor.State{check.Bad: doctor.Bad, check.Warn: doctor.Warning, check.Note: doctor.OK}
	for _, f := range found {
		where := "cluster"
		if f.Server != "" {
			where = "server " + f.Server
		}
		p.found(doctor.Finding{State: states[f.Level], Check: where, Text: f.Text, Do: f.Do})
	}
	if !slices.ContainsFunc(found, func(f check.Finding) bool { return f.Level != check.Note }) {
		p.found(doctor.Finding{State: doctor.OK, Check: "cluster", Text: phrase.Plural(servers, "server") + " examined, and nothing was found wrong"})
	}
	if p.err != nil {
		return p.err
	}
	if p.bad > 0 {
		return &ui.Failure{Code: ui.ExitFound, Err: fmt.Errorf("%s bad", phrase.Plural(p.bad, "finding"))}
	}
	return nil
}
