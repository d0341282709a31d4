//go:build linux

// Command torture does harm to real processes and to the real stores that they lease
// from, one store after the other, and then compares every id that was issued.
//
//	go run ./internal/torture
//	go run ./internal/torture -stores postgres,etcd -for 10m -workers 16 -seed 42
//	go run ./internal/torture -store postgres://app:secret@db.example/scratch   # a server of yours
//	go run ./internal/torture -broken unwritten -stores sqlite   # shows that it would find something
//
// Processes are killed, stopped for longer than a lease lasts, and have their clocks
// stepped; stores are killed, frozen, cut off and put back to an old copy. At the end a
// store loses what it had, and what the errors of the command say is typed; in a run of
// seven minutes or more that comes before too, and the ids are waited for that start later.
// The report counts the pairs of faults of which one struck while the other lasted.
//
// With -store the torture starts no server, and does nothing to that one: it harms its own
// processes, and their connections in a proxy. It says first what it creates there, refuses a
// name that is there, and reports the records that stay.
//
// A seed chooses what is done to whom, and when. Ctrl-C ends it early, with a report of what was done;
// a second one does not wait for that. What a torture leaves that was killed is removed
// by the next one.
//
// The exit code is 3 if an id repeated, or anything else was found that should not be,
// 1 if it could not be done, 2 for usage, and 130 after Ctrl-C if nothing was found.
// "go run" prints it, and makes it 1.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/torture/siege"
	"github.com/firn-id/firn/store/open"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
	exitFound  = 3
)

type settings struct {
	stores  []string
	url     string // of a server that is not started here; stores is empty
	name    string // of the pool and the sequence that are made there
	options siege.Options
	json    bool
}

func main() {
	set, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture: error:", err)
		os.Exit(exitUsage)
	}
	os.Exit(torture(untilSignal(), set))
}

func parse(args []string) (*settings, error) {
	ordinary, others := siege.Stores()
	set := &settings{}
	o := &set.options
	f := flag.NewFlagSet("torture", flag.ContinueOnError)
	stores := f.String("stores", "", "`which`, with commas between them: "+strings.Join(ordinary, ", ")+
		"; by default all of these that are installed.\nAnd "+strings.Join(others, ", ")+"; all is every one")
	f.StringVar(&set.url, "store", "", "the `URL` of a server of yours, written as for firn: nothing is done to it, only to its clients of the torture")
	f.StringVar(&set.name, "pool", "torture-"+strings.ToLower(rand.Text()[:8]), "with -store, the `name` of the pool and of the sequence that are created there")
	f.DurationVar(&o.For, "for", time.Minute, "how long harm is done to `each` store")
	f.IntVar(&o.Workers, "workers", 8, "how many `processes` use a store at a time; there are workers for three quarters of them")
	f.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano())%1_000_000_000, "what chooses the faults, to have those of an earlier run again")
	f.StringVar(&o.Broken, "broken", "", "a `fault` on purpose, to see that it is found: "+strings.Join(siege.Faults, ", ")+"; vouched is of postgres-failover, lied of a store with a server")
	f.BoolVar(&siege.DetectRaces, "race", false, "build the processes with the race detector")
	f.BoolVar(&set.json, "json", false, "print the report as JSON: an object for each store, and one for all together")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("what is %q? torture -help lists the flags", f.Arg(0))
	case set.url != "" && *stores != "":
		return nil, errors.New("-store and -stores: give one of them")
	case set.url != "" && (o.Broken == siege.Vouched || o.Broken == siege.Lied):
		return nil, fmt.Errorf("-store with -broken %s: that takes a store that loses something", o.Broken)
	case o.For <= 0:
		return nil, fmt.Errorf("-for %s: it is longer than 0", o.For)
	case o.Workers < 2 || o.Workers > 100:
		return nil, fmt.Errorf("-workers %d: it is 2 to 100", o.Workers)
	case o.Broken != "" && !slices.Contains(siege.Faults, o.Broken):
		return nil, fmt.Errorf("-broken %s: it is one of %s", o.Broken, strings.Join(siege.Faults, ", "))
	}
	if set.url != "" {
		return set, nil
	}
	var err error
	set.stores, err = choose(*stores, ordinary, others)
	return set, err
}

// choose returns the stores of a flag. Those that are not asked for by name are left out,
// with a word, where they are not installed.
func choose(asked string, ordinary, others []string) (chosen []string, err error) {
	named := ordinary
	switch asked {
	case "":
	case "all":
		named = slices.Concat(ordinary, others)
	default:
		named = strings.Split(asked, ",")
	}
	for _, name := range named {
		if !slices.Contains(ordinary, name) && !slices.Contains(others, name) {
			return nil, fmt.Errorf("-stores %s: there is no %q; there are %s", asked, name, strings.Join(slices.Concat(ordinary, others), ", "))
		}
		err := siege.Installed(name)
		switch {
		case err == nil:
			chosen = append(chosen, name)
		case asked == "" || asked == "all":
			fmt.Fprintf(os.Stderr, "torture: %s is left out: %v; make servers installs what is missing\n", name, err)
		default:
			return nil, fmt.Errorf("-stores %s: %w; make servers installs what is missing", asked, err)
		}
	}
	return chosen, nil
}

// torture besieges one store after the other, and returns the exit code.
func torture(ctx context.Context, set *settings) (code int) {
	defer siege.RemovePrograms()
	testserver.Foreground()
	if set.url != "" {
		if err := set.given(ctx, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, "torture: error:", err)
			return exitFailed
		}
	}
	var all []*siege.Outcome
	begun := 0
	for _, name := range set.stores {
		if ctx.Err() != nil {
			break
		}
		begun++
		o := set.options
		o.Live = &siege.Live{}
		if o.Given == nil {
			o.Store = name
		}
		title := name
		if len(set.stores) > 1 {
			title = fmt.Sprintf("%s (%d of %d)", name, begun, len(set.stores))
		}
		line := watch(ctx, os.Stderr, title, o)
		out, err := besiege(ctx, o)
		line.stop()
		switch {
		case err == nil:
			all = append(all, out)
		case ctx.Err() == nil: // and not because it was to stop
			fmt.Fprintf(os.Stderr, "torture: error: %s: %v\nthe same faults again: %s\n", name, err, o.Command(name))
			code = exitFailed
		}
		if err == nil && !set.json {
			printOutcome(os.Stdout, out)
		}
	}
	sum := siege.Together(set.options, all)
	switch {
	case set.json:
		if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"stores": all, "together": sum}); err != nil {
			return exitFailed
		}
	case len(all) > 1:
		printOutcome(os.Stdout, sum)
	}
	if len(sum.Problems) > 0 {
		fmt.Fprintf(os.Stderr, "torture: error: %s; the first PROBLEM of each store is above\n", several(sum.Repeats, "repeat"))
		return exitFound
	}
	if stopped, ok := stoppedBy(ctx); ok {
		fmt.Fprintf(os.Stderr, "torture: %s, at store %d of %d\n", stopped.Signal, begun, len(set.stores))
		return stopped.code()
	}
	return code
}

// given looks at the server that is not started here, and says what is created there.
func (set *settings) given(ctx context.Context, out io.Writer) error {
	given, err := siege.LookAt(ctx, set.url, set.name)
	if err != nil {
		return fmt.Errorf("-store %s: %w", open.Redact(set.url), err)
	}
	for _, line := range given.Creates(set.options.Workers) {
		fmt.Fprintln(out, "torture:", line)
	}
	set.options.Given, set.stores = given, []string{given.String()}
	return nil
}

// besiege besieges one store. Whatever was started has ended when it returns.
func besiege(ctx context.Context, o siege.Options) (out *siege.Outcome, err error) {
	err = testserver.Outside(func(tb testing.TB) error {
		out = siege.Run(ctx, tb, o)
		return nil
	})
	return out, err
}
