package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/firn-id/firn/bench/figures"
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
	ours, err := firnServe(s)
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
			all = append(all, contender{group: group, name: one.name, peer: one.process == redis, run: func() (figures.Sample, error) {
				for try := 1; ; try++ {
					x, err := one.measure(c.requests, func() error {
						return benchmark(one.addr, c.pipeline, c.conns, c.requests)
					})
					if err == nil || try == tries {
						return x, err
					}
				}
			}})
		}
	}
	return all, nil
}

// tries of redis-benchmark, which once in a while ends without a result.
const tries = 3

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

// firnServe starts the command, with its defaults: each name is a flake of a lease on
// an embedded store.
func firnServe(s *stage) (*process, error) {
	dir, err := s.directory()
	if err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "firn"), "./cmd/firn")
	build.Dir = ".." // of bench, where this runs
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("the command cannot be built: %w", err)
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	return s.server(addr, filepath.Join(dir, "firn"), "serve", "--resp", addr, "--http", "off", "--store", "sqlite:"+filepath.Join(dir, "ids.db"))
}
