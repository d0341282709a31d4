package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// fails requires that calls fail, not as conflicts, with an error that says want.
func fails(t *testing.T, s *Store, last store.Record, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // less than a connection lasts that is silent
	defer cancel()
	begun := time.Now()
	_, getErr := s.Get(ctx, last.Key)
	_, putErr := s.Put(ctx, last.Key, []byte(`"away"`), store.Condition{Version: last.Version})
	for call, err := range map[string]error{"Get": getErr, "Put": putErr} {
		if err == nil || errors.Is(err, store.ErrConflict) || errors.As(err, new(*store.ForgotError)) || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: %v, not %q", call, err, want)
		}
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("that took %s", took)
	}
}

// comesBack requires that the store works again by itself, and has the record or
// what a failed Put made of it.
func comesBack(t *testing.T, s *Store, last store.Record, tried ...store.Version) store.Record {
	t.Helper()
	tried = append(tried, last.Version)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		r, err := s.Get(ctx, last.Key)
		if err == nil && !slices.Contains(tried, r.Version) && string(r.Value) != `"away"` {
			t.Fatalf("the store has %+v, not %+v", r, last)
		}
		if err == nil {
			r, err = s.Put(ctx, last.Key, []byte(`1`), store.Condition{Version: r.Version})
			tried = append(tried, r.Version)
		}
		cancel()
		if err == nil {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("not back within a minute: %v", err)
		}
	}
}

// Away: what is seen of a server that is not there, and that all is well when it is.
func TestAway(t *testing.T) {
	t.Parallel()
	srv := testserver.ZooKeeper(t)
	p := testserver.NewProxy(t, srv.Addr())
	s := open(t, p.Addr(), newRoot())
	r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)

	p.Refuse(true)
	p.Cut()
	fails(t, s, r, "connection was lost|no server answers")
	fails(t, s, r, "no server answers")
	p.Refuse(false)
	r = comesBack(t, s, r)

	p.Cut()
	r = comesBack(t, s, r)

	p.Hang(true)
	fails(t, s, r, "no answer in time|connection was lost|no server answers")
	p.Cut()
	p.Hang(false)
	r = comesBack(t, s, r)

	srv.Freeze(t)
	fails(t, s, r, "no answer in time|connection was lost|no server answers")
	srv.Thaw(t)
	r = comesBack(t, s, r)

	srv.Kill(t)
	fails(t, s, r, "connection was lost|no server answers")
	srv.Start(t)
	r = comesBack(t, s, r)

	srv.Stop(t)
	fails(t, s, r, "connection was lost|no server answers")
	srv.Start(t)
	comesBack(t, s, r)
}

// A session that expired is followed by another.
func TestExpired(t *testing.T) {
	t.Parallel()
	srv := testserver.ZooKeeper(t)
	p := testserver.NewProxy(t, srv.Addr())
	conn, _, err := zk.Connect([]string{p.Addr()}, 500*time.Millisecond, zk.WithLogger(silent{}))
	must(t, err)
	t.Cleanup(conn.Close)
	s := New(conn, &Options{Root: newRoot()})
	r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)
	expire(t, p, conn)
	comesBack(t, s, r)
}

// expire keeps a client away for longer than its session lasts.
func expire(t *testing.T, p *testserver.Proxy, conn *zk.Conn) {
	t.Helper()
	session := conn.SessionID()
	for away := 1500 * time.Millisecond; away < 30*time.Second; away *= 2 { // a busy server may notice later
		p.Refuse(true)
		p.Cut()
		time.Sleep(away)
		p.Refuse(false)
		for deadline := time.Now().Add(20 * time.Second); conn.State() != zk.StateHasSession; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no session")
			}
		}
		if conn.SessionID() != session {
			return
		}
	}
	t.Fatal("the session does not expire")
}

// A Put whose reply is lost is not acknowledged, is carried out once, and its
// Version is known for one's own.
func TestLostReply(t *testing.T) {
	p := testserver.NewProxy(t, server(t).Addr())
	s := open(t, p.Addr(), newRoot())
	r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)
	p.LoseReplies(1)
	tried, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
	if err == nil || errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "the connection was lost") {
		t.Fatalf("a lost reply: %v", err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		got, err := s.Get(t.Context(), "k")
		if err == nil && got.Version == tried.Version && string(got.Value) == "2" {
			return
		}
		if err == nil && got.Version != r.Version || time.Now().After(deadline) {
			t.Fatalf("the store has %+v, %v", got, err)
		}
	}
}

// The connection is closed: calls fail and leave nothing behind.
func TestClosed(t *testing.T) {
	conn, _, err := zk.Connect([]string{server(t).Addr()}, 4*time.Second, zk.WithLogger(silent{}))
	must(t, err)
	s := New(conn, &Options{Root: newRoot()})
	_, err = s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)
	conn.Close()
	if _, err := s.Get(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Error(err)
	}
}

// A server that hangs collects inFlight requests, and no more goroutines.
func TestHangingIsBounded(t *testing.T) {
	p := testserver.NewProxy(t, server(t).Addr())
	s := open(t, p.Addr(), newRoot())
	r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)
	p.Hang(true)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	done := make(chan error, 3*inFlight)
	for range 3 * inFlight {
		go func() {
			_, err := s.Put(ctx, "k", []byte(`2`), store.Condition{Version: r.Version})
			done <- err
		}()
	}
	waited := 0
	for range 3 * inFlight {
		if err := <-done; strings.Contains(err.Error(), "requests wait for an answer") {
			waited++
		}
	}
	if waited != 2*inFlight {
		t.Errorf("%d of %d calls waited for a slot", waited, 3*inFlight)
	}
	p.Hang(false)
	p.Cut()
	for deadline := time.Now().Add(20 * time.Second); ; {
		if _, err := s.Get(t.Context(), "k"); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// A server that was put back to an earlier snapshot is refused by the client
// itself: no handle that has seen more goes on, and no Version of then counts.
func TestSnapshotRestored(t *testing.T) {
	t.Parallel()
	srv := testserver.ZooKeeper(t)
	data := filepath.Join(srv.Home(), "data")
	root := newRoot()
	s := open(t, srv.Addr(), root)
	first, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)
	srv.Stop(t)
	backup := filepath.Join(t.TempDir(), "backup")
	must(t, os.CopyFS(backup, os.DirFS(data)))
	srv.Start(t)
	lost := comesBack(t, s, first)
	for i := range 20 {
		lost, err = s.Put(t.Context(), "k", fmt.Append(nil, i), store.Condition{Version: lost.Version})
		must(t, err)
	}

	srv.Stop(t)
	restoreDir(t, backup, data)
	srv.Start(t)
	fails(t, s, lost, "connection was lost|no server answers")

	other := open(t, srv.Addr(), root)
	r, err := other.Get(t.Context(), "k")
	must(t, err)
	if r.Version != first.Version {
		t.Fatalf("the backup has %+v, not %+v", r, first)
	}
	for range 20 { // as many writes as were lost, so that every count is as before
		r, err = other.Put(t.Context(), "k", []byte(`1`), store.Condition{Version: r.Version})
		must(t, err)
	}
	if _, err := other.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: lost.Version}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a lost Version: %v", err)
	}
}

// restoreDir makes what is in to equal to from, with the owner of to.
func restoreDir(t *testing.T, from, to string) {
	t.Helper()
	must(t, filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(to, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(filepath.Join(from, rel))
		if errors.Is(err, fs.ErrNotExist) {
			return os.Remove(path)
		}
		if err != nil {
			return err
		}
		return os.WriteFile(path, content, 0o600)
	}))
}
