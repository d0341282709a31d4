package resp_test

import (
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/server"
)

// The tools that come with Redis.
func TestRedisTools(t *testing.T) {
	testserver.Redis(t) // so that they are there, or the test is not
	unknown := func(name string) (*server.Series, error) {
		return server.Numbers(name, &upward{}, nil), nil
	}
	w := serve(t, &server.Options{Others: unknown}, nil)
	_, port, _ := net.SplitHostPort(w.addr)
	redisTool := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.Command(name, append([]string{"-p", port}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for _, tt := range []struct{ line, want string }{
		{"INCR orders", "1"},
		{"-3 INCR orders", "2"},
		{"INCRBY orders 10", "12"},
		{"FIRN.RANGE orders 10", "13\n10\n1"},
		{"--json -3 FIRN.NEXT orders 2", `\["23","24"\]`},
		{"-r 3 INCR orders", "25\n26\n27"},
		{"GET orders", "ERR GET is not for ids: .*"},
		{"INFO server", "(?s).*redis_version:7.*"},
		{"COMMAND COUNT", "[0-9]+"},
	} {
		got := redisTool("redis-cli", strings.Fields(tt.line)...)
		if !regexp.MustCompile("^" + tt.want + "$").MatchString(got) {
			t.Errorf("redis-cli %s: %q, want %q", tt.line, got, tt.want)
		}
	}
	pipe := exec.Command("redis-cli", "-p", port, "--pipe")
	pipe.Stdin = strings.NewReader(strings.Repeat(array("INCR", "photo"), 10_000))
	if out, err := pipe.CombinedOutput(); err != nil || !strings.Contains(string(out), "errors: 0, replies: 10000") {
		t.Errorf("redis-cli --pipe: %v: %s", err, out)
	}
	for _, args := range []string{
		"-q -n 2000 -c 20 -t incr,ping",
		"-q -n 20000 -c 20 -P 64 INCR photo",
		"-q -n 2000 -c 5 -3 FIRN.NEXT photo 10",
	} {
		out := redisTool("redis-benchmark", strings.Fields(args)...)
		if strings.Contains(out, "rror") || strings.Contains(out, "WARN") || !strings.Contains(out, "requests per second") {
			t.Errorf("redis-benchmark %s: %s", args, out)
		}
	}
}

// go-redis: connects with defaults, in both versions, pooled and piped.
func TestGoRedis(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		w := serve(t, &server.Options{Tokens: []server.Token{
			{Name: "web", Hash: server.HashToken("secret"), Rights: map[string]server.Right{"*": server.Issue}},
		}}, nil)
		c := redis.NewClient(&redis.Options{Addr: w.addr, Protocol: protocol, Password: "secret", ClientName: "test"})
		ctx := t.Context()
		var mu sync.Mutex
		var all []int64
		note := func(n ...int64) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, n...)
		}
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for range 50 {
					n, err := c.Incr(ctx, "orders").Result()
					if err != nil {
						t.Error(err)
						return
					}
					note(n)
				}
				pipe := func(cmds []redis.Cmder, err error) {
					if err != nil {
						t.Error(err)
						return
					}
					for _, cmd := range cmds {
						note(cmd.(*redis.IntCmd).Val())
					}
				}
				pipe(c.Pipelined(ctx, func(p redis.Pipeliner) error {
					for range 50 {
						p.Incr(ctx, "orders")
					}
					return nil
				}))
				pipe(c.TxPipelined(ctx, func(p redis.Pipeliner) error {
					for range 50 {
						p.Incr(ctx, "orders")
					}
					return nil
				}))
				last, err := c.IncrBy(ctx, "orders", 50).Result()
				if err != nil {
					t.Error(err)
				}
				for n := last - 49; n <= last; n++ {
					note(n)
				}
				texts, err := c.Do(ctx, "FIRN.NEXT", "orders", 50).StringSlice()
				if err != nil {
					t.Error(err)
				}
				for _, text := range texts {
					n, err := strconv.ParseInt(text, 10, 64)
					if err != nil {
						t.Error(err)
					}
					note(n)
				}
			})
		}
		callers.Wait()
		slices.Sort(all)
		if len(all) != 8*250 || len(slices.Compact(all)) != 8*250 {
			t.Errorf("version %d: %d numbers, %d different", protocol, len(all), len(slices.Compact(all)))
		}
		if err := c.Get(ctx, "orders").Err(); err == nil || !strings.HasPrefix(err.Error(), "ERR GET") {
			t.Errorf("GET: %v", err)
		}
		id, err := c.Incr(ctx, "photo").Result()
		if err != nil || id < 1<<53 {
			t.Errorf("photo: %d, %v", id, err)
		}
		if who := c.ClientInfo(ctx).Val(); who == nil || who.Name != "test" || who.LibName == "" {
			t.Errorf("CLIENT INFO: %s", fmt.Sprint(who))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
