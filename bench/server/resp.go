package main

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
	"github.com/firn-id/firn/store/memory"
)

// overRESP compares INCR, as redis-benchmark asks for it, with redis-server's.
func overRESP(s *stage) ([]contender, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	redis, err := s.server(addr, "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no")
	if err != nil {
		return nil, err
	}
	ours, err := s.role("resp")
	if err != nil {
		return nil, err
	}
	var all []contender
	for _, c := range []struct{ pipeline, conns, requests int }{
		{1, 1, 4_000}, {1, 50, 20_000}, {16, 50, 200_000}, {128, 1, 200_000}, {128, 50, 1_000_000},
	} {
		group := fmt.Sprintf("INCR, pipelines of %d, %d connections", c.pipeline, c.conns)
		for _, one := range []struct {
			name string
			*process
		}{{"redis-server", redis}, {"firn", ours}} {
			all = append(all, contender{group: group, name: one.name, peer: one.process == redis, run: func() (sample, error) {
				return one.measure(c.requests, func() error {
					return benchmark(one.addr, c.pipeline, c.conns, c.requests)
				})
			}})
		}
	}
	return all, nil
}

// benchmark runs redis-benchmark, which must not meet an error.
func benchmark(addr string, pipeline, conns, requests int) error {
	_, port, _ := net.SplitHostPort(addr)
	out, err := client("redis-benchmark", "-p", port, "-P", strconv.Itoa(pipeline), "-c", strconv.Itoa(conns),
		"-n", strconv.Itoa(requests), "--csv", "INCR", "photo").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "INCR photo") || strings.Contains(string(out), "rror") {
		return fmt.Errorf("redis-benchmark: %v: %s", err, out)
	}
	return nil
}

// serveRESP serves a flake series of a lease.
func serveRESP() error {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	ctx := abandoned()
	l, err := lease.Open(ctx, memory.New(), "bench", nil)
	if err != nil {
		return err
	}
	defer l.Close()
	srv, err := server.New(nil, server.Numbers("photo", l, nil))
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
