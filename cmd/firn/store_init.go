package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

func newStore() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "store",
		Short:   "Look after a store",
		Example: "  firn store init --new --store postgres://app@db/app",
		RunE:    needsCommand,
	}
	cmd.AddCommand(newStoreInit(), newStoreSQL(), newStoreRestored())
	return cmd
}

func newStoreInit() *cobra.Command {
	var fresh bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make what a store needs, its tables or nodes",
		Long: `Make what a store needs to keep records, its tables or nodes, for users whose
processes may not make them. What is there already is left as it is: so it may be
repeated, and is needed neither before nor after anything.

With --new you also say that nobody ever leased from this store, nor from one that
it was copied or restored from: its pools are founded, and ids begin at once, on a
store that can forget after the wait that each start has there. Without it the first
process founds its pool above all that could have been granted before, and no id is
issued for the outage budget and the error of clocks: for some 5 minutes, on a store
that can forget 8 s. The pools are those of firn.yaml, or the one of --pool and
--layout.

--new is wrong after a restore, after tables were dropped, and where you are not
sure: then ids can repeat. A file needs it neither way.`,
		Example: `  firn store init --new --store postgres://app@db/app
  firn store init --store mysql://admin:secret@db/app --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return signalled(ctx, initStore(ctx, cmd, fresh))
		},
	}
	addStore(cmd)
	addPool(cmd)
	cmd.Flags().BoolVar(&fresh, "new", false, "there was no store before: found the pools, and let ids begin at once")
	return cmd
}

// An initLine is what was made, as --json prints it: the store, or a pool.
type initLine struct {
	Store  string `json:"store,omitempty"`
	Pool   string `json:"pool,omitempty"`
	Layout string `json:"layout,omitempty"`
	Made   bool   `json:"made"`

	NotBefore  string `json:"not_before,omitempty"`  // of a pool: its floor lies ahead
	StartDelay string `json:"start_delay,omitempty"` // of a pool: how long each process waits that starts
}

func initStore(ctx context.Context, cmd *cobra.Command, fresh bool) (err error) {
	set, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	url := set.storeURL().text
	s, err := openURL(ctx, url, sayMade(cmd.ErrOrStderr()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	made, err := s.Init(ctx)
	if err != nil {
		return err
	}
	name := open.Redact(url)
	if name == "" {
		name = "the store in your state directory"
	}
	out := &initPrinter{cmd.OutOrStdout(), wantsJSON(cmd)}
	if err := out.print(initLine{Store: name, Made: made}); err != nil || !fresh {
		return err
	}
	return foundPools(ctx, s, set, out)
}

// foundPools founds the pools that the settings name.
func foundPools(ctx context.Context, s store.Store, set *settings, out *initPrinter) error {
	names, err := set.poolsInForce()
	if err != nil {
		return err
	}
	for _, name := range names {
		l, err := set.leasingFrom(name, set.poolSaid(name), entry{})
		if err != nil {
			return err
		}
		made, err := lease.Found(ctx, s, name, &l.options)
		switch {
		case errors.Is(err, store.ErrConflict):
			return failed("pool %s: somebody wrote to it at the same moment", name).hint("firn store init --new once more")
		case errors.Is(err, lease.ErrUsed):
			return failed("%w: so the store is not new", err).hint("firn doctor shows how long it takes")
		case err != nil:
			return err
		}
		line := initLine{Pool: name, Layout: layoutName(l.options.Layout), Made: made}
		if err := line.addDelays(ctx, s, &l.options); err != nil {
			return err
		}
		if err := out.print(line); err != nil {
			return err
		}
	}
	return nil
}

// addDelays says what keeps the ids of a pool from beginning at once.
func (l *initLine) addDelays(ctx context.Context, s store.Store, o *lease.Options) error {
	promise, err := s.Promise(ctx)
	if err != nil {
		return err
	}
	rec, err := s.Get(ctx, term.KeyPool(l.Pool))
	if err != nil {
		return err
	}
	pool, err := term.ReadPool(rec)
	if err != nil {
		return err
	}
	if floor := o.Layout.Time(pool.Floor + 1); pool.Floor > 0 && floor.After(time.Now()) {
		l.NotBefore = instant(floor)
	}
	rules := term.Default(l.Pool, o.Layout, promise)
	rules.Outage = o.Outage
	if lossy := promise.Class != store.Strict || pool.Lossy != ""; lossy {
		l.StartDelay = durationText(startDelay(&rules, pool))
	}
	return nil
}

// An initPrinter prints lines of store init.
type initPrinter struct {
	out  io.Writer
	json bool
}

func (p *initPrinter) print(l initLine) (err error) {
	switch {
	case p.json:
		err = json.NewEncoder(p.out).Encode(l)
	case l.Store != "" && l.Made:
		_, err = fmt.Fprintf(p.out, "%s: made\n", l.Store)
	case l.Store != "":
		_, err = fmt.Fprintf(p.out, "%s: there was nothing to make\n", l.Store)
	case l.Made:
		_, err = fmt.Fprintf(p.out, "pool %s: founded with layout %s; %s\n", l.Pool, l.Layout, l.begin())
	default:
		_, err = fmt.Fprintf(p.out, "pool %s: was there already; %s\n", l.Pool, l.begin())
	}
	return err
}

// begin says when ids begin.
func (l *initLine) begin() string {
	var waits []string
	if l.NotBefore != "" {
		waits = append(waits, "nothing is issued before "+l.NotBefore+", as firn store restored has it")
	}
	if l.StartDelay != "" {
		waits = append(waits, "each process that starts waits for "+l.StartDelay+", because the store can forget")
	}
	if len(waits) == 0 {
		return "its ids begin at once"
	}
	return strings.Join(waits, "; ")
}
