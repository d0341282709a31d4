package main

import (
	"fmt"
	"net"
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
	type named struct {
		name string
		*process
	}
	servers := []named{{"redis-server", redis}}
	ours, err := firnServe(s, "..") // of bench, where this runs
	if err != nil {
		return nil, err
	}
	servers = append(servers, named{"firn", ours})
	if s.before != "" {
		past, err := firnServe(s, s.before)
		if err != nil {
			return nil, err
		}
		servers = append(servers, named{"firn" + pastName, past})
	}
	var all []contender
	for _, c := range []struct{ pipeline, conns, requests int }{
		{1, 1, 4_000}, {1, 50, 20_000}, {16, 50, 200_000}, {128, 1, 200_000}, {128, 50, 1_000_000},
	} {
		group := fmt.Sprintf("INCR, pipelines of %d, %d connections", c.pipeline, c.conns)
		for i, one := range servers {
			all = append(all, contender{group: group, name: one.name, peer: i == 0, past: i == 2, run: func() (figures.Sample, error) {
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

// firnServe starts the command of a checkout, with its defaults: each name is a flake of a
// lease on an embedded store.
func firnServe(s *stage, checkout string) (*process, error) {
	program, err := s.build(checkout, "./cmd/firn")
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	return s.server(addr, program, "serve", "--resp", addr, "--http", "off", "--store", "sqlite:"+filepath.Join(filepath.Dir(program), "ids.db"))
}
