package main

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/install"
)

func newShards() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "shard",
		Aliases: []string{"shards"},
		Short:   "Logical shards in PostgreSQL, with ids made inside the database",
		Example: "  firn shard sql --shard 5 | psql",
		RunE:    needsCommand,
	}
	cmd.AddCommand(newShardsInit(), newShardsAdopt(), newShardsSQL(), newShardsLs(), newShardsWhere(), newShardsStatus(), newShardsDoctor(), newShardsApply(), newShardsExec(),
		newShardsMove(), newShardsRevert(), newShardsAbort(), newShardsFinish(), newShardsPause(), newShardsResume(), newShardsRebalance(), newShardsMetrics(), newShardsAddServer(), newShardsRemoveServer(), newShardsReopen())
	return cmd
}

func newShardsSQL() *cobra.Command {
	o := shardsSQL{layout: layoutFlag{firn.Sharded()}}
	cmd := &cobra.Command{
		Use:   "sql --shard N",
		Short: "Print the SQL of one shard's id function",
		Long: `Print the SQL that makes a PostgreSQL database (14 or newer) give the ids of a
shard, in one transaction. It needs no extension and no superuser, and may be run
again, after an upgrade of firn too.

The function has the name and signature that Instagram published, so a column
default that calls it works unchanged. Where it is there already, it is replaced in
place, if its ids are of the same layout and shard, and what it gave is left behind by a
second. The layout never changes. It never repeats an id, and each
is above all that came before in the shard, whatever the clock does.

The ids of all tables of a shard come from one generator. With --per-table each
named table gets one, TABLE_next_id: ids are then unique within the table only.

Name with --grant the roles that draw ids; no others may, besides the owner.

A copy of the database, and a standby that was promoted, give no ids until somebody
who knows that the original is gone calls firn.open(SHARD).`,
		Example: `  firn shard sql --shard 5 | psql
  firn shard sql --shard 5 --schema insta5 --layout instagram --epoch 1293843600000 --grant app > shard5.sql
  firn shard sql --shard 7 --per-table photos,likes`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().Int64Var(&o.shard.Number, "shard", 0, "the number of the shard")
	cmd.Flags().StringVar(&o.shard.Schema, "schema", "insta%d", "how a shard's schema is called, %d being its number")
	cmd.Flags().StringVar(&o.epoch, "epoch", "", "another epoch for the layout: "+epochForms)
	cmd.Flags().StringSliceVar(&o.shard.Tables, "per-table", nil, "a generator for each of these tables")
	cmd.Flags().StringSliceVar(&o.shard.Roles, "grant", nil, "roles that may draw ids")
	addLayout(cmd, &o.layout, "a layout with time, shard and seq")
	addYes(cmd, &o.yes)
	return cmd
}

type shardsSQL struct {
	layout layoutFlag
	epoch  string
	shard  install.Definition
	yes    bool
}

func (o *shardsSQL) run(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("shard") {
		return ui.Bad("--shard is missing").Hint("firn shard sql --shard 5")
	}
	layout, err := withEpoch(o.layout.Layout, o.epoch)
	if err != nil {
		return err
	}
	if err := layout.Check(time.Now()); err != nil {
		return setupFailure(err)
	}
	if err := askOfLayout(cmd.Context(), cmd, layout, o.yes, ""); err != nil {
		return err
	}
	o.shard.Schema = strings.ReplaceAll(o.shard.Schema, "%d", strconv.FormatInt(o.shard.Number, 10))
	var b strings.Builder
	if err := install.WriteSQL(&b, layout, o.shard); err != nil {
		return &ui.Failure{Code: ui.ExitUsage, Err: err}
	}
	if wantsJSON(cmd) {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
			Layout string `json:"layout"`
			Shard  int64  `json:"shard"`
			Schema string `json:"schema"`
			SQL    string `json:"sql"`
		}{layout.String(), o.shard.Number, o.shard.Schema, b.String()})
	}
	_, err = io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// epochForms are the forms of an epoch, of --epoch as of a layout.
const epochForms = "2011-01-01T00:00:00Z, or milliseconds since 1970"

// withEpoch is a layout with the epoch that was asked for, if one was.
func withEpoch(l firn.Layout, text string) (firn.Layout, error) {
	if text == "" {
		return l, nil
	}
	fields, _, _ := strings.Cut(l.String(), ";")
	l, err := firn.ParseLayout(fields + ";epoch=" + text)
	var wrong *firn.SyntaxError
	if errors.As(err, &wrong) {
		return l, ui.Bad("--epoch: %s", wrong.Reason).Hint("--epoch 1293843600000 or --epoch 2011-01-01T01:00:00Z")
	}
	return l, err
}
