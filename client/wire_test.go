package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// A script is a server that answers as a test says: for what a real one never does.
type script struct {
	addr   string
	answer atomic.Pointer[func(words []string) string] // empty: none, ever
	asked  atomic.Int64                                // commands
	// The most commands that were there when one was read.
	together atomic.Int64
	mu       sync.Mutex
	conns    []net.Conn
}

func newScript(t *testing.T, answer func(words []string) string) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{addr: l.Addr().String()}
	s.answer.Store(&answer)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			all.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.hangUp()
		all.Wait()
	})
	return s
}

func (s *script) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
}

func (s *script) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		words, err := readCommand(in)
		if err != nil {
			return
		}
		s.asked.Add(1)
		rest, _ := in.Peek(in.Buffered())
		s.together.Store(max(s.together.Load(), 1+int64(bytes.Count(rest, []byte("*")))))
		if text := (*s.answer.Load())(words); text == hangUp {
			return
		} else if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// hangUp is an answer that is none: the connection ends.
const hangUp = "\x00"

func readCommand(in *bufio.Reader) (words []string, err error) {
	var n, size int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	for range n {
		if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, err
		}
		words = append(words, string(b[:size]))
	}
	return words, nil
}

// list is an answer of values in strings.
func list[T any](values ...T) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(values))
	for _, v := range values {
		text := fmt.Sprint(v)
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(text), text)
	}
	return b.String()
}

// counting answers as a server whose ids count up from first.
func counting(first int) func([]string) string {
	var mu sync.Mutex
	next := first
	return func(words []string) string {
		mu.Lock()
		defer mu.Unlock()
		n, _ := strconv.Atoi(words[len(words)-1])
		from := next
		next += n
		return list(from, n, 1)
	}
}

// start opens a client of scripts.
func start(t *testing.T, o *Options, servers ...*script) (*Client, error) {
	t.Helper()
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, s.addr)
	}
	var patient Options
	if o != nil {
		patient = *o
	}
	if patient.Wait == 0 {
		patient.Wait = time.Minute // the machine may have much else to do
	}
	c, err := Open(t.Context(), "redis://"+strings.Join(hosts, ","), "photo", &patient)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// What is not an answer of firn gives no id and an error that is not to be come
// again with.
func TestStrangeAnswersAreRefused(t *testing.T) {
	for name, answer := range map[string]string{
		"a line":               "+OK\r\n",
		"an integer":           ":5\r\n",
		"null":                 "$-1\r\n",
		"an empty line":        "\r\n",
		"HTTP":                 "HTTP/1.1 400 Bad Request\r\n\r\n",
		"no CR":                "*3\n$1\n1\n",
		"a long line":          strings.Repeat("x", 100_000),
		"two values":           list(1, 1),
		"four values":          list(1, 1, 1, 1),
		"id 0":                 list(0, 1, 1),
		"an id below 0":        list(-5, 1, 1),
		"an id above 63 bits":  list("9223372036854775808", "1", "1"),
		"an id with a zero":    list("01", "1", "1"),
		"an id with a space":   list(" 1", "1", "1"),
		"a text":               list("photo_x", "1", "1"),
		"count 0":              list(1, 0, 1),
		"count 2 of 1":         list(1, 2, 1),
		"step 0":               list(1, 1, 0),
		"a step below 0":       list(1, 1, -1),
		"a giant step":         list(1, 1, 1<<62),
		"a wrong length":       "*3\r\n$2\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n",
		"a length of no sense": "*3\r\n$x\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n",
		"integers":             "*3\r\n:1\r\n:1\r\n:1\r\n",
		"an error in an array": "*3\r\n-TRYAGAIN later\r\n$1\r\n1\r\n$1\r\n1\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, func([]string) string { return answer })
			_, err := start(t, nil, s)
			var strange *AnswerError
			if !errors.As(err, &strange) || strange.Server != s.addr || firn.Retryable(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A range is refused as a whole where its last number would be none.
func TestRangeBeyondTheLastID(t *testing.T) {
	s := newScript(t, func(words []string) string { return list("9223372036854775800", words[2], "1") })
	_, err := start(t, &Options{Prefetch: 9}, s)
	var strange *AnswerError
	if !errors.As(err, &strange) {
		t.Errorf("got %v", err)
	}
	if _, err = start(t, &Options{Prefetch: 8}, s); err != nil {
		t.Errorf("the last 8 ids: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for answer, want := range map[string]bool{
		"-NOPERM no right to that\r\n":                    false,
		"-NOAUTH a token is needed\r\n":                   false,
		"-ERR unknown command 'FIRN.RANGE'\r\n":           false,
		"-TRYAGAIN the store is away\r\n":                 true,
		"-ERR max number of clients reached\r\n":          true,
		"-ERR max number of clients reached, hang on\r\n": true,
	} {
		code, _, _ := strings.Cut(answer[1:], " ")
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, func([]string) string { return answer })
			_, err := start(t, &Options{Wait: 2 * time.Second}, s)
			var reply *Error
			if !errors.As(err, &reply) || reply.Code != code || firn.Retryable(err) != want {
				t.Errorf("%q: got %v, to come again with: %v", answer, err, firn.Retryable(err))
			}
		})
	}
}

// A refusal ends calls at once, is kept for a moment, and is asked about again.
func TestRefusalPasses(t *testing.T) {
	var refuse atomic.Bool
	give := counting(1)
	s := newScript(t, func(words []string) string {
		if refuse.Load() {
			return "-NOPERM no right to that\r\n"
		}
		return give(words)
	})
	c, err := start(t, &Options{Prefetch: 1}, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	refuse.Store(true)
	for range 100 {
		if _, err := c.Next(t.Context()); err == nil || firn.Retryable(err) {
			t.Fatalf("got %v", err)
		}
	}
	if n := s.asked.Load(); n > 50 {
		t.Errorf("100 refused calls came to %d requests", n)
	}
	refuse.Store(false)
	eventually(t, func() bool { _, err := c.Next(t.Context()); return err == nil })
}

// eventually waits until done.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come about")
		}
	}
}

// A server that fails is left for the next one, and no call hears of it.
func TestFailover(t *testing.T) {
	for name, fails := range map[string]string{
		"hangs up":           hangUp,
		"says nothing":       "",
		"says half":          "*3\r\n$1\r\n7\r\n$1\r\n",
		"talks garbage":      "+PONG\r\n",
		"has no ids":         "-TRYAGAIN the store is away\r\n",
		"does not know it":   "-ERR there is no series photo\r\n",
		"gives a wrong list": list(1, 2, 3, 4, 5),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var broken [2]atomic.Bool
			var servers []*script
			for i := range broken {
				give := counting(1 + i*1_000_000)
				servers = append(servers, newScript(t, func(words []string) string {
					if broken[i].Load() {
						return fails
					}
					return give(words)
				}))
			}
			c, err := start(t, &Options{Prefetch: 10, MaxBlock: 10, Timeout: 100 * time.Millisecond, Wait: time.Minute}, servers...)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[firn.ID]bool{}
			for i := range 200 {
				if i%50 == 25 { // the one that is asked breaks, the other works
					in := c.State().Server == servers[1].addr
					broken[0].Store(!in)
					broken[1].Store(in)
				}
				id, err := c.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if seen[id] {
					t.Fatalf("%d again", id)
				}
				seen[id] = true
			}
			if s := c.State(); s.Failed < 3 {
				t.Errorf("it failed %d times", s.Failed)
			}
		})
	}
}

// A request whose answer was lost is not sent again on the same connection, and its
// ids are nobody's.
func TestLostAnswer(t *testing.T) {
	var given sync.Map // first ids whose answer was sent
	var lost atomic.Int64
	next := atomic.Int64{}
	next.Store(1)
	s := newScript(t, func(words []string) string {
		n, _ := strconv.Atoi(words[2])
		first := next.Add(int64(n)) - int64(n)
		if lost.Add(1)%3 == 0 {
			return hangUp
		}
		for i := range int64(n) {
			given.Store(firn.ID(first+i), true)
		}
		return list(int(first), n, 1)
	})
	c, err := start(t, &Options{Prefetch: 7}, s)
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		id, err := c.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := given.LoadAndDelete(id); !ok {
			t.Fatalf("%d was not given, or was given before", id)
		}
	}
}

func TestOutage(t *testing.T) {
	s := newScript(t, counting(1))
	c, err := start(t, &Options{Prefetch: 1, MaxAge: -1}, s)
	if err != nil {
		t.Fatal(err)
	}
	c.options.Wait = time.Second / 2 // not for Open, which a busy machine may keep longer
	none := func([]string) string { return hangUp }
	give := s.answer.Swap(&none)
	ids, err := c.Append(t.Context(), nil, 100)
	var outage *OutageError
	if !errors.As(err, &outage) || !firn.Retryable(err) || outage.Err == nil || len(ids) != 1 {
		t.Fatalf("%d ids and %v", len(ids), err)
	}
	// The outage is known: calls do not wait for it again, and it is asked about again
	// for as long as there are calls.
	asked := s.asked.Load()
	eventually(t, func() bool {
		_, err := c.Next(t.Context())
		if !errors.As(err, &outage) {
			t.Fatalf("got %v", err)
		}
		return outage.Wait > 2*mostPause
	})
	if s.asked.Load() == asked {
		t.Error("nobody asked the server again")
	}
	s.answer.Store(give)
	eventually(t, func() bool { _, err := c.Next(t.Context()); return err == nil })
	if err := c.State().Err; err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestContext(t *testing.T) {
	s := newScript(t, counting(1))
	c, err := start(t, &Options{Prefetch: 1, Timeout: time.Minute, Wait: time.Minute}, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	none := func([]string) string { return "" }
	s.answer.Store(&none)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := c.Next(ctx); !errors.Is(err, context.Canceled) || firn.Retryable(err) {
		t.Errorf("got %v", err)
	}
	ended := make(chan error, 1)
	go func() { _, err := c.Next(t.Context()); ended <- err }()
	eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.wanted > 0 })
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, firn.ErrClosed) {
		t.Errorf("a call that waits while the client is closed: %v", err)
	}
	if _, err := c.Next(t.Context()); !errors.Is(err, firn.ErrClosed) || firn.Retryable(err) {
		t.Errorf("a call after: %v", err)
	}
	if _, err := c.Append(t.Context(), nil, 3); !errors.Is(err, firn.ErrClosed) {
		t.Errorf("a call after: %v", err)
	}
}

// The timer runs for the next block too, when the first was used up in time.
func TestAgeOfTheNext(t *testing.T) {
	c, err := start(t, &Options{Prefetch: 10, MaxAge: 200 * time.Millisecond}, newScript(t, counting(1)))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond) // the next one is to be younger, by however little
	if _, err := c.Append(t.Context(), nil, 6); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(t.Context(), nil, 5); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return c.now.Load().left() == 0 })
}

// Nothing in hand is handed out after Close.
func TestCloseDropsAll(t *testing.T) {
	c, err := start(t, &Options{Prefetch: 100}, newScript(t, counting(1)))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if id, err := c.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
		t.Errorf("%d, %v", id, err)
	}
	if s := c.State(); s.Left != 0 || s.Dropped != s.Fetched {
		t.Errorf("%+v", s)
	}
}

// Ids that became too old are dropped though nobody calls, and what comes too late
// to be young enough is not handed out.
func TestAge(t *testing.T) {
	c, err := start(t, &Options{Prefetch: 100, MaxAge: 20 * time.Millisecond}, newScript(t, counting(1)))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return c.now.Load().left() == 0 })
	id, err := c.Next(t.Context())
	if err != nil || id < 101 {
		t.Errorf("%d, %v", id, err)
	}
	give := counting(1)
	late := newScript(t, func(words []string) string { time.Sleep(5 * time.Millisecond); return give(words) })
	_, err = start(t, &Options{MaxAge: time.Millisecond, Wait: time.Second}, late)
	if err == nil || !firn.Retryable(err) || !strings.Contains(err.Error(), "MaxAge") {
		t.Errorf("got %v", err)
	}
}

func TestConcurrent(t *testing.T) {
	c, err := start(t, nil, newScript(t, counting(1)))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[firn.ID]bool{}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			var ids []firn.ID
			for len(ids) < 20_000 {
				var err error
				last := len(ids)
				if ids, err = c.Append(t.Context(), ids, 1+i*len(ids)%97); err != nil {
					t.Error(err)
					return
				}
				id, err := c.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				ids = append(ids, id)
				for j := max(last, 1); j < len(ids); j++ {
					if ids[j] <= ids[j-1] {
						t.Errorf("%d after %d", ids[j], ids[j-1])
						return
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for _, id := range ids {
				if seen[id] {
					t.Errorf("%d again", id)
				}
				seen[id] = true
			}
		})
	}
	all.Wait()
}

// The next block is fetched when half of one is used, before anybody waits for it.
func TestFetchedAhead(t *testing.T) {
	for name, draw := range map[string]func(c *Client) error{
		"Next": func(c *Client) error {
			for range 51 {
				if _, err := c.Next(t.Context()); err != nil {
					return err
				}
			}
			return nil
		},
		"Append": func(c *Client) error { _, err := c.Append(t.Context(), nil, 51); return err },
	} {
		c, err := start(t, &Options{Prefetch: 100, MaxAge: -1}, newScript(t, counting(1)))
		if err != nil {
			t.Fatal(err)
		}
		if s := c.State(); s.Left != 100 {
			t.Fatalf("%s: %+v", name, s)
		}
		if err := draw(c); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return c.State().Left == 149 })
	}
}
