// Command page measures what an id costs in each client of the shared page, beside a lease in Go.
//
// Each client is a process of its own. It takes turns with the others, round by round, so that whatever else the machine does
// meets all of them. A client reads lines from its standard input, each a number of ids and the size of a batch. It takes these
// ids and prints an empty line. What is compared is the processor time of its process an id: of compilers and collectors too. Ratios
// are medians of those within a round. It runs on Linux.
//
// To add a language: a program that does this, and a row in clients.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/bench/figures"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/page"
	"github.com/firn-id/firn/store/memory"
)

// layout has 131,072 ids in a millisecond, more than a process takes one at a time: so the code is compared, and not the layout.
var layout = firn.MustLayout("time:41@1ms,worker:5,seq:17;epoch=2020-01-01T00:00:00Z")

func main() {
	rounds := flag.Int("rounds", 9, "how often everything is run")
	ids := flag.Int("ids", 1_000_000, "ids in a round")
	role := flag.String("role", "", "be one of the clients that are compared")
	flag.Parse()
	var err error
	switch {
	case *role != "":
		err = be(*role, flag.Arg(0))
	case flag.NArg() > 0 || *rounds < 1 || *ids < 1000:
		err = errors.New("usage: page [-rounds N] [-ids N, at least 1000]")
	default:
		err = run(*rounds, *ids)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func open(ctx context.Context) (*lease.Lease, error) {
	return lease.Open(ctx, memory.New(), &lease.Options{Layout: layout, Logger: slog.New(slog.DiscardHandler)})
}

func run(rounds, ids int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("/dev/shm", "firn-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	held, err := open(ctx)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "page")
	served := make(chan error, 1)
	go func() {
		served <- page.Serve(ctx, held, path, &page.Options{Logger: slog.New(slog.DiscardHandler)})
	}()
	rows, err := measure(ctx, dir, path, rounds, ids)
	if err == nil {
		err = report(rows, rounds, ids)
	}
	cancel()
	return errors.Join(err, <-served, held.Close())
}

// measure starts all clients, and lets them take turns.
func measure(ctx context.Context, dir, path string, rounds, ids int) ([]*row, error) {
	var rows []*row
	for _, c := range clients {
		r := &row{client: c}
		if r.process, r.missing = start(ctx, c, dir, path); r.missing == nil {
			defer r.process.end()
		}
		rows = append(rows, r)
	}
	for round := range rounds + 1 {
		for _, r := range rows {
			if r.missing != nil {
				continue
			}
			one, err := r.process.take(ids, 1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.name, err)
			}
			many, err := r.process.take(ids, 1000)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.name, err)
			}
			if round > 0 { // the first one is for compilers
				r.one, r.many = append(r.one, one), append(r.many, many)
			}
		}
	}
	return rows, nil
}

func report(rows []*row, rounds, ids int) error {
	fmt.Printf("%s\n%d rounds of %d ids, layout %s\nnanoseconds of processor time an id; × is of a lease in Go, one at a time\n\n", figures.ThisMachine(), rounds, ids, layout)
	base := rows[0].one
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "client\tone at a time\t×\tin batches of 1000\t×")
	for _, r := range rows {
		if r.missing != nil {
			fmt.Fprintf(w, "%s\tnot run: %v\n", r.name, r.missing)
			continue
		}
		one, _ := figures.CPU(r.one)
		many, _ := figures.CPU(r.many)
		fmt.Fprintf(w, "%s\t%.1f\t%.2f\t%.1f\t%.2f\n", r.name, one, figures.Ratio(r.one, base), many, figures.Ratio(r.many, base))
	}
	return w.Flush()
}
