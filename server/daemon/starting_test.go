//go:build !windows

package daemon_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/server/daemon"
)

// silentServer accepts connections and never answers.
func silentServer(t *testing.T) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	return l.Addr().String()
}

// A server whose store accepts connections and never answers says within a moment that it is alive, and
// not ready. It answers requests for ids with an error after which a client comes again.
func TestAnswersWhileItStarts(t *testing.T) {
	for name, series := range map[string]string{
		"listed":   "series:\n  photo: { kind: flake }\n  orders: { kind: sequence }\n  invoice: { kind: document, pattern: \"INV-{6}\" }\n",
		"any name": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			resp, web := filepath.Join(dir, "r"), filepath.Join(dir, "h")
			path := filepath.Join(dir, "firn.yaml")
			text := "store: redis://" + silentServer(t) + "\nlisten: { resp: \"unix:" + resp + "\", http: \"unix:" + web + "\" }\n" + series
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			var started atomic.Bool
			go func() {
				ended <- daemon.Run(ctx, cfg, &daemon.Options{Started: func(daemon.Running) error { started.Store(true); return nil }})
			}()
			asksAServerThatStarts(t, resp, web)
			if started.Load() {
				t.Error("it says that it has started")
			}
			stop()
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// asksAServerThatStarts asks a server at its sockets, each question for a bounded time.
func asksAServerThatStarts(t *testing.T, resp, web string) {
	const moment = 3 * time.Second
	client := &http.Client{Timeout: moment, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", web)
		},
	}}
	defer client.CloseIdleConnections()
	for end := time.Now().Add(moment); ; time.Sleep(10 * time.Millisecond) { // until it listens
		if c, err := net.Dial("unix", web); err == nil { // the file is there before the server listens
			c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not listen")
		}
	}
	for _, q := range []struct {
		method, path string
		code         int
		says         string
	}{
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/readyz", 503, "it is not open yet: its store has not answered yet"},
		{"GET", "/metrics", 200, "firn_"},
		{"GET", "/console/state", 200, "sources"},
		{"POST", "/v1/series/photo/next", 503, "the server is still starting"},
		{"POST", "/v1/series/orders/next", 503, "the server is still starting"},
		{"POST", "/v1/series/invoice/next", 503, "the server is still starting"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), q.method, "http://firn"+q.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(req)
		if err != nil {
			t.Errorf("%s %s: %v", q.method, q.path, err)
			continue
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != q.code || !strings.Contains(string(text), q.says) {
			t.Errorf("%s %s: %d, want %d, %v\n%s", q.method, q.path, answer.StatusCode, q.code, err, text)
		}
	}
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: resp, MaxRetries: -1, DisableIdentity: true, ReadTimeout: moment, DialTimeout: moment})
	defer c.Close()
	if err := c.Do(t.Context(), "PING").Err(); err != nil {
		t.Errorf("PING: %v", err)
	}
	for _, args := range [][]any{{"INCR", "photo"}, {"INCR", "orders"}, {"FIRN.NEXT", "photo"}, {"FIRN.NEXT", "orders"}, {"FIRN.NEXT", "invoice"}} {
		if err := c.Do(t.Context(), args...).Err(); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN ") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
