//go:build !windows

package main

import (
	"bufio"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestShardsMetricsListen: it serves metrics of two servers, and ends well when it is told to.
func TestShardsMetricsListen(t *testing.T) {
	t.Parallel()
	_, flags := twoServers(t, 2)
	p := command(t, "none", append([]string{"shard", "metrics", "--listen", "127.0.0.1:0"}, flags...)...)
	p.Stderr = nil
	errs, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() }) // if it has not ended
	line, err := bufio.NewReader(errs).ReadString('\n')
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`).FindString(line)
	if err != nil || url == "" {
		t.Fatalf("%q, %v", line, err)
	}
	client := http.Client{Timeout: 30 * time.Second}
	for range 2 {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.Contains(string(body), `firn_shard_server_up{server="b"} 1`) {
			t.Fatalf("%d, %v\n%s", resp.StatusCode, err, body)
		}
	}
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
