package lease

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// TestMain runs the test binary as a holder of a lease where the environment
// says so: something to kill.
func TestMain(m *testing.M) {
	if dir := os.Getenv("FIRN_TEST_HOLDER"); dir != "" {
		if err := hold(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	testserver.Main(m)
}

// hold prints its worker, its term and ids, until it is killed or told to stop.
func hold(dir string) error {
	var s store.Store
	var err error
	if s, err = sqlite.Open(context.Background(), filepath.Join(dir, "ids.db")); err != nil {
		return err
	}
	if os.Getenv("FIRN_TEST_AWAY") != "" {
		a := &away{Store: s}
		a.refuse.Store(true)
		s = a
	}
	l, err := Open(context.Background(), s, &Options{
		GrantFile: filepath.Join(dir, "grant"), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	st := l.State()
	fmt.Println("holds", st.Worker, st.Term)
	out := bufio.NewWriter(os.Stdout)
	for n := 0; ; n++ {
		id, err := l.Next(context.Background())
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		fmt.Fprintln(out, id)
		if n%100 == 99 {
			out.Flush()
		}
	}
}

// run starts a holder, reads n ids and kills it.
func run(t *testing.T, dir string, n int, env ...string) (worker, term string, ids []firn.ID) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "FIRN_TEST_HOLDER="+dir), env...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	lines.Scan()
	if k, _ := fmt.Sscanf(lines.Text(), "holds %s %s", &worker, &term); k != 2 {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("holder said %q", lines.Text())
	}
	for lines.Scan() {
		if len(ids) == n {
			cmd.Process.Kill()
		}
		// What it had printed when it was killed counts too, but for half a line.
		if id, err := firn.ParseID(lines.Text()); err == nil {
			ids = append(ids, id)
		}
	}
	cmd.Wait()
	return worker, term, ids
}

func TestGoesOnAfterAKill(t *testing.T) {
	if bootID() == "" {
		t.Skipf("%s does not say when it was started", runtime.GOOS)
	}
	dir := t.TempDir()
	worker, term, all := run(t, dir, 5000)
	for i := range 5 {
		var env []string
		if i%2 == 0 {
			env = []string{"FIRN_TEST_AWAY=1"}
		}
		w, n, ids := run(t, dir, 5000, env...)
		if w != worker || n != term {
			t.Fatalf("went on with worker %s term %s after %s, %s", w, n, worker, term)
		}
		all = append(all, ids...)
	}
	for i := 1; i < len(all); i++ {
		if all[i] <= all[i-1] {
			t.Fatalf("%d after %d", all[i], all[i-1])
		}
	}
}

// left returns a grant file that a dead process left, in which something can be
// issued, and its directory.
func left(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	run(t, dir, 100)
	return dir, filepath.Join(dir, "grant")
}

// Who goes on with a grant of a pool that the store does not have ends, and names the
// file: without it another one begins.
func TestGrantFileOfAnotherPool(t *testing.T) {
	if bootID() == "" {
		t.Skipf("%s does not say when it was started", runtime.GOOS)
	}
	_, path := left(t)
	s, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "ids.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	quiet := slog.New(slog.DiscardHandler)
	first := open(t, s, &Options{Logger: quiet})
	defer closed(t, first)
	for range 2 {
		l, err := Open(t.Context(), s, &Options{GrantFile: path, Logger: quiet})
		for err == nil {
			_, err = l.Next(t.Context())
		}
		var file *GrantFileError
		var forgot *store.ForgotError
		if !errors.As(err, &file) || file.Path != path || !errors.As(err, &forgot) || !strings.Contains(err.Error(), "remove the file") {
			t.Fatalf("it ends with %v", err)
		}
		if l != nil {
			l.Close()
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l := open(t, s, &Options{GrantFile: path, Logger: quiet})
	defer closed(t, l)
	if _, err := l.Next(t.Context()); err != nil {
		t.Error(err)
	}
}

func why(t *testing.T, path string) string {
	t.Helper()
	g, err := openGrantFile(path)
	if err != nil {
		return err.Error()
	}
	defer g.close()
	if _, _, err := g.read(&Options{Pool: "default", Layout: firn.Default()}); err != nil {
		return err.Error()
	}
	return ""
}

func TestGrantFilesThatAreRefused(t *testing.T) {
	if bootID() == "" {
		t.Skipf("%s does not say when it was started", runtime.GOOS)
	}
	_, path := left(t)
	if reason := why(t, path); reason != "" {
		t.Fatalf("the file that was left is refused: %s", reason)
	}
	t.Run("copied", func(t *testing.T) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), "grant")
		if err := os.WriteFile(copied, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if reason := why(t, copied); reason != "it is a copy" {
			t.Fatal(reason)
		}
	})
	// A mark that was written and is damaged: the process before this one may have issued above any earlier one.
	t.Run("damaged", func(t *testing.T) {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteAt([]byte("torn"), 100); err != nil {
			t.Fatal(err)
		}
		if reason := why(t, path); reason != "it is damaged" {
			t.Fatalf("it is not refused: %q", reason)
		}
	})
}

func TestGrantFileStartedTwice(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(context.Background(), filepath.Join(dir, "ids.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := &Options{GrantFile: filepath.Join(dir, "grant"), Logger: slog.New(slog.DiscardHandler)}
	l := open(t, s, o)
	var used *GrantFileError
	if _, err := Open(t.Context(), s, o); !errors.As(err, &used) || !errors.Is(err, errLocked) {
		t.Fatal(err)
	}
	// Nor under another name, as a container has it where one file is mounted.
	linked := filepath.Join(t.TempDir(), "grant")
	if err := os.Link(o.GrantFile, linked); err != nil {
		t.Fatal(err)
	}
	if reason := why(t, linked); !strings.Contains(reason, errLocked.Error()) {
		t.Errorf("a grant that is in use is gone on with: %q", reason)
	}
	// What else lies there may be tidied away.
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "grant") && e.Name() != "grant" {
			t.Errorf("%s has a say in who uses the grant", e.Name())
		}
	}
	closed(t, l)
	if reason := why(t, o.GrantFile); reason != "its worker was given back" {
		t.Fatal(reason)
	}
	l = open(t, s, o)
	defer closed(t, l)
	if st := l.State(); st.phase != term.Holding || st.Term != 2 {
		t.Fatalf("%+v", st)
	}
}

// vague is a store that has been asked for its pool, and answers with an error.
type vague struct {
	store.Store
	err error
}

func (v vague) Durability(context.Context) (store.Durability, error) {
	return store.Durability{}, v.err
}

// poolless is a store that has lost the pool's record, and not those of its workers.
type poolless struct{ store.Store }

func (p poolless) Get(ctx context.Context, key string) (store.Record, error) {
	if key == term.KeyPool(pool.Default) {
		return store.Record{Key: key}, nil
	}
	return p.Store.Get(ctx, key)
}

func (p poolless) List(ctx context.Context, prefix string) ([]store.Record, error) {
	all, err := p.Store.List(ctx, prefix)
	return slices.DeleteFunc(all, func(r store.Record) bool { return r.Key == term.KeyPool(pool.Default) }), err
}

// A store that answers that it has forgotten, or is another one, is not away: the grant of
// the grant file may be somebody else's by now, and nobody continues it.
func TestGrantFileOfAStoreThatForgot(t *testing.T) {
	for name, change := range map[string]func(store.Store) store.Store{
		"forgot":    func(s store.Store) store.Store { return vague{s, &store.ForgotError{Store: "x"}} },
		"copy":      func(s store.Store) store.Store { return vague{s, &store.OtherStoreError{What: "pool"}} },
		"unread":    func(s store.Store) store.Store { return vague{s, &store.FormatError{Key: "pool"}} },
		"lost pool": func(s store.Store) store.Store { return poolless{s} },
	} {
		t.Run(name, func(t *testing.T) {
			dir, path := left(t)
			s, err := sqlite.Open(t.Context(), filepath.Join(dir, "ids.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			l, err := Open(t.Context(), change(s), &Options{GrantFile: path, Logger: slog.New(slog.DiscardHandler)})
			if err == nil {
				id, err := l.Next(t.Context())
				t.Errorf("opened, with id %d, %v", id, err)
				l.Close()
			}
		})
	}
}
