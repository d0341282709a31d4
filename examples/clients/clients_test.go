// Package clients_test runs the examples and real Redis clients against a server,
// and compares what they print with what was issued.
package clients_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
	"github.com/firn-id/firn/store/memory"
)

// A world is a server with a series of flakes, photo, and one of numbers, orders.
type world struct {
	url string // with the token

	mu     sync.Mutex
	source firn.Source
	issued []string // of photo, as they came
}

const token = "s3cr3t"

func (w *world) Next(ctx context.Context) (firn.ID, error) {
	ids, err := w.Append(ctx, nil, 1)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

func (w *world) Append(ctx context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, err := w.source.Append(ctx, dst, n)
	for _, id := range all[len(dst):] {
		w.issued = append(w.issued, id.String())
	}
	return all, err
}

// forget begins the list of what was issued anew.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.issued = nil
}

// all are the ids that were issued so far.
func (w *world) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.issued)
}

// first are the first n ids that were issued.
func (w *world) first(t *testing.T, n int) []string {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.issued) < n {
		t.Fatalf("%d ids issued, want %d", len(w.issued), n)
	}
	return slices.Clone(w.issued[:n])
}

func newWorld(t *testing.T) *world {
	t.Helper()
	st := memory.New()
	ids, err := lease.Open(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sequence.Create(t.Context(), st, "orders", nil); err != nil {
		t.Fatal(err)
	}
	orders, err := sequence.Open(t.Context(), st, "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{source: ids}
	srv, err := server.New(
		&server.Options{Tokens: []server.Token{{Name: "app", Hash: server.HashToken(token), Rights: map[string]server.Right{"*": server.Issue}}}},
		server.Numbers("photo", w, &server.SeriesOptions{Layout: firn.Default()}),
		server.Numbers("orders", orders, &server.SeriesOptions{Reserve: orders.Reserve}))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.url = "redis://:" + token + "@" + l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- resp.Serve(ctx, l, srv, nil) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		ids.Close()
		orders.Close()
	})
	return w
}

// A program is one in some language, with its environment.
type program struct {
	argv []string
	env  []string
}

// run returns the lines that a program prints when it is called with args.
func (p *program) run(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.argv[0], append(p.argv[1:], args...)...)
	cmd.Env = append(os.Environ(), p.env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", p.argv, err, out.String(), errs.String())
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func python(t *testing.T, script string) *program {
	t.Helper()
	return &program{argv: []string{testserver.Python(t), script}}
}

func node(t *testing.T, script string) *program {
	t.Helper()
	path, modules := testserver.JavaScript(t, "node")
	return &program{argv: []string{path, script}, env: []string{"NODE_PATH=" + modules}}
}

func java(t *testing.T, source string) *program {
	t.Helper()
	return &program{argv: []string{testserver.Java(t), "-XX:TieredStopAtLevel=1", source}}
}

func TestMain(m *testing.M) {
	testserver.Main(m, func() error { return os.RemoveAll(builtIn) })
}

var builtIn string // a directory, or nothing yet

// built is the example in Go, built once.
var built = sync.OnceValues(func() (binary string, err error) {
	if builtIn, err = os.MkdirTemp("", "example-"); err != nil {
		return "", err
	}
	binary = filepath.Join(builtIn, "example")
	cmd := exec.Command("go", "build", "-o", binary, "./go")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // else the race detector's tests have the library built anew
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
})

func golang(t *testing.T, _ string) *program {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return &program{argv: []string{binary}}
}

// The examples, by how they are started.
var examples = []struct {
	name string
	make func(*testing.T, string) *program
	path string
}{
	{"go", golang, ""},
	{"python", python, "python/ids.py"},
	{"node-redis", node, "node/node-redis.js"},
	{"ioredis", node, "node/ioredis.js"},
	{"java", java, "java/Ids.java"},
}

// The examples print ids that were issued, each once and in their order: two blocks
// and a half.
func TestExamples(t *testing.T) {
	const n = 2500
	for _, tt := range examples {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, w := tt.make(t, tt.path), newWorld(t)
			got := p.run(t, w.url, "photo", strconv.Itoa(n))
			if len(got) != n {
				t.Fatalf("%d ids, want %d", len(got), n)
			}
			issued := w.all()
			for i, id := range got {
				// A block that became too old, as the machine had much else to do, is dropped.
				for len(issued) > 0 && issued[0] != id {
					issued = issued[1:]
				}
				if len(issued) == 0 {
					t.Fatalf("id %d is %s, which was not issued after the one before", i, id)
				}
				issued = issued[1:]
			}
		})
	}
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d ids, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("id %d is %s, and %s was issued", i, got[i], want[i])
		}
	}
}

// The examples say what the server says, and end.
func TestExamplesFail(t *testing.T) {
	for _, tt := range examples {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, w := tt.make(t, tt.path), newWorld(t)
			cmd := exec.CommandContext(t.Context(), p.argv[0], append(p.argv[1:], w.url, "photos", "1")...)
			cmd.Env = append(os.Environ(), p.env...)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "there is no series photos") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// The clients connect with their defaults, and what they print is what was issued.
func TestClients(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(*testing.T, string) *program
		path string
		how  []string
	}{
		{"redis-py", python, "testdata/check.py", nil},
		{"node-redis", node, "testdata/check-node-redis.js", nil},
		{"node-redis RESP3", node, "testdata/check-node-redis.js", []string{"resp3"}},
		{"ioredis", node, "testdata/check-ioredis.js", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, w := tt.make(t, tt.path), newWorld(t)
			lines := p.run(t, append([]string{w.url}, tt.how...)...)
			const ids = 1 + 200 + 1 + 50
			var photo []string
			for _, line := range lines[:min(ids, len(lines))] {
				photo = append(photo, strings.TrimPrefix(line, "photo "))
			}
			same(t, photo, w.first(t, ids))
			want := []string{"orders 10", "orders 11 5 1"}
			if rest := lines[len(photo):]; len(rest) != 3 || !slices.Equal(rest[:2], want) || !strings.Contains(rest[2], "no series photos") {
				t.Errorf("then %q", rest)
			}
		})
	}
}

// A client that does not say that it is in JavaScript gets an integer, and JavaScript
// rounds it: what TestClients shows is not by luck.
func TestJavaScriptRounds(t *testing.T) {
	for _, script := range []string{"testdata/check-node-redis.js", "testdata/check-ioredis.js"} {
		p := node(t, script)
		w := newWorld(t)
		rounded := false
		for range 8 { // one in 32 or so is a number that JavaScript has
			lines := p.run(t, w.url, "number")
			issued := w.first(t, 1)
			w.forget()
			if got := strings.TrimPrefix(lines[0], "photo "); got[:12] != issued[0][:12] {
				t.Fatalf("%s: %s is far from %s", script, got, issued[0])
			} else if rounded = got != issued[0]; rounded {
				break
			}
		}
		if !rounded {
			t.Errorf("%s: no id was rounded", script)
		}
	}
}

func TestRedisCLI(t *testing.T) {
	p := &program{argv: []string{testserver.RedisCLI(t)}}
	w := newWorld(t)
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(w.url, "redis://:"+token+"@"))
	p.argv = append(p.argv, "-h", host, "-p", port, "-a", token, "--no-auth-warning")
	got := p.run(t, "INCR", "photo")
	got = append(got, p.run(t, "FIRN.NEXT", "photo", "3")...)
	same(t, got, w.first(t, 4))
	if got := p.run(t, "INCRBY", "orders", "7"); got[0] != "7" {
		t.Errorf("orders: %s", got)
	}
}

func TestGoRedis(t *testing.T) {
	for protocol := 2; protocol <= 3; protocol++ {
		w := newWorld(t)
		o, err := redis.ParseURL(w.url)
		if err != nil {
			t.Fatal(err)
		}
		o.Protocol = protocol
		c := redis.NewClient(o)
		defer c.Close()
		var got []string
		add := func(id any, err error) {
			if err != nil {
				t.Error(err)
			}
			got = append(got, fmt.Sprint(id))
		}
		add(c.Incr(t.Context(), "photo").Result())
		pipe := c.Pipeline()
		for range 200 {
			pipe.Incr(t.Context(), "photo")
		}
		all, err := pipe.Exec(t.Context())
		for _, cmd := range all {
			add(cmd.(*redis.IntCmd).Val(), err)
		}
		add(c.Do(t.Context(), "FIRN.NEXT", "photo").Text())
		same(t, got, w.first(t, 202))
		if n, err := c.IncrBy(t.Context(), "orders", 10).Result(); n != 10 || err != nil {
			t.Errorf("orders: %d, %v", n, err)
		}

		// A pool under load.
		var mu sync.Mutex
		var group sync.WaitGroup
		got = nil
		for range 16 {
			group.Go(func() {
				for range 100 {
					id, err := c.Incr(t.Context(), "photo").Result()
					mu.Lock()
					add(id, err)
					mu.Unlock()
				}
			})
		}
		group.Wait()
		want := w.first(t, 202+1600)[202:]
		slices.Sort(got)
		slices.Sort(want)
		same(t, got, want)
	}
}
