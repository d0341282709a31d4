package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/ui"
)

// Settings are what a command works with: flags and FIRN_ variables, and firn.yaml.
type settings struct {
	cmd *cobra.Command
	*config.Config

	noCounter bool            // the store was asked, and has no counter of the series' name
	counter   *config.Counter // that the store has by the name of the series; nil: none, or nobody has looked
}

// loadSettings reads the config, if there is one.
func loadSettings(cmd *cobra.Command) (*settings, error) {
	place, err := findConfig(cmd)
	if err != nil {
		return nil, err
	}
	ctx := cmp.Or(cmd.Context(), context.Background()) // a completion has none
	file, err := ui.Within(ctx, place.Read)
	if err != nil {
		return nil, err
	}
	return &settings{cmd: cmd, Config: config.New(file, saidByFlags(cmd))}, nil
}

// longestOutage is the longest outage budget that the settings give any pool; zero: they say none.
func (s *settings) longestOutage() (longest time.Duration) {
	if v, ok := s.Said("outage"); ok {
		longest, _ = time.ParseDuration(v.Text) // one that cannot be read is refused elsewhere
	}
	if s.File != nil {
		for i := range s.File.Pools {
			longest = max(longest, s.File.Pools[i].Options.Outage)
		}
	}
	return longest
}

// findConfig finds the config that a command uses: the named one, or the first that
// is there.
func findConfig(cmd *cobra.Command) (config.Location, error) {
	return config.Locate(saidByFlags(cmd)["config"])
}

// saidByFlags are the flags that were given, or that a variable has set.
func saidByFlags(cmd *cobra.Command) map[string]config.Value {
	all := map[string]config.Value{}
	add := func(f *pflag.Flag) {
		if f.Changed {
			all[f.Name] = config.Value{Text: f.Value.String(), From: origin(f)}
		}
	}
	cmd.Flags().VisitAll(add)
	return all
}

// origin says where the value of a flag is from.
func origin(f *pflag.Flag) string {
	if names := f.Annotations[fromVariable]; len(names) > 0 {
		return names[0]
	}
	return "--" + f.Name
}
