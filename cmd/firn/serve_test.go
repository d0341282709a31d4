//go:build !windows

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/internal/testserver"
)

// long is for what comes soon, on a machine that has much else to do.
const long = time.Minute

// A served is firn serve as a process of its own.
type served struct {
	*process
	t      *testing.T
	listen map[string]string
	log    logFile
}

// A logFile is the log of a process. The process writes to the file itself: a line that was
// written before an answer is there when the answer has arrived.
type logFile struct{ path string }

func (l logFile) String() string {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// serve starts a server in dir, and returns when it listens. FIRN_STORE is not set.
func serve(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	return serving(t, dir, args...).begin()
}

// begin starts a server, and returns when it listens.
func (s *served) begin() *served {
	t := s.t
	t.Helper()
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Process.Kill(); s.Wait() }) // if it has not ended
	var line startLine
	if err := json.NewDecoder(out).Decode(&line); err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	s.listen = line.Listen
	return s
}

// serving is a server that was not started. Where no listener is named, those for
// RESP and HTTP take any port.
func serving(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	p := command(t, "", append([]string{"serve", "--json"}, args...)...)
	p.Dir = dir
	p.Env = append(p.Env, "FIRN_STORE="+isUnset, "HOME="+dir, "FIRN_RESP=127.0.0.1:0", "FIRN_HTTP=127.0.0.1:0")
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	p.Stderr = file
	return &served{process: p, t: t, log: logFile{file.Name()}}
}

// redis is a client of the server that tries nothing twice.
func (s *served) redis(token string) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: s.listen["resp"], Password: token, MaxRetries: -1, DisableIdentity: true,
		ReadTimeout: long, DialTimeout: long,
	})
	s.t.Cleanup(func() { c.Close() })
	return c
}

// get returns the status and the text of a path.
func (s *served) get(path string) (int, string) {
	s.t.Helper()
	return s.do("GET", path, "")
}

func (s *served) do(method, path, token string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://"+s.listen["http"]+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.log)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// until waits until done reports true.
func (s *served) until(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(long); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within %s: %s\n%s", long, what, s.log)
		}
	}
}

// ready reports whether every series can issue: a document may be the last that opens.
func (s *served) ready() bool {
	code, text := s.get("/readyz")
	return code == http.StatusOK && !strings.HasPrefix(text, "ready, but for ")
}

// signal sends a signal.
func (s *served) signal(what os.Signal) {
	s.t.Helper()
	if err := s.Process.Signal(what); err != nil {
		s.t.Fatal(err)
	}
}

// stop ends the server as an operator does, and wants it to end well.
func (s *served) stop() {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	if code := s.code(s.t); code != 0 {
		s.t.Errorf("exit code %d\n%s", code, s.log)
	}
}

// ids are ids that may be there once.
type ids struct {
	mu  sync.Mutex
	all map[int64]bool
}

func (all *ids) add(t *testing.T, id int64) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if id <= 0 || all.all[id] {
		t.Errorf("id %d was given twice, or is none", id)
	}
	if all.all == nil {
		all.all = map[int64]bool{}
	}
	all.all[id] = true
}

func (all *ids) count() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.all)
}

// Without any configuration every name is a series, in both protocols, and the
// commands that are printed work.
func TestServeWithoutConfig(t *testing.T) {
	testserver.RedisCLI(t)
	if _, err := exec.LookPath("curl"); err != nil && os.Getenv("FIRN_REQUIRE_SERVERS") == "1" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	s := serving(t, dir, "--store", "sqlite:"+filepath.Join(dir, "ids.db"), "--json=false")
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Process.Kill() })
	var all ids
	r := bufio.NewReader(out)
	tried := 0
	for tried < 2 {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%v\n%s", err, s.log)
		}
		words, isCommand := strings.CutPrefix(line, "       ")
		if !isCommand {
			continue
		}
		answer, err := exec.Command("sh", "-c", words).Output()
		if err != nil {
			t.Fatalf("%s: %v", words, err)
		}
		text := strings.TrimSpace(string(answer))
		var body struct{ Values []string }
		if json.Unmarshal(answer, &body) == nil && len(body.Values) == 1 {
			text = body.Values[0]
		}
		var id int64
		if _, err := fmt.Sscan(text, &id); err != nil {
			t.Fatalf("%s: %q", words, answer)
		}
		all.add(t, id)
		tried++
	}
	s.stop()
	if free, held := workerStates(t, filepath.Join(dir, "ids.db")); free != 1 || held != 0 {
		t.Errorf("%d workers are free and %d held, want 1 and 0", free, held)
	}
	if strings.Contains(s.log.String(), "ERROR") || strings.Contains(s.log.String(), "WARN") {
		t.Error(s.log)
	}
}

// What is printed at the start is about the names that are served.
func TestServeSays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ series, try, fact string }{
		{"store: postgres://a@127.0.0.1:1/x\n", "INCR photo", "not ready: it is not open yet: 127.0.0.1:1: nothing listens at the address"},
		{"", "INCR photo", "firn.yaml names no series: every name gives ids, except the name of a counter of the store; no two names ever give the same id"},
		{"series: { secret: { kind: flake, public: { form: sqids }, answers: public } }\n", "FIRN.NEXT secret", "firn.yaml: 1 series"},
		{"series: { invoice: { kind: document, pattern: \"INV-{6}\" } }\n", "FIRN.NEXT invoice", "firn.yaml: 1 series"},
	} {
		dir := t.TempDir()
		text := tt.series
		if !strings.HasPrefix(text, "store: ") {
			text = "store: sqlite:ids.db\n" + text
		}
		write(t, dir, "firn.yaml", text)
		s := serving(t, dir, "--json=false")
		out, err := s.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Process.Kill() })
		text = ""
		lines := bufio.NewScanner(out)
		for !strings.HasPrefix(lines.Text(), "store ") && !strings.HasPrefix(lines.Text(), "not ready") && lines.Scan() {
			text += lines.Text() + "\n"
		}
		if said := lines.Text(); strings.HasPrefix(said, "store ") && !regexp.MustCompile(`^store \S+ \((durable|lossy): \S.*\)`).MatchString(said) {
			t.Errorf("%s: nothing is said of the store: %s", tt.try, said)
		}
		if !strings.Contains(text, tt.try+"\n") || !strings.Contains(text, tt.fact) {
			t.Errorf("%q and %q are missing in\n%s%s", tt.try, tt.fact, text, s.log)
		}
		s.stop()
	}
}

// Series of every kind, each as its kind is.
func TestServeKinds(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "firn.yaml", `
store: sqlite:ids.db
series:
  photo:   { kind: flake }
  secret:  { kind: flake, public: { form: sqids }, answers: public }
  orders:  { kind: sequence, increment: 1 }
  odd:     { kind: sequence, increment: 2 }
  invoice: { kind: document, pattern: "INV-{6}" }
`)
	s := serve(t, dir)
	c := s.redis("")
	ctx := t.Context()
	for _, tt := range []struct {
		args []any
		want string // of the answer; "" is an error
	}{
		{[]any{"INCR", "orders"}, "1"},
		{[]any{"INCRBY", "orders", 10}, "11"},
		{[]any{"FIRN.RANGE", "odd", 3}, "[1 3 2]"},
		{[]any{"FIRN.NEXT", "invoice"}, "INV-000001"},
		{[]any{"FIRN.NEXT", "invoice", 2}, "[INV-000002 INV-000003]"},
		{[]any{"INCRBY", "photo", 10}, ""},
		{[]any{"INCR", "order"}, ""},
	} {
		got, err := c.Do(ctx, tt.args...).Result()
		if text := fmt.Sprint(got); (err != nil) != (tt.want == "") || err == nil && text != tt.want {
			t.Errorf("%v: %s, %v, want %q", tt.args, text, err, tt.want)
		}
	}
	if text, err := c.Do(ctx, "FIRN.NEXT", "secret").Text(); err != nil || len(text) < 5 || strings.Trim(text, "0123456789") == "" {
		t.Errorf("a public form was %q, %v", text, err)
	}
	if err := c.Do(ctx, "INCR", "order").Err(); err == nil || !strings.Contains(err.Error(), "orders") {
		t.Errorf("the nearest name is missing: %v", err)
	}
	s.stop()
}

// drawUntil draws from a series until ctx is done. Errors are for the caller to judge.
func drawUntil(ctx context.Context, t *testing.T, c *redis.Client, series string, all *ids, failed func(error)) {
	for ctx.Err() == nil {
		id, err := c.Do(context.WithoutCancel(ctx), "INCR", series).Int64()
		if err != nil {
			failed(err)
			continue
		}
		all.add(t, id)
		time.Sleep(time.Millisecond) // the server has other things to do too
	}
}
