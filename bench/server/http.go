package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/httpapi"
	"github.com/firn-id/firn/store/memory"

	"github.com/firn-id/firn/bench/figures"
)

// overHTTP compares one id for each request with a handler that does nothing but write
// 18 digits. wrk asks.
func overHTTP(s *stage) ([]contender, error) {
	nothing, err := s.role("http-bare")
	if err != nil {
		return nil, err
	}
	limits, err := s.role("http-limits")
	if err != nil {
		return nil, err
	}
	ours, err := s.role("http")
	if err != nil {
		return nil, err
	}
	type asked struct {
		name   string
		accept string
		*process
	}
	servers := []asked{
		{"bare net/http", "text/plain", nothing},
		{"bare net/http, with firn's limits", "text/plain", limits},
		{"firn, text/plain", "text/plain", ours},
		{"firn, JSON", "application/json", ours},
	}
	if s.before != "" {
		past, err := s.pastRole("http")
		if err != nil {
			return nil, err
		}
		servers = append(servers, asked{"firn, text/plain" + pastName, "text/plain", past}, asked{"firn, JSON" + pastName, "application/json", past})
	}
	var all []contender
	for _, conns := range []int{1, 50} {
		group := fmt.Sprintf("HTTP, one id, %d connections", conns)
		for i, one := range servers {
			all = append(all, contender{group: group, name: one.name, peer: i == 0, past: i > 3, run: func() (figures.Sample, error) {
				return one.wrk(conns, one.accept)
			}})
		}
	}
	return all, nil
}

var (
	wrkRequests = regexp.MustCompile(`(\d+) requests in `)
	wrkFailures = regexp.MustCompile(`(?i)non-2xx|socket errors`)
)

// wrk has wrk ask for ids for a second.
func (p *process) wrk(conns int, accept string) (figures.Sample, error) {
	const took = time.Second
	script := filepath.Join(os.TempDir(), fmt.Sprintf("firn-bench-%d.lua", os.Getpid()))
	if err := os.WriteFile(script, []byte("wrk.method = \"POST\"\n"), 0o600); err != nil {
		return figures.Sample{}, err
	}
	defer os.Remove(script)
	before, err := p.cpu()
	if err != nil {
		return figures.Sample{}, err
	}
	out, err := client("wrk", "-t1", "-c", strconv.Itoa(conns), "-d", took.String(), "-s", script,
		"-H", "Accept: "+accept, "http://"+p.addr+"/v1/series/photo/next").CombinedOutput()
	found := wrkRequests.FindSubmatch(out)
	if err != nil || found == nil || wrkFailures.Match(out) {
		return figures.Sample{}, fmt.Errorf("wrk: %v: %s", err, out)
	}
	after, err := p.cpu()
	if err != nil {
		return figures.Sample{}, err
	}
	n, err := strconv.ParseFloat(string(found[1]), 64)
	return figures.Sample{CPU: float64(after-before) / n, Elapsed: float64(took) / n}, err
}

// serveHTTP serves a flake series of a lease.
func serveHTTP() error {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	l, err := lease.Open(abandoned(), memory.New(), nil)
	if err != nil {
		return err
	}
	defer l.Close()
	srv, err := server.New(nil, server.Numbers("photo", l, nil))
	if err != nil {
		return err
	}
	h, err := httpapi.Handler(srv, nil)
	if err != nil {
		return err
	}
	return untilAbandoned(httpapi.NewServer(h), httpapi.Listener)
}

// bare writes the same 18 digits each time.
var bare http.HandlerFunc = func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("175928847299117063")) }

func serveBareHTTP() error { return untilAbandoned(&http.Server{Handler: bare}, plain) }

func plain(l net.Listener) net.Listener { return l }

// serveLimitedHTTP has the time limits of firn's server, which are timers to set and
// to clear for each request.
func serveLimitedHTTP() error { return untilAbandoned(httpapi.NewServer(bare), plain) }

// untilAbandoned serves until the program that has started this role is gone.
func untilAbandoned(s *http.Server, with func(net.Listener) net.Listener) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	done := abandoned()
	go func() {
		<-done.Done()
		s.Close()
	}()
	say(listener)
	if err := s.Serve(with(listener)); err != http.ErrServerClosed {
		return err
	}
	return nil
}
