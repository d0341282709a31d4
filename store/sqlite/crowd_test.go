package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// crowd is how many processes do something at once: what they take grows with its square.
func crowd() int {
	if testserver.Long() {
		return 64
	}
	return 10
}

// TestCreateAtOnce opens a file that does not exist in a crowd of processes at once; make full does it thrice.
func TestCreateAtOnce(t *testing.T) {
	crowd, files := crowd(), 1
	if testserver.Long() {
		files = 3
	}
	for range files {
		path := filepath.Join(t.TempDir(), "ids.db")
		var all []*child
		for i := range crowd {
			all = append(all, start(t, "open", path, strconv.Itoa(i)))
		}
		for _, c := range all {
			c.line(t) // ready
		}
		for _, c := range all {
			c.in.Close() // go
		}
		ids := make(map[string]bool)
		for _, c := range all {
			ids[c.line(t)] = true
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
		}
		if len(ids) != 1 {
			t.Errorf("%d processes opened %d stores", crowd, len(ids))
		}
		s := mustOpen(t, path)
		l, err := s.List(t.Context(), "")
		if err != nil || len(l) != crowd {
			t.Errorf("%d processes wrote a record each, and there are %d, %v", crowd, len(l), err)
		}
		s.Close()
		expectFiles(t, filepath.Dir(path), ".ids.db.id", "ids.db")
	}
}

// childOpen waits for the word, opens, writes a record and says which store.
func childOpen(args []string) error {
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	var s *Store
	if err := unlocked(func() (err error) { s, err = Open(context.Background(), args[0]); return err }); err != nil {
		return err
	}
	defer s.Close()
	if err := unlocked(func() error {
		r, err := s.Put(context.Background(), "by/"+args[1], []byte(`1`), store.Condition{})
		if r.Version != "" && err != nil {
			return fmt.Errorf("outcome unknown: %v", err)
		}
		return err
	}); err != nil {
		return err
	}
	fmt.Println(s.id)
	return nil
}

// unlocked calls f again while the file is locked: on a busy machine so many in
// line take longer than a store is patient.
func unlocked(f func() error) error {
	for try := 1; ; try++ {
		err := f()
		if err == nil || try == 12 || !strings.Contains(err.Error(), "locked by another process") || strings.Contains(err.Error(), "unknown") {
			return err
		}
	}
}

// TestKill kills a process in the middle of its Puts. What it had acknowledged
// must be there; the one under way may be. make full kills more of them.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.db")
	acknowledged := 0
	kills := 10
	if testserver.Long() {
		kills = 50
	}
	for range kills {
		c := start(t, "put", path)
		last := c.line(t)
		timer := time.AfterFunc(rand.N(60*time.Millisecond), func() { c.Process.Kill() })
		for {
			l, err := c.out.ReadString('\n')
			if err != nil {
				break // a line cut short was not acknowledged
			}
			last = strings.TrimSuffix(l, "\n")
			acknowledged++
		}
		timer.Stop()
		c.Wait()

		n, version, _ := strings.Cut(last, " ")
		want, err := strconv.Atoi(n)
		if err != nil {
			t.Fatalf("child said %q", last)
		}
		s := mustOpen(t, path)
		r, err := s.Get(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		switch got, _ := strconv.Atoi(string(r.Value)); {
		case got == want && string(r.Version) == version, got == want+1:
		default:
			t.Fatalf("%d was acknowledged with version %s, and there is %s with %s", want, version, r.Value, r.Version)
		}
		checkIntegrity(t, path)
		s.Close()
	}
	t.Logf("%d Puts were acknowledged", acknowledged)
}

// childPut counts a record up for ever, and says so after each acknowledgement.
func childPut(args []string) error {
	s, err := Open(context.Background(), args[0])
	if err != nil {
		return err
	}
	r, err := s.Get(context.Background(), "n")
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(string(r.Value))
	for {
		n++
		r, err = s.Put(context.Background(), "n", []byte(strconv.Itoa(n)), store.Condition{Version: r.Version})
		if err != nil {
			return err
		}
		fmt.Println(n, r.Version)
	}
}

// TestContendProcesses lets 64 processes count one record up.
func TestContendProcesses(t *testing.T) {
	const times = 10
	crowd := crowd()
	path := filepath.Join(t.TempDir(), "ids.db")
	var all []*child
	for range crowd {
		all = append(all, start(t, "count", path, strconv.Itoa(times)))
	}
	for _, c := range all {
		c.line(t)
	}
	begin := time.Now()
	for _, c := range all {
		c.in.Close()
	}
	var puts, conflicts int
	var worst time.Duration
	for _, c := range all {
		var p, q int
		var w time.Duration
		if _, err := fmt.Sscan(c.line(t), &p, &q, &w); err != nil {
			t.Error(err)
		}
		puts, conflicts, worst = puts+p, conflicts+q, max(worst, w)
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	took := time.Since(begin)
	s := mustOpen(t, path)
	defer s.Close()
	r, err := s.Get(t.Context(), "n")
	if err != nil || string(r.Value) != strconv.Itoa(crowd*times) {
		t.Errorf("%d processes counted to %s, %v, not to %d", crowd, r.Value, err, crowd*times)
	}
	t.Logf("%d processes: %d Puts and %d conflicts in %v, %v each; the worst Put took %v",
		crowd, puts, conflicts, took, took/time.Duration(puts+conflicts), worst)
}

// childCount adds to a record some times, and says how many Puts that were, how
// many conflicts, and how long the longest took.
func childCount(args []string) error {
	s, err := Open(context.Background(), args[0])
	if err != nil {
		return err
	}
	defer s.Close()
	s.patience = time.Minute // on a machine that is busy with 64 of these
	times, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	conflicts, worst := 0, time.Duration(0)
	for done := 0; done < times; {
		r, err := s.Get(context.Background(), "n")
		if err != nil {
			return err
		}
		n, _ := strconv.Atoi(string(r.Value))
		begin := time.Now()
		_, err = s.Put(context.Background(), "n", []byte(strconv.Itoa(n+1)), store.Condition{Version: r.Version})
		worst = max(worst, time.Since(begin))
		switch {
		case err == nil:
			done++
		case errors.Is(err, store.ErrConflict):
			conflicts++
		default:
			return err
		}
	}
	fmt.Println(times, conflicts, int64(worst))
	return nil
}
