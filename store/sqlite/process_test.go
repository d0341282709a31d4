package sqlite

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
	"go.uber.org/goleak"
)

// children are what the test binary does when it is started with childMode in
// its environment, instead of testing.
var children = map[string]func(args []string) error{
	"serve": childServe,
	"open":  childOpen,
	"put":   childPut,
	"count": childCount,
}

const childMode = "FIRN_SQLITE_TEST_CHILD"

func TestMain(m *testing.M) {
	mode := os.Getenv(childMode)
	if mode == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := children[mode](os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A child is this binary in another process.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts a child, which is ended with the test if it has not ended by then.
func start(tb testing.TB, mode string, args ...string) *child {
	tb.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childMode+"="+mode,
		"GORACE=atexit_sleep_ms=0") // or every child would take a second to end
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	c := &child{cmd, in, bufio.NewReader(out)}
	tb.Cleanup(func() {
		if c.ProcessState == nil {
			c.Process.Kill()
			c.Wait()
		}
	})
	return c
}

// line reads one line of what the child says.
func (c *child) line(tb testing.TB) string {
	tb.Helper()
	l, err := c.out.ReadString('\n')
	if err != nil {
		tb.Fatalf("child: %v after %q", err, l)
	}
	return l[:len(l)-1]
}

// TestContractProcesses has every handle in another process. The checks that have several handles are in the short
// form; those of one handle are TestContract's too, and make full has all of them.
func TestContractProcesses(t *testing.T) {
	short := []string{"rolled_back", "handles_agree", "created_at_once", "contention", "linearizable", "list_while_writing", "cancelled_during", "removed"}
	storetest.Run(t, func(tb testing.TB) storetest.Backend {
		if !slices.Contains(short, filepath.Base(tb.Name())) {
			testserver.OnlyLong(tb)
		}
		path := filepath.Join(tb.TempDir(), "ids.db")
		b := backend(path)
		b.Open = func(tb testing.TB) store.Store { return dial(tb, path) }
		return b
	})
}

// A request is a call of a method in a child, and an answer is its outcome.
type (
	request struct {
		ID        int
		Op        string // Get, Put, List, Durability, or cancel
		Cancelled bool   // before the call
		Key       string
		Value     []byte
		Condition store.Condition
	}
	answer struct {
		ID         int
		Record     store.Record
		List       []store.Record
		Durability store.Durability
		Kind       string // of the error: conflict, forgot, cancelled or other
		Err        string
		Forgot     *store.ForgotError
	}
)

// childServe opens the store at a path and serves requests until there are none.
func childServe(args []string) error {
	var s store.Store
	if opened, err := Open(context.Background(), args[0]); err != nil {
		s = unopened{err}
	} else {
		defer opened.Close()
		s = opened
	}
	var mu sync.Mutex // guards out and cancels
	out := json.NewEncoder(os.Stdout)
	cancels := make(map[int]context.CancelFunc)
	var calls sync.WaitGroup
	defer calls.Wait()
	for in := json.NewDecoder(os.Stdin); ; {
		var q request
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		mu.Lock()
		if q.Op == "cancel" {
			if cancel, ok := cancels[q.ID]; ok {
				cancel()
			}
			mu.Unlock()
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancels[q.ID] = cancel
		if q.Cancelled {
			cancel()
		}
		mu.Unlock()
		calls.Go(func() {
			a := serve(ctx, s, q)
			mu.Lock()
			defer mu.Unlock()
			cancel()
			delete(cancels, q.ID)
			out.Encode(a)
		})
	}
}

func serve(ctx context.Context, s store.Store, q request) answer {
	a := answer{ID: q.ID}
	var err error
	switch q.Op {
	case "Get":
		a.Record, err = s.Get(ctx, q.Key)
	case "Put":
		a.Record, err = s.Put(ctx, q.Key, q.Value, q.Condition)
	case "List":
		a.List, err = s.List(ctx, q.Key)
	case "Durability":
		a.Durability, err = s.Durability(ctx)
	}
	switch {
	case err == nil:
		return a
	case errors.Is(err, store.ErrConflict):
		a.Kind = "conflict"
	case errors.As(err, &a.Forgot):
		a.Kind = "forgot"
	case errors.Is(err, context.Canceled):
		a.Kind = "cancelled"
	default:
		a.Kind = "other"
	}
	a.Err = err.Error()
	return a
}

// remote is a handle in a child.
type remote struct {
	in      io.Writer
	mu      sync.Mutex // guards in and the rest
	next    int
	waiting map[int]chan answer
	gone    error
}

func dial(tb testing.TB, path string) store.Store {
	tb.Helper()
	c := start(tb, "serve", path)
	r := &remote{in: c.in, waiting: make(map[int]chan answer)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.receive(c.out)
	}()
	tb.Cleanup(func() {
		c.in.Close()
		<-done
		if err := c.Wait(); err != nil {
			tb.Errorf("child: %v", err)
		}
	})
	return r
}

func (r *remote) receive(out io.Reader) {
	for in := json.NewDecoder(out); ; {
		var a answer
		err := in.Decode(&a)
		r.mu.Lock()
		if err != nil {
			r.gone = err
			for id, ch := range r.waiting {
				ch <- answer{ID: id, Kind: "other", Err: err.Error()}
			}
			r.mu.Unlock()
			return
		}
		r.waiting[a.ID] <- a
		delete(r.waiting, a.ID)
		r.mu.Unlock()
	}
}

func (r *remote) send(q request) (chan answer, int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone != nil {
		return nil, 0, r.gone
	}
	if q.Op != "cancel" {
		r.next++
		q.ID = r.next
	}
	ch := make(chan answer, 1)
	if err := json.NewEncoder(r.in).Encode(q); err != nil {
		return nil, 0, err
	}
	if q.Op != "cancel" {
		r.waiting[q.ID] = ch
	}
	return ch, q.ID, nil
}

func (r *remote) call(ctx context.Context, q request) (answer, error) {
	q.Cancelled = ctx.Err() != nil
	ch, id, err := r.send(q)
	if err != nil {
		return answer{}, err
	}
	var a answer
	select {
	case a = <-ch:
	case <-ctx.Done():
		if _, _, err := r.send(request{ID: id, Op: "cancel"}); err != nil {
			return answer{}, err
		}
		a = <-ch
	}
	switch a.Kind {
	case "":
		return a, nil
	case "conflict":
		return a, store.ErrConflict
	case "forgot":
		return a, a.Forgot
	case "cancelled":
		return a, fmt.Errorf("%s: %w", a.Err, ctx.Err())
	}
	return a, errors.New(a.Err)
}

func (r *remote) Get(ctx context.Context, key string) (store.Record, error) {
	a, err := r.call(ctx, request{Op: "Get", Key: key})
	return a.Record, err
}

func (r *remote) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	a, err := r.call(ctx, request{Op: "Put", Key: key, Value: value, Condition: cond})
	return a.Record, err
}

func (r *remote) List(ctx context.Context, prefix string) ([]store.Record, error) {
	a, err := r.call(ctx, request{Op: "List", Key: prefix})
	return a.List, err
}

func (r *remote) Durability(ctx context.Context) (store.Durability, error) {
	a, err := r.call(ctx, request{Op: "Durability"})
	return a.Durability, err
}
