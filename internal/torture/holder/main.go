//go:build linux

// Command holder is the program that package siege does harm to. It holds a
// lease in any store, draws ids with several hands, and with one more the numbers of a
// series, writes each of them into a ledger, and prints what happens to it as lines of JSON.
//
// It obeys lines on standard input: "rate N" (ids a second and hand, 0 is none
// and -1 as fast as it goes), "close" (give the lease back and end). The end of
// the input and SIGTERM are like "close". File descriptor 3 is a barrier: it
// opens the store when that is closed.
//
// With -lock it holds a lock of a SQLite file instead, as a backup or a forgotten
// shell would, until its input ends.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/torture/ledger"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/open"
)

type settings struct {
	url, ledger, lock, broken, series, draw string

	options lease.Options
	layout  string
	hands   int
	rate    int
	batch   int
	barrier bool
	insist  bool

	closed atomic.Bool // the lease was given back
}

func main() {
	var set settings
	flag.StringVar(&set.url, "store", "", "the `URL` of the store")
	flag.StringVar(&set.ledger, "ledger", "", "the `directory` of the ledger")
	flag.StringVar(&set.lock, "lock", "", "only hold a lock: immediate or exclusive")
	flag.StringVar(&set.broken, "broken", "", "have a fault: twice, private or unwritten")
	flag.StringVar(&set.series, "series", "", "a series of numbers that one more hand draws from")
	flag.StringVar(&set.draw, "draw", "next", "how to draw: next, append, try or mixed")
	flag.StringVar(&set.layout, "layout", "firn", "")
	flag.IntVar(&set.hands, "hands", 1, "goroutines that draw")
	flag.IntVar(&set.rate, "rate", 1000, "ids a second and hand; -1: as many as it gets")
	flag.IntVar(&set.batch, "batch", 64, "ids in an Append")
	flag.BoolVar(&set.barrier, "barrier", false, "wait for the end of file descriptor 3")
	flag.BoolVar(&set.insist, "insist", false, "try again where no lease can be had")
	o := &set.options
	flag.StringVar(&o.Pool, "pool", pool.Default, "")
	flag.StringVar(&o.Name, "name", "", "")
	flag.StringVar(&o.GrantFile, "file", "", "")
	flag.IntVar(&o.Lanes, "lanes", 0, "")
	flag.DurationVar(&o.Outage, "outage", 0, "")
	flag.DurationVar(&o.Renew, "renew", 0, "")
	flag.DurationVar(&o.TTL, "ttl", 0, "")
	flag.DurationVar(&o.Wait, "wait", 0, "")
	flag.DurationVar(&o.MaxAhead, "borrow", 0, "")
	flag.Parse()
	o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))

	var err error
	if set.lock != "" {
		err = lock(strings.TrimPrefix(set.url, "sqlite:"), set.lock)
	} else {
		err = hold(&set)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "holder:", err)
		os.Exit(1)
	}
}

// hold is the program.
func hold(set *settings) (err error) {
	if set.options.Layout, err = firn.ParseLayout(set.layout); err != nil {
		return err
	}
	say(ledger.Event{Event: ledger.Started})
	if set.barrier {
		if _, err := io.Copy(io.Discard, os.NewFile(3, "barrier")); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	rate := newThrottle(set.rate)
	ctx, end := context.WithCancel(ctx)
	go obey(rate, end)

	watched, ids, err := openLease(ctx, set)
	if err != nil {
		return err
	}
	numbers, err := openSeries(ctx, set, watched.Store)
	if err != nil {
		return errors.Join(err, ids.Close())
	}
	say(ledger.Event{Event: ledger.Opened})
	go watch(ids)
	var hands sync.WaitGroup
	for n := range set.hands {
		h := newHand(set, n, ids, rate)
		hands.Go(h.run)
	}
	if numbers != nil {
		h := newNumbersHand(set, numbers, rate)
		hands.Go(h.run)
	}
	if set.broken == "twice" {
		h := newHand(set, set.hands, watched.twin(set.options.Layout), rate)
		go h.run() // nobody closes that one
	}
	<-ctx.Done()

	// The hands go on, and find out.
	closed := ledger.Event{Event: ledger.Closed}
	if err := ids.Close(); err != nil {
		closed.Kind, closed.Text = kind(err), err.Error()
	}
	if numbers != nil {
		numbers.Close() // what it cannot hand back is lost, no more
	}
	set.closed.Store(true)
	rate.set(-1)
	hands.Wait()
	say(closed)
	return nil
}

// openLease opens the store and the lease, again and again if told to insist.
func openLease(ctx context.Context, set *settings) (*witness, *lease.Lease, error) {
	for {
		s, err := openStore(set)
		if err == nil {
			w := &witness{Store: s, pool: set.options.Pool, unwritten: set.broken == "unwritten"}
			var ids *lease.Lease
			if ids, err = lease.Open(ctx, w, &set.options); err == nil {
				return w, ids, nil
			}
			if c, ok := s.(io.Closer); ok {
				err = errors.Join(err, c.Close())
			}
		}
		say(ledger.Event{Event: ledger.Refused, Kind: kind(err), Text: err.Error()})
		if !set.insist || ctx.Err() != nil {
			return nil, nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// openSeries opens the series that was asked for, if one was.
func openSeries(ctx context.Context, set *settings, s store.Store) (*sequence.Series, error) {
	for set.series != "" {
		numbers, err := sequence.Open(ctx, s, set.series, &sequence.Options{Name: set.options.Name, Logger: set.options.Logger})
		if err == nil || !set.insist || ctx.Err() != nil {
			return numbers, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, nil
}

func openStore(set *settings) (store.Store, error) {
	if set.broken == "private" {
		return memory.New(), nil
	}
	return open.URL(context.Background(), set.url)
}

// obey carries out the lines of standard input, and calls end at the end.
func obey(rate *throttle, end func()) {
	defer end()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		switch {
		case len(words) == 2 && words[0] == "rate":
			n, err := strconv.Atoi(words[1])
			if err != nil {
				panic(err)
			}
			rate.set(n)
		case len(words) == 1 && words[0] == "close":
			return
		default:
			panic("what is " + in.Text())
		}
	}
}
