package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/bench/figures"
	firnclient "github.com/firn-id/firn/client"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
	"github.com/firn-id/firn/store/memory"
)

// overClient compares the client, in this process, with a counter in this process.
// What counts is the processor time of this process, of which the fetching is a part.
func overClient(s *stage) ([]contender, error) {
	ours, err := s.role("client")
	if err != nil {
		return nil, err
	}
	const group, ids = "Client, blocks of 10,000, one goroutine", 2_000_000
	var counter atomic.Int64
	all := []contender{{group: group, name: "local atomic counter", peer: true, run: func() (figures.Sample, error) {
		return inProcess(ids, func() error {
			for range ids {
				counter.Add(1)
			}
			return nil
		})
	}}}
	for _, one := range []struct {
		name, series string
		prefetch     int
		draw         func(firn.Source) error
	}{
		{"firn, ranges, Next", "orders", 10_000, draw(ids)},
		{"firn, ranges, Append of 64", "orders", 10_000, drawMany(ids)},
		{"firn, ranges by the rate, Next", "orders", 0, draw(ids)},
		{"firn, lists, Next", "photo", 10_000, draw(ids)},
	} {
		c, err := firnclient.Open(context.Background(), "redis://"+ours.addr, one.series, &firnclient.Options{Prefetch: one.prefetch})
		if err != nil {
			return nil, err
		}
		all = append(all, contender{group: group, name: one.name, run: func() (figures.Sample, error) {
			return inProcess(ids, func() error { return one.draw(c) })
		}})
	}
	return all, nil
}

// draw draws ids one at a time, as a program does: through the interface.
func draw(n int) func(firn.Source) error {
	return func(src firn.Source) error {
		ctx := context.Background()
		for range n {
			if _, err := src.Next(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

func drawMany(n int) func(firn.Source) error {
	return func(src firn.Source) error {
		ctx := context.Background()
		ids := make([]firn.ID, 0, 64)
		for range n / 64 {
			var err error
			if ids, err = src.Append(ctx, ids[:0], 64); err != nil {
				return err
			}
		}
		return nil
	}
}

// inProcess measures something that this process does n times.
func inProcess(n int, run func() error) (figures.Sample, error) {
	before, err := ownCPU()
	if err != nil {
		return figures.Sample{}, err
	}
	start := time.Now()
	if err := run(); err != nil {
		return figures.Sample{}, err
	}
	elapsed := time.Since(start)
	after, err := ownCPU()
	return figures.Sample{CPU: float64(after-before) / float64(n), Elapsed: float64(elapsed) / float64(n)}, err
}

func ownCPU() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}

// serveClient serves a series that has ranges, and one that has not.
func serveClient() error {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	ctx, st := abandoned(), memory.New()
	l, err := lease.Open(ctx, st, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := sequence.Create(ctx, st, "orders", nil); err != nil {
		return err
	}
	orders, err := sequence.Open(ctx, st, "orders", &sequence.Options{MaxUnused: 10_000_000})
	if err != nil {
		return err
	}
	defer orders.Close()
	srv, err := server.New(nil, server.Numbers("photo", l, nil),
		server.Numbers("orders", orders, &server.SeriesOptions{Reserve: orders.Reserve}))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	say(listener)
	return resp.Serve(ctx, listener, srv, nil)
}
