// Command moves is the long test of package shard/move: it moves shards between two real servers
// while writers use them, and then compares every row with what the writers were told.
//
//	go run ./internal/moves -runs 20
//	go run ./internal/moves -runs 5 -revert            # and back again, over the stream
//	go run ./internal/moves -runs 20 -faults -seed 42  # something goes wrong in each run
//	go run ./internal/moves -servers a=postgres://me@db1/moves,b=postgres://me@db2/moves
//
// docs/proof/moves.md says what it does, and how to read what it prints. Each run moves another
// shard. The writers' transactions are in kinds.go, the tables in tables.go, the harms in harms.go.
//
// A gap is how long a writer waited for one transaction to be acknowledged, all tries
// together, without the time that the transaction itself rests. Writers begin a fixed
// number of transactions in a second, so that servers and writers together do not need
// all of two cores: else every gap is the time that they take it from one another.
// Ctrl-C ends after the run that is on.
//
// The exit code is 3 if a row was lost, wrong or too many, or an id repeated or out of
// order; 1 if it could not be done, and 2 for usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
	exitFound  = 3
)

// settings are what is to be done.
type settings struct {
	runs    int
	rows    int           // of the shard before the move
	writers int           //
	rate    float64       // transactions that a writer begins in a second
	long    time.Duration // for how long one writer's transactions are open
	around  time.Duration // for how long writers write before the move, and after it
	behind  time.Duration // the clock of the server that shards move to
	revert  bool
	faults  bool
	only    string // the harm of every run; empty: they are dealt
	seed    uint64
	durable bool // the servers wait for their disks
	hosted  bool // as a role that is no superuser

	given   map[string]string // servers that somebody else started, by name; empty: none
	between map[string]string // how they reach each other; empty: by those addresses
}

var defaults = settings{runs: 20, rows: 50_000, writers: 8, rate: 25, long: time.Second, around: time.Second, behind: time.Hour, durable: true}

func main() {
	if err := asMover(); !errors.Is(err, errNoMover) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitFailed)
		}
		return
	}
	set, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "moves: error:", err)
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &report{out: os.Stdout, faults: set.faults}
	err = testserver.Outside(func(tb testing.TB) error { return all(ctx, tb, set, r) })
	r.end()
	switch {
	case err != nil && !errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "moves: error:", err)
		os.Exit(exitFailed)
	case r.bad > 0:
		os.Exit(exitFound)
	}
}

func parse(args []string) (settings, error) {
	set := defaults
	f := flag.NewFlagSet("moves", flag.ContinueOnError)
	f.IntVar(&set.runs, "runs", set.runs, "how many shards are moved, one after the other")
	f.IntVar(&set.rows, "rows", set.rows, "how many rows a shard has before it moves")
	f.IntVar(&set.writers, "writers", set.writers, "how many write at a time")
	f.Float64Var(&set.rate, "rate", set.rate, "how many transactions a writer begins in a second; at too many for the machine, gaps are those of its CPU")
	f.DurationVar(&set.long, "long", set.long, "how long the transactions of one writer are open")
	f.DurationVar(&set.around, "around", set.around, "how long they write before a move, and after it")
	f.DurationVar(&set.behind, "behind", set.behind, "how far the clock is behind of the server that shards move to; 0 does without libfaketime")
	f.BoolVar(&set.durable, "durable", set.durable, "have the servers wait for their disks; on a disk that others use too, gaps are theirs")
	f.BoolVar(&set.hosted, "hosted", false, "use a role that is no superuser, with the rights that hosted servers give it; without -faults")
	f.BoolVar(&set.revert, "revert", false, "move each shard back again")
	f.BoolVar(&set.faults, "faults", false, "harm the move in each run, at moments that the seed chooses")
	f.StringVar(&set.only, "only", "", "with -faults: have this harm in each run, such as \"disk full\"")
	f.Uint64Var(&set.seed, "seed", uint64(time.Now().UnixNano())%1_000_000_000, "what chooses what is written and killed")
	given := f.String("servers", "", "use databases of these servers, `a=URL,b=URL`, and start none; what is made there is removed at the end")
	between := f.String("addresses", "", "with -servers: how the servers reach each other, `a=URL,b=URL`, if not as this host reaches them")
	err := f.Parse(args)
	if err == nil {
		set.given, err = parseServers(*given)
	}
	if err == nil {
		set.between, err = parseServers(*between)
	}
	if err != nil {
		return set, err
	}
	if len(set.given) > 0 {
		set.behind = 0 // their clocks are as they are
	}
	if set.only != "" && (!set.faults || !slices.Contains(ownHarms(), set.only)) {
		return set, fmt.Errorf("-only goes with -faults and is one of: %s", strings.Join(ownHarms(), ", "))
	}
	if set.hosted && (set.faults || len(set.given) > 0) {
		return set, errors.New("-hosted goes neither with -faults nor with -servers")
	}
	if f.NArg() > 0 || set.runs < 1 || set.rows < 0 || set.writers < 1 || set.rate <= 0 {
		return set, errors.New("it takes no arguments, and numbers above zero; see -help")
	}
	return set, nil
}

// all does the runs, one after the other.
func all(ctx context.Context, tb testing.TB, set settings, r *report) (err error) {
	w, err := newWorld(ctx, tb, set, r.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	r.begin(set)
	r.skipped = w.skipped
	for n := range set.runs {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o, err := w.run(context.WithoutCancel(ctx), int64(n))
		if err != nil {
			return fmt.Errorf("run %d: %w", n+1, err)
		}
		r.add(o)
	}
	return nil
}
