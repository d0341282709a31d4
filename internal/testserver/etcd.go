package testserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Etcd starts a single member of etcd.
func Etcd(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return launch(tb, etcdKind, plan{
		ports: 2,
		command: func(s *Server) []string {
			// Alone, it elects itself after the election's timeout.
			cluster := fmt.Sprintf("m0=http://127.0.0.1:%d", s.ports[1])
			return append(etcdCommand(s, "m0", cluster, 20, 200), args...)
		},
		url:   func(addr string) string { return "etcd://" + addr },
		ready: etcdReady,
	})
}

func etcdCommand(s *Server, name, cluster string, heartbeat, election int) []string {
	client, peer := "http://"+s.addr, fmt.Sprintf("http://127.0.0.1:%d", s.ports[1])
	return []string{
		program("etcd"), "--name", name, "--data-dir", filepath.Join(s.home, "data"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", cluster, "--initial-cluster-token", "firn-" + strings.ReplaceAll(cluster, "/", ""),
		"--heartbeat-interval", strconv.Itoa(heartbeat), "--election-timeout", strconv.Itoa(election),
		"--logger", "zap",
	}
}

// etcdReady asks for its health, which a member has when it reads from a leader.
func etcdReady(addr string) error {
	var health struct{ Health string }
	if err := etcdAsk("GET", addr, "/health", &health); err != nil {
		return err
	}
	if health.Health != "true" {
		return fmt.Errorf("testserver: etcd's health is %q", health.Health)
	}
	return nil
}

// etcdLeads reports whether the member at addr says that it leads.
func etcdLeads(addr string) bool {
	var status struct {
		Header struct {
			Member string `json:"member_id"`
		} `json:"header"`
		Leader string `json:"leader"`
	}
	err := etcdAsk("POST", addr, "/v3/maintenance/status", &status)
	return err == nil && status.Leader != "" && status.Leader == status.Header.Member
}

func etcdAsk(method, addr, path string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, bytes.NewReader([]byte("{}")))
	if err != nil {
		return err
	}
	// A connection for this one question: none is left to the test's leak check.
	t := &http.Transport{DisableKeepAlives: true}
	defer t.CloseIdleConnections()
	resp, err := t.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}
