package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/shortfile"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsWhere() *cobra.Command {
	var o shardsWhere
	cmd := &cobra.Command{
		Use:   "where [ID]",
		Short: "Show which server has an id, a key or a shard",
		Long: `Say which shard an id was made on, or a key belongs to, and which server has it. A number
without a flag is an id; the number of a shard is given with --shard.

With --map-file it asks no server, but reads a map that firn shard ls --map --json has written.`,
		Example: `  firn shard where 7134519829134520325
  firn shard where --key alice
  firn shard where --shard 5
  firn shard where --shard 5 --map-file map.json --json`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return o.run(ctx, cmd, args)
		},
	}
	addServers(cmd)
	cmd.Flags().StringVar(&o.key, "key", "", "a key")
	cmd.Flags().Int64Var(&o.shard, "shard", 0, "the number of a shard")
	cmd.Flags().StringVar(&o.file, "map-file", "", "a file with a map, instead of the servers")
	return cmd
}

type shardsWhere struct {
	key, file string
	shard     int64
	id        firn.ID
	byID      bool
}

// A whereLine is the answer as --json prints it.
type whereLine struct {
	ID   string `json:"id,omitempty"`
	Key  string `json:"key,omitempty"`
	Time string `json:"time,omitempty"` // of the id
	shardLine
}

func (o *shardsWhere) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	given := len(args)
	for _, name := range []string{"key", "shard"} {
		if cmd.Flags().Changed(name) {
			given++
		}
	}
	if given != 1 {
		f := ui.Bad("one of an id, --key and --shard says what to look for, and only one")
		if cmd.Flags().Changed("key") {
			return f.Hint("to look for the key: firn shard where --key %s", phrase.ShellWord(o.key))
		}
		return f.Hint("firn shard where --shard 3")
	}
	if len(args) > 0 {
		var err error
		if o.id, err = firn.ParseID(args[0]); err != nil {
			return err
		}
		o.byID = true
	}
	m, err := o.theMap(ctx, cmd)
	if err != nil {
		return err
	}
	line, err := o.find(cmd, m)
	if err != nil {
		return err
	}
	if wantsJSON(cmd) {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(line)
	}
	text := fmt.Sprintf("shard %d, schema %s, server %s, %s", line.Shard, line.Schema, cmp.Or(line.Server, "-"), line.State)
	if line.Time != "" {
		text += ", made " + line.Time
	}
	if line.Why != "" {
		text += " (" + line.Why + ")"
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
	return err
}

func (o *shardsWhere) theMap(ctx context.Context, cmd *cobra.Command) (*topology.Map, error) {
	if o.file == "" {
		return askMap(ctx, cmd)
	}
	text, err := ui.Within(ctx, func() ([]byte, error) { return shortfile.Read(o.file) })
	if ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		return nil, ui.Bad("%w", err).Hint("firn shard ls --map --json > %s", phrase.ShellWord(o.file))
	}
	m := new(topology.Map)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, ui.Bad("%s: %s", o.file, phrase.WithoutPackage(err.Error())).Hint("firn shard ls --map --json > %s", phrase.ShellWord(o.file))
	}
	return m, nil
}

// find finds the shard in the map.
func (o *shardsWhere) find(cmd *cobra.Command, m *topology.Map) (*whereLine, error) {
	line := &whereLine{Key: o.key}
	number := o.shard
	switch {
	case o.byID:
		parts, err := m.Layout.Decode(o.id)
		if err != nil {
			return nil, ui.Bad("%d is no id of layout %s: %w", o.id, layoutName(m.Layout), err).Hint("to see what it may be: firn decode %d", o.id)
		}
		number, line.ID, line.Time = parts.Shard, o.id.String(), phrase.Instant(parts.Time)
		if ahead := time.Until(parts.Time); ahead > time.Hour {
			ui.PrintWarning(cmd.ErrOrStderr(), "the time of %d is to come, %s: it may be of another layout", o.id, line.Time)
		}
		if parts.Time.Sub(m.Layout.Epoch()) < time.Second { // no generator was there yet
			ui.PrintWarning(cmd.ErrOrStderr(), "%d was read as an id, of shard %d, and no id is that old; %s", o.id, number, hinter{cmd: cmd}.compose(fmt.Sprintf("to see where shard %d is: firn shard where --shard %[1]d", o.id)))
		}
	case cmd.Flags().Changed("key"):
		var err error
		var wrong *topology.KeyError
		if number, err = m.Keys.Shard(o.key); errors.As(err, &wrong) {
			return nil, ui.Bad("%w", err)
		} else if err != nil {
			return nil, err
		}
	}
	r, ok := m.Route(number)
	if !ok && len(m.Missing) > 0 {
		return nil, ui.Failed("no server that answers knows shard %d; %s may", number, strings.Join(m.Missing, ", ")).Hint("firn shard status")
	}
	if !ok {
		return nil, ui.Bad("there is no shard %d", number).Hint("to see which there are: firn shard ls --map")
	}
	line.shardLine = newShardLine(m, r)
	return line, nil
}
