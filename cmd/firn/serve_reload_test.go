//go:build !windows

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/server"
)

// reload makes the server read its settings again, and waits until it says what came
// of that.
func (s *served) reload(want string) {
	s.t.Helper()
	before := strings.Count(s.log.String(), want)
	s.signal(syscall.SIGHUP)
	s.until(want, func() bool { return strings.Count(s.log.String(), want) > before })
}

const (
	reloaded    = `"msg":"reloaded"`
	notReloaded = `"msg":"not reloaded; everything is as it was"`
)

// holding is the lease that a series draws from: its worker and term.
func (s *served) holding(series string) string {
	s.t.Helper()
	code, text := s.get("/v1/series/" + series)
	var one struct {
		State struct {
			Workers []int64
			Term    uint64
		}
	}
	if err := json.Unmarshal([]byte(text), &one); err != nil || code != http.StatusOK {
		s.t.Fatalf("%d %s, %v", code, text, err)
	}
	return fmt.Sprint(one.State)
}

// Under load series come, go and change, with no connection dropped, no call failed
// and the lease kept; and a faulty file changes nothing.
func TestServeReloadUnderLoad(t *testing.T) {
	dir := t.TempDir()
	config := func(series string) {
		write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries:\n  photo: { kind: flake }\n"+series)
	}
	config("  orders: { kind: sequence }\n  gone: { kind: flake }\n")
	s := serve(t, dir)
	c := s.redis("")
	held := s.holding("photo")

	var flakes, numbers ids
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	failed := func(err error) {
		t.Errorf("a call failed: %v", err)
		stop()
	}
	defer load.Wait()
	defer stop()
	for range 4 {
		load.Go(func() { drawUntil(ctx, t, c, "photo", &flakes, failed) })
		load.Go(func() { drawUntil(ctx, t, c, "orders", &numbers, failed) })
	}
	s.until("load", func() bool { return flakes.count() > 1000 && numbers.count() > 1000 })
	opened := c.PoolStats().Misses

	config("  orders: { kind: sequence, cache-for: 20s }\n  new: { kind: flake }\n") // orders changes, gone goes
	s.reload(reloaded)
	if _, err := c.Do(ctx, "INCR", "new").Int64(); err != nil {
		t.Error(err)
	}
	if err := c.Do(ctx, "INCR", "gone").Err(); err == nil {
		t.Error("a series that is gone goes on")
	}
	config("  orders: { kind: sequnce }\n")
	s.reload(notReloaded)
	if !strings.Contains(s.log.String(), "firn.yaml:4:19: series.orders: there is no kind \\\"sequnce\\\"; is it sequence?") {
		t.Error(s.log)
	}
	for _, series := range []string{"new", "orders", "photo"} {
		if _, err := c.Do(ctx, "INCR", series).Int64(); err != nil {
			t.Errorf("after a faulty file: %v", err)
		}
	}
	config("listen: { strings: true }\n")
	s.reload(notReloaded) // takes a start
	if now := s.holding("photo"); now != held {
		t.Errorf("the lease was %s, and is %s", held, now)
	}
	n := flakes.count() + numbers.count()
	s.until("load goes on", func() bool { return flakes.count()+numbers.count() > n+1000 })
	stop()
	load.Wait()
	if misses := c.PoolStats().Misses; misses > opened+1 { // the ninth is ours
		t.Errorf("%d connections were made, %d of them since the reloads", misses, misses-opened)
	}
	s.stop()
}

// A series that needs the worker or the file of another lease waits for a restart.
func TestServeReloadClash(t *testing.T) {
	dir := t.TempDir()
	config := func(pool string) {
		write(t, dir, "firn.yaml", "store: sqlite:ids.db\npools: { main: { "+pool+" } }\nseries: { photo: { kind: flake } }\n")
	}
	config("grant-file: grant")
	s := serve(t, dir)
	config("grant-file: grant, outage: 2m")
	s.reload(notReloaded)
	if !strings.Contains(s.log.String(), "given back at a restart") {
		t.Error(s.log)
	}
	if code, text := s.do("POST", "/v1/series/photo/next", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	s.stop()
}

// A file that was moved away, perhaps for a moment, takes neither tokens nor store with it.
func TestServeReloadWithoutFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "firn.yaml", fmt.Sprintf("store: sqlite:ids.db\nseries: { photo: { kind: flake } }\n"+
		"tokens: { ops: { hash: \"sha256:%x\", rights: { \"*\": issue } } }\n", server.HashToken("secret")))
	s := serve(t, dir)
	if err := os.Rename(filepath.Join(dir, "firn.yaml"), filepath.Join(dir, "old.yaml")); err != nil {
		t.Fatal(err)
	}
	s.reload(notReloaded)
	if !strings.Contains(s.log.String(), "firn.yaml is not there any more") {
		t.Error(s.log)
	}
	if code, text := s.do("POST", "/v1/series/photo/next", ""); code != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", code, text)
	}
	if code, text := s.do("POST", "/v1/series/photo/next", "secret"); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	s.stop()
}

// Tokens come and go with the file; a connection that is open loses its rights.
func TestServeTokens(t *testing.T) {
	dir := t.TempDir()
	made := func(args ...string) (token, config string) {
		var line struct{ Token, Config string }
		out, err := command(t, "", append([]string{"token", "create", "--json"}, args...)...).Output()
		if err == nil {
			err = json.Unmarshal(out, &line)
		}
		if err != nil {
			t.Fatal(err)
		}
		return line.Token, strings.TrimSuffix(strings.TrimPrefix(line.Config, "tokens: {"), "}")
	}
	shop, shopLine := made("shop", "--series", "orders", "--rights", "issue")
	ops, opsLine := made("ops", "--rights", "admin,decode")
	config := func(tokens ...string) {
		write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries: { orders: { kind: sequence }, photo: { kind: flake } }\n"+
			"tokens: {"+strings.Join(tokens, ",")+"}\n")
	}
	config(shopLine, opsLine)
	s := serve(t, dir)
	asShop, asOps := s.redis(shop), s.redis(ops)
	asShop.Options().PoolSize = 1
	for _, tt := range []struct {
		name string
		err  error
		want string // in the error; "": there is none
	}{
		{"shop, orders", asShop.Do(t.Context(), "INCR", "orders").Err(), ""},
		{"shop, photo", asShop.Do(t.Context(), "INCR", "photo").Err(), "NOPERM"},
		{"ops, orders", asOps.Do(t.Context(), "INCR", "orders").Err(), "NOPERM"},
		{"nobody", s.redis("").Do(t.Context(), "INCR", "orders").Err(), "NOAUTH"},
		{"a stranger", s.redis("firn_wrong").Do(t.Context(), "INCR", "orders").Err(), "WRONGPASS"},
	} {
		if got := fmt.Sprint(tt.err); (tt.err == nil) != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, tt.err, tt.want)
		}
	}
	for _, tt := range []struct {
		method, path, token string
		code                int
	}{
		{"POST", "/v1/series/orders/next", shop, 200},
		{"POST", "/v1/series/photo/next", shop, 403},
		{"POST", "/v1/series/orders/next", "", 401},
		{"POST", "/v1/series/orders/next", "firn_wrong", 401},
		{"GET", "/metrics", ops, 200},
		{"GET", "/metrics", shop, 403},
		{"GET", "/readyz", "", 200},
	} {
		if code, text := s.do(tt.method, tt.path, tt.token); code != tt.code {
			t.Errorf("%s %s: %d %s, want %d", tt.method, tt.path, code, text, tt.code)
		}
	}
	config(opsLine)
	s.reload(reloaded)
	if err := asShop.Do(t.Context(), "INCR", "orders").Err(); err == nil {
		t.Error("a token that was taken away goes on")
	}
	for _, secret := range []string{shop, ops, "firn_wrong"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("a token is in the log:\n%s", s.log)
		}
	}
	out, err := command(t, "", "config", "show", "--config", filepath.Join(dir, "firn.yaml")).Output()
	if err != nil || !strings.Contains(string(out), "tokens.ops.hash") || !strings.Contains(string(out), "sha256:xxxxx") {
		t.Errorf("%s, %v", out, err)
	}
	s.stop()
}

// Certificates are replaced without a dropped connection, and a client needs one of
// its own where there is an authority.
func TestServeTLS(t *testing.T) {
	dir := t.TempDir()
	ca := newAuthority(t)
	ca.write(t, dir, "ca.pem")
	ca.issue(t, dir, "server", 1)
	ca.issue(t, dir, "client", 2)
	write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries: { photo: { kind: flake } }\n"+
		"tls: { cert: server.pem, key: server.key, client-ca: ca.pem }\n")
	s := serve(t, dir, "--resp", "0.0.0.0:0") // client certificates are enough beyond this host
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key"))
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(s.listen["resp"])
	dial := func(with ...tls.Certificate) (*tls.Conn, error) {
		return tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{RootCAs: ca.pool, Certificates: with, ServerName: "localhost"})
	}
	incr := func(c net.Conn) (string, error) {
		c.SetDeadline(time.Now().Add(long))
		if _, err := c.Write([]byte("INCR photo\r\n")); err != nil {
			return "", err
		}
		b := make([]byte, 100)
		n, err := c.Read(b)
		return string(b[:n]), err
	}
	if c, err := dial(); err == nil { // in TLS 1.3 the refusal comes with the first answer
		if text, err := incr(c); err == nil {
			t.Errorf("without a certificate of its own a client got %q", text)
		}
	}
	old, err := dial(own)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	document := func(c *tls.Conn) int64 { return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64() }
	if text, err := incr(old); err != nil || text[0] != ':' || document(old) != 1 {
		t.Fatalf("%q, %v, certificate %d", text, err, document(old))
	}
	h := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{own}}, ForceAttemptHTTP2: true,
	}}
	defer h.CloseIdleConnections()
	resp, err := h.Post("https://"+s.listen["http"]+"/v1/series/photo/next", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		t.Errorf("%s %s", resp.Proto, resp.Status)
	}

	ca.issue(t, dir, "server", 3)
	s.reload(reloaded)
	now, err := dial(own)
	if err != nil {
		t.Fatal(err)
	}
	defer now.Close()
	if text, err := incr(now); err != nil || document(now) != 3 {
		t.Errorf("%q, %v, certificate %d after a reload", text, err, document(now))
	}
	write(t, dir, "server.pem", "no certificate")
	s.reload(notReloaded)
	if text, err := incr(old); err != nil {
		t.Errorf("the old connection: %q, %v", text, err)
	}
	s.stop()
}

// Under load a stop answers what was asked, whole, and gives everything back.
func TestServeStopUnderLoad(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "ids.db")
	write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries: { photo: { kind: flake }, orders: { kind: sequence } }\n")
	s := serve(t, dir)
	var answers, asked atomic.Int64
	var load sync.WaitGroup
	for _, series := range []string{"photo", "orders"} {
		for range 4 {
			load.Go(func() { pipeline(t, s.listen["resp"], series, &answers) })
		}
	}
	load.Go(func() {
		for {
			resp, err := http.Post("http://"+s.listen["http"]+"/v1/series/photo/next", "", nil)
			if err != nil {
				return // it listens no more
			}
			var body struct{ Values []string }
			err = json.NewDecoder(resp.Body).Decode(&body)
			resp.Body.Close()
			if err != nil || len(body.Values) != 1 {
				t.Errorf("half an answer: %v", err)
			}
			asked.Add(1)
		}
	})
	s.until("load", func() bool { return answers.Load() > 10_000 && asked.Load() > 10 })
	s.stop()
	load.Wait()
	if free, held := workerStates(t, store); free != 1 || held != 0 {
		t.Errorf("%d workers are free and %d held, want 1 and 0", free, held)
	}
}

// pipeline sends without waiting for answers, until the server has gone; and checks
// that only whole answers came.
func pipeline(t *testing.T, addr, series string, answers *atomic.Int64) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	const window = 100 // commands on their way, and as many answers
	room := make(chan struct{}, 3)
	go func() {
		defer close(room)
		commands := []byte(strings.Repeat("INCR "+series+"\r\n", window))
		for {
			room <- struct{}{}
			if _, err := c.Write(commands); err != nil {
				return
			}
		}
	}()
	var rest string
	got := 0
	b := make([]byte, 64<<10)
	for {
		n, err := c.Read(b)
		lines := strings.SplitAfter(rest+string(b[:n]), "\r\n")
		rest = lines[len(lines)-1]
		for _, line := range lines[:len(lines)-1] {
			if id, err := strconv.ParseInt(strings.TrimSpace(line[1:]), 10, 64); line[0] != ':' || err != nil || id <= 0 {
				t.Errorf("an answer was %q", line)
				return
			}
			answers.Add(1)
			if got++; got%window == 0 {
				<-room
			}
		}
		if err != nil {
			break
		}
	}
	go func() { // the sender may wait for room
		for range room {
		}
	}()
	if rest != "" {
		t.Errorf("half an answer: %q", rest)
	}
}

// A second signal ends the server at once, while the first is waited for.
func TestServeSecondSignal(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, "--store", "sqlite:"+filepath.Join(dir, "ids.db"))
	c, err := net.Dial("tcp", s.listen["http"])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("POST /v1/series/photo/next HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")); err != nil {
		t.Fatal(err) // its body does not come: the request is waited for
	}
	s.signal(syscall.SIGTERM)
	s.until("it stops", func() bool { return strings.Contains(s.log.String(), "stopping") })
	time.Sleep(200 * time.Millisecond) // within 100 ms it would be of the same press
	s.signal(syscall.SIGINT)
	if code := s.code(t); code == 130 && !strings.Contains(s.log.String(), `"level":"WARN","msg":"stopping at once: requests under way are not answered, and each worker stays held until its time to live has passed","why":"interrupt"}`) || code != 130 && code != 0 {
		t.Errorf("exit code %d; the log:\n%s", code, s.log.String())
	}
}

// Killed and started again it gives other ids.
func TestServeKilled(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--store", "sqlite:" + filepath.Join(dir, "ids.db")}
	var all ids
	for range 3 {
		s := serve(t, dir, args...)
		c := s.redis("")
		ctx, stop := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for range 4 {
			load.Go(func() { drawUntil(ctx, t, c, "photo", &all, func(error) { stop() }) })
		}
		n := all.count()
		s.until("load", func() bool { return all.count() > n+1000 })
		s.signal(os.Kill)
		load.Wait()
		stop()
		s.Wait()
	}
}

// systemd is told when the server is ready, reloads, lives and stops.
func TestServeNotifies(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "notify")
	sock, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	next := func() string {
		sock.SetReadDeadline(time.Now().Add(long))
		b := make([]byte, 1000)
		n, err := sock.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	after := func() string { // what comes that is no sign of life
		for {
			if text := next(); text != "WATCHDOG=1" {
				return text
			}
		}
	}
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "200000")
	s := serve(t, dir, "--store", "sqlite:"+filepath.Join(dir, "ids.db"))
	if text := next(); !strings.HasPrefix(text, "READY=1\nSTATUS=") {
		t.Errorf("%q", text)
	}
	for range 3 {
		if text := next(); text != "WATCHDOG=1" {
			t.Errorf("%q", text)
		}
	}
	s.signal(syscall.SIGHUP)
	if text := after(); !strings.HasPrefix(text, "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("%q", text)
	}
	if text := after(); !strings.HasPrefix(text, "READY=1\n") {
		t.Errorf("%q", text)
	}
	s.signal(syscall.SIGTERM)
	if text := after(); !strings.HasPrefix(text, "STOPPING=1") {
		t.Errorf("%q", text)
	}
	s.code(t)
}

// A reload that goes to another store names both: their ids may be equal.
func TestServeReloadNamesTheStores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := func(name string) {
		write(t, dir, "firn.yaml", "store: sqlite:"+name+"\nseries: { photo: { kind: flake } }\n")
	}
	a, b := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")
	if out, err := command(t, "", "pool", "create", "--new", "--store", "sqlite:"+b).everything(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	config("a.db")
	s := serve(t, dir)
	s.until("ready", s.ready)
	s.reload(reloaded)
	if text := s.log.String(); strings.Contains(text, "another one now") {
		t.Errorf("the same store: %s", text)
	}
	config("b.db")
	s.reload(reloaded)
	if text := s.log.String(); !strings.Contains(text, `"before":"sqlite:`+a+`","store":"sqlite:`+b+`"`) {
		t.Errorf("%s", text)
	}
}
