package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/pool"
)

// A keyFlag is a key of the settings as a flag. It keeps the text, so that it can be said
// where each value is from.
type keyFlag[T any] struct {
	*config.Key[T]
	text string
}

func (f *keyFlag[T]) String() string { return f.text }
func (f *keyFlag[T]) Type() string   { return f.Value }

func (f *keyFlag[T]) Set(text string) error {
	f.text = text
	return f.Key.Set(new(T), text)
}

type (
	knobFlag   = keyFlag[config.LeaseOptions]
	seriesFlag = keyFlag[config.CounterOptions]
)

// addPool adds --pool and the knobs of a pool.
func addPool(cmd *cobra.Command) {
	addPoolName(cmd)
	for i := range config.LeaseKeys {
		k := &config.LeaseKeys[i]
		if k.InRecord {
			continue
		}
		cmd.Flags().Var(&knobFlag{Key: k}, k.Name, k.Usage+" ("+k.Standard+")")
	}
	if err := cmd.RegisterFlagCompletionFunc("layout", completeLayouts); err != nil {
		panic(err) // the flag is not there
	}
}

// addPoolName adds --pool.
func addPoolName(cmd *cobra.Command) {
	cmd.Flags().String("pool", "", "the pool of workers (the only one of firn.yaml, or "+pool.Default+")")
}

// addSeries adds the flags of series of the kinds besides flake.
func addSeries(cmd *cobra.Command, kinds ...string) {
	for i := range config.CounterKeys {
		k := &config.CounterKeys[i]
		if k.Value != "" && slices.ContainsFunc(kinds, k.Of) {
			cmd.Flags().Var(&seriesFlag{Key: k}, k.Name, k.Usage)
		}
	}
}

// addListen adds --resp, --http and --admin.
func addListen(cmd *cobra.Command) {
	for i := range config.ServerKeys {
		if k := &config.ServerKeys[i]; k.Value != "" {
			standard := k.Standard
			if standard == "none" {
				standard = "" // it is not shown then
			}
			cmd.Flags().String(k.Name, standard, k.Usage)
		}
	}
}
