package sequence_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// Environment of a process that draws: the URL of its store, how many numbers,
// and the file that it writes them to.
const (
	drawURL   = "FIRN_DRAW_URL"
	drawCount = "FIRN_DRAW_COUNT"
	drawFile  = "FIRN_DRAW_FILE"
	drawMode  = "FIRN_DRAW_MODE" // "strict": one at a time, and how long each took
)

// draw is such a process.
func draw() error {
	st, err := open.URL(ctx, os.Getenv(drawURL))
	if err != nil {
		return err
	}
	defer st.Close()
	n, err := strconv.Atoi(os.Getenv(drawCount))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(os.Getenv(drawFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := openPatiently(st)
	if err != nil {
		return err
	}
	defer s.Close()
	if os.Getenv(drawMode) == "strict" {
		return drawStrictly(s, f, n)
	}
	var ids []firn.ID
	for round := 0; n > 0; round++ {
		if ids, err = some(s, ids[:0], min(n, 256), round); err != nil {
			var outage *sequence.OutageError
			if !errors.As(err, &outage) {
				return err
			}
		}
		n -= len(ids)
		var buf []byte
		for _, id := range ids {
			buf = binary.LittleEndian.AppendUint64(buf, uint64(id))
		}
		if _, err := f.Write(buf); err != nil {
			return err
		}
	}
	if err := s.Close(); err != nil { // the store is away: a gap
		fmt.Fprintln(os.Stderr, "draw:", err)
	}
	return nil
}

// some draws numbers in one of the ways there are.
func some(s *sequence.Series, ids []firn.ID, n, round int) ([]firn.ID, error) {
	switch {
	case round%8 == 0:
		return s.Append(ctx, ids, n)
	case round%64 == 1:
		r, err := s.Reserve(ctx, n)
		for id := range r.All() {
			ids = append(ids, id)
		}
		return ids, err
	}
	for range n {
		id, err := s.Next(ctx)
		if err != nil {
			return ids, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// openPatiently opens the series while its store may be away.
func openPatiently(st store.Store) (*sequence.Series, error) {
	for tries := 0; ; tries++ {
		s, err := sequence.Open(ctx, st, "drawn", &sequence.Options{MaxUnused: 20_000, MayRepeat: true, Wait: 2 * time.Second, Logger: quiet})
		var outage *sequence.OutageError
		if err == nil || !errors.As(err, &outage) || tries == 30 {
			return s, err
		}
	}
}

// drawStrictly writes each number, when it was asked for and when it came, in
// nanoseconds of the machine's clock.
func drawStrictly(s *sequence.Series, f *os.File, n int) error {
	for time.Now().UnixNano()%int64(time.Second) > int64(100*time.Millisecond) {
		time.Sleep(time.Millisecond) // about together
	}
	var buf []byte
	for range n {
		began := time.Now().UnixNano()
		id, err := s.Next(ctx)
		if err != nil {
			return err
		}
		for _, v := range []uint64{uint64(id), uint64(began), uint64(time.Now().UnixNano())} {
			buf = binary.LittleEndian.AppendUint64(buf, v)
		}
	}
	_, err := f.Write(buf)
	return err
}

// A herd is processes that draw from one series.
type herd struct {
	t     *testing.T
	url   string
	dir   string
	mode  string
	cmds  []*exec.Cmd
	files int
}

func (h *herd) start(processes, each int) {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	for range processes {
		h.files++
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), drawURL+"="+h.url, drawCount+"="+strconv.Itoa(each), drawMode+"="+h.mode,
			drawFile+"="+filepath.Join(h.dir, strconv.Itoa(h.files)))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			h.t.Fatal(err)
		}
		h.cmds = append(h.cmds, cmd)
	}
	h.t.Cleanup(func() {
		for _, cmd := range h.cmds {
			cmd.Process.Kill()
		}
	})
}

// kill ends n processes that run, without a word to them.
func (h *herd) kill(n int) {
	for _, cmd := range h.cmds[:n] {
		cmd.Process.Kill()
		cmd.Wait()
	}
	h.cmds = h.cmds[n:]
}

func (h *herd) wait() {
	h.t.Helper()
	for _, cmd := range h.cmds {
		if err := cmd.Wait(); err != nil {
			h.t.Error(err)
		}
	}
	h.cmds = nil
}

// stopped waits until every process has ended because its store has forgotten, but
// for those that have all they want.
func (h *herd) stopped() {
	h.t.Helper()
	stopped := 0
	for _, cmd := range h.cmds {
		err := cmd.Wait()
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit) && exit.ExitCode() == forgotten:
			stopped++
		case err != nil:
			h.t.Errorf("a process ended with %v, and not because the store has forgotten", err)
		}
	}
	if stopped == 0 {
		h.t.Error("no process was stopped")
	}
	h.cmds = nil
}

// restored accepts the store as it is.
func (h *herd) restored(margin int64) {
	h.t.Helper()
	st, err := open.URL(ctx, h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	defer st.Close()
	if _, err := sequence.Recover(ctx, st, margin, nil); err != nil {
		h.t.Fatal(err)
	}
}

// count is how many numbers are written down so far.
func (h *herd) count() (n int64) {
	for i := range h.files {
		if fi, err := os.Stat(filepath.Join(h.dir, strconv.Itoa(i+1))); err == nil {
			n += fi.Size() / 8
		}
	}
	return n
}

// check reads all numbers and compares them with each other and with what was
// granted.
func (h *herd) check(granted firn.ID) {
	h.t.Helper()
	seen := make([]bool, granted+1)
	repeats, read := 0, 0
	for i := range h.files {
		b, err := os.ReadFile(filepath.Join(h.dir, strconv.Itoa(i+1)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			h.t.Fatal(err)
		}
		for ; len(b) >= 8; b = b[8:] {
			id := binary.LittleEndian.Uint64(b)
			read++
			if id < 1 || id > uint64(granted) {
				h.t.Fatalf("%d was issued, and %d granted", id, granted)
			}
			if seen[id] {
				repeats++
			}
			seen[id] = true
		}
	}
	if repeats > 0 {
		h.t.Errorf("%d repeats", repeats)
	}
	h.t.Logf("%d numbers read, %d repeats; %d granted, %d never written down (%.2f %%)",
		read, repeats, granted, int(granted)-read, 100*float64(int(granted)-read)/float64(granted))
}

// TestDraw draws many numbers in many processes, kills some of them and the store
// on the way, and reads every number. make full has more of all.
func TestDraw(t *testing.T) {
	processes, each := 4, 25_000
	if testserver.Long() {
		processes, each = 32, 320_000 // 10 M
	}
	for _, kind := range []string{"sqlite", "postgres", "redis"} {
		t.Run(kind, func(t *testing.T) {
			h := &herd{t: t, dir: t.TempDir()}
			kill := func() {}
			options := sequence.Options{Cache: 1000}
			switch kind {
			case "sqlite":
				h.url = "sqlite:" + filepath.Join(h.dir, "ids.db")
			case "postgres":
				srv := testserver.Postgres(t)
				h.url = srv.URL()
				kill = func() {
					srv.Kill(t)
					time.Sleep(time.Second)
					srv.Start(t)
				}
			case "redis":
				options.MayRepeat = true
				srv := testserver.Redis(t, "--appendonly", "yes")
				h.url = srv.URL()
				kill = func() {
					srv.Kill(t)
					srv.Start(t)
					h.stopped() // another run of the server: everybody stops until it is accepted
					h.restored(200_000)
					h.start(processes, each)
				}
			}
			st, err := open.URL(ctx, h.url)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			if _, err := sequence.Create(ctx, st, "drawn", &options); err != nil {
				t.Fatal(err)
			}
			h.start(processes, each)
			whole := int64(processes * each)
			for _, part := range []int64{8, 4, 2} {
				for h.count() < whole/part {
					time.Sleep(20 * time.Millisecond)
				}
				kill()
				h.kill(max(processes/16, 1))
				h.start(max(processes/16, 1), each)
				if !testserver.Long() {
					break
				}
			}
			h.wait()
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			list, err := sequence.List(ctx, st)
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			h.check(list[0].Granted)
		})
	}
}

// TestStrictDraw measures what strict order costs, and that nobody starves. make full has more
// processes, and MariaDB too, of which store/mysql tests that it holds a record.
func TestStrictDraw(t *testing.T) {
	processes, each := 4, 25
	if testserver.Long() {
		processes, each = 64, 200
	}
	kinds := []string{"sqlite", "postgres", "mysql"} // those that can hold a record
	if only := os.Getenv("FIRN_STRICT_ON"); only != "" {
		kinds = strings.Split(only, ",")
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			if kind == "mysql" && len(kinds) > 1 {
				testserver.OnlyLong(t)
			}
			h := &herd{t: t, dir: t.TempDir(), mode: "strict"}
			h.url = "sqlite:" + filepath.Join(h.dir, "ids.db")
			switch kind {
			case "postgres":
				h.url = testserver.Postgres(t, "max_connections=300").URL()
			case "mysql":
				h.url = testserver.MariaDB(t, "--max-connections=300").URL()
			}
			st, err := open.URL(ctx, h.url)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			if _, err := sequence.Create(ctx, st, "drawn", &sequence.Options{Strict: true}); err != nil {
				t.Fatal(err)
			}
			h.start(processes, each)
			h.wait()
			h.checkStrict()
		})
	}
}

// A drawn number, when it was asked for and when it came.
type drawn struct{ id, began, came uint64 }

func (h *herd) checkStrict() {
	h.t.Helper()
	byID := map[uint64]drawn{}
	first, last := ^uint64(0), uint64(0)
	var waits []uint64
	for i := range h.files {
		b, err := os.ReadFile(filepath.Join(h.dir, strconv.Itoa(i+1)))
		if err != nil {
			h.t.Fatal(err)
		}
		for ; len(b) >= 24; b = b[24:] {
			d := drawn{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])}
			if _, twice := byID[d.id]; twice {
				h.t.Errorf("%d twice", d.id)
			}
			byID[d.id] = d
			first, last = min(first, d.began), max(last, d.came)
			waits = append(waits, d.came-d.began)
		}
	}
	// In the order of numbers, nobody began to ask before the latest of the lower
	// ones had come only if it came after: so keep the latest begin.
	begun := uint64(0)
	for id := uint64(1); id <= uint64(len(byID)); id++ {
		d, ok := byID[id]
		if !ok {
			h.t.Fatalf("there is a gap at %d of %d", id, len(byID))
		}
		if d.came < begun {
			h.t.Errorf("%d had come before one below it was asked for", id)
		}
		begun = max(begun, d.began)
	}
	slices.Sort(waits)
	at := func(p float64) time.Duration { return time.Duration(waits[int(p*float64(len(waits)-1))]) }
	elapsed := time.Duration(last - first)
	h.t.Logf("%d processes, %d numbers in %s: %.0f/s; waits: median %s, 99 %% %s, worst %s",
		h.files, len(byID), elapsed.Round(time.Millisecond), float64(len(byID))/elapsed.Seconds(), at(0.5), at(0.99), at(1))
	fair := time.Duration(float64(elapsed) / float64(len(byID)) * float64(h.files))
	if at(1) > 50*fair+5*time.Second {
		h.t.Errorf("a call waited %s, where all in turn would have waited %s each", at(1), fair)
	}
}

// forgotten is the exit code of a process whose store has forgotten.
const forgotten = 9

func report(err error) int {
	var forgot *store.ForgotError
	if errors.As(err, &forgot) {
		return forgotten
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "draw:", err)
		return 1
	}
	return 0
}
