package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// abandon ends moves whose other server is permanently gone.
func (o *shardsMove) abandon(ctx context.Context, cmd *cobra.Command, list, what string) error {
	var asked shardNumbers
	if err := asked.Set(list); err != nil {
		return ui.Bad("%w", err).Hint("firn shard %s 17 --gone %s, or 17-40,99", cmd.Name(), o.gone)
	}
	servers, err := shardServers(cmd)
	if err != nil {
		return err
	}
	if err := beyondAnswered(ctx, servers, &asked); err != nil {
		return err
	}
	if err := o.agreeGone(ctx, cmd, servers, asked, list); err != nil {
		return err
	}
	ended, kept, err := move.Abandon(ctx, servers, o.gone, asked.has)
	if err != nil {
		return goneFailure(err)
	}
	for _, l := range kept {
		ui.PrintWarning(cmd.ErrOrStderr(), "server %s: the slot %s keeps WAL, and nobody reads it: if no other subscriber of yours has made it: SELECT pg_drop_replication_slot('%[2]s')", l.Server, l.Name)
	}
	slices.Sort(ended)
	return printEnded(cmd, ended, nil, what)
}

// beyondAnswered is [shardNumbers.beyond] where servers are away: by what the others say. Where these cannot
// be one cluster, what follows says why.
func beyondAnswered(ctx context.Context, servers []topology.Server, asked *shardNumbers) error {
	views := make(map[string]*topology.View)
	for _, s := range check.Look(ctx, servers) {
		if s.Err == nil {
			views[s.Name] = s.View
		}
	}
	m, err := topology.NewMap(views)
	if err != nil {
		return nil
	}
	return asked.beyond(m)
}

// agreeGone asks whether the server that --gone names is permanently gone. Nobody is asked about
// what would be refused.
func (o *shardsMove) agreeGone(ctx context.Context, cmd *cobra.Command, servers []topology.Server, asked shardNumbers, list string) error {
	if o.yes {
		return nil
	}
	if err := move.CheckAbandon(ctx, servers, o.gone, asked.has); err != nil {
		return goneFailure(err)
	}
	question := "Is server " + o.gone + " permanently gone? The moves of shard " + list + " from it or to it end: move and revert cannot continue them, and no copy is kept for it."
	return ui.MustAsk(ctx, cmd, question, "the same command with --yes")
}

// goneFailure is an error of [move.Abandon] with what to do about it.
func goneFailure(err error) *ui.Failure {
	f := ui.Failed("%w", err)
	var elsewhere *move.ElsewhereError
	var answers *check.AnswersError
	var of *topology.ServerError
	var pg *pgconn.PgError
	switch {
	case lacksRight(err):
		return moveFailure(err)
	case errors.As(err, &answers) && errors.As(answers.Err, new(*topology.UnrecordedError)):
		return f.Hint("%s", check.AddressDo(answers.Err))
	case errors.As(err, &answers) && errors.Is(answers.Err, topology.ErrNoCluster):
		return f.Hint("%s", addressHint(answers.Server, answers.Err)).Hint("if server %s is lost, and this database was made in its place: run the same command without the address of server %[1]s in --server and in firn.yaml", answers.Server)
	case errors.As(err, &answers) && answers.Err != nil:
		return f.Hint("%s", addressHint(answers.Server, answers.Err))
	case answers != nil:
		return f.Hint("to see which server serves each shard, and what to type: firn shard status")
	case errors.As(err, &elsewhere) && elsewhere.LetGo:
		return f.Hint("start server %s, or its standby or backup in its place: %s", elsewhere.Gone, lostPage)
	case errors.As(err, &elsewhere):
		return f.Hint("start server %s, or its standby or backup in its place, then: firn shard abort %s", elsewhere.Gone, phrase.Numbers(elsewhere.Shards))
	case errors.As(err, &pg) && pg.Code == "25006" && errors.As(err, &of):
		return f.Hint("%s", check.ToPrimary(of.Server))
	case errors.As(err, &pg) && (pg.Code == "ID002" || pg.Code == "ID007"):
		return f.Hint("a mover was at work on it meanwhile: run it again")
	}
	return f
}

// addressHint is what to do about a server that answers, and does not say what it serves: it runs,
// or something else runs at its address.
func addressHint(server string, err error) string {
	if (&topology.ServerError{Server: server, Err: err}).Answered() && awayServer(&topology.ServerError{Server: server, Err: err}) == "" {
		return fmt.Sprintf("correct the address of server %s, or its password: --server %[1]s=postgres://USER@HOST/DATABASE, or in firn.yaml. Then run the same command again", server)
	}
	return fmt.Sprintf("wait until server %s serves, or correct its address: --server %[1]s=postgres://USER@HOST/DATABASE, or in firn.yaml. Then run the same command again", server)
}
