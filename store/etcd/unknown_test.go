package etcd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestNoSpaceWritten fills a database with many Puts at once. A member looks
// whether there is room before it sends a write around, and again when it carries
// it out: it then says that there is none, and has written.
//
// Whether one falls between the two is chance, so it may take some databases.
func TestNoSpaceWritten(t *testing.T) {
	for range 8 {
		if failed, written := fill(t); written > 0 {
			t.Logf("%d Puts failed, of which %d were carried out", failed, written)
			return
		}
	}
	t.Error("no Put that failed was carried out: this shows nothing")
}

// fill fills a database, and returns how many Puts failed, and how many of these were
// carried out.
func fill(t *testing.T) (_, written int) {
	server := testserver.Etcd(t, "--quota-backend-bytes", "4000000")
	s := New(client(t, server.Addr()), nil)
	large := []byte(`"` + strings.Repeat("x", store.MaxValue-2) + `"`)
	var mu sync.Mutex
	failed := make(map[string]store.Version) // by key: what was tried, as far as told
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			for i := range 10 {
				key := fmt.Sprintf("large/%d/%d", w, i)
				if r, err := s.Put(t.Context(), key, large, store.Condition{}); err != nil {
					mu.Lock()
					failed[key] = r.Version
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	list, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if tried, ok := failed[r.Key]; ok {
			written++
			if tried != r.Version {
				t.Errorf("%s has %q; its Put failed, and told %q", r.Key, r.Version, tried)
			}
		}
	}
	return len(failed), written
}

// TestClientClosed closes the client while a Put is on its way.
func TestClientClosed(t *testing.T) {
	t.Parallel()
	server := testserver.Etcd(t)
	p := testserver.NewProxy(t, server.Addr())
	c := client(t, p.Addr())
	s := New(c, nil)
	if _, err := s.Get(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	p.Delay(2 * time.Second) // the reply comes as long after the write
	var tried store.Record
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		tried, err = s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	}()
	other := New(client(t, server.Addr()), nil)
	var got store.Record
	eventually(t, "it is written", func() bool {
		got, _ = other.Get(t.Context(), "k")
		return got.Version != ""
	})
	c.Close()
	<-done
	if err == nil || tried.Version != got.Version {
		t.Errorf("tried %q, %v; the store has %q", tried.Version, err, got.Version)
	}
	tried, err = s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: got.Version})
	if err == nil || tried.Version != "" || !strings.Contains(err.Error(), "the client is closed") {
		t.Errorf("%+v, %v", tried, err)
	}
	if p, err := s.Durability(t.Context()); err == nil {
		t.Errorf("Durability: %+v", p)
	}
}

// TestUsersChanged has etcd refuse the client's login, as it was before a user was
// added: the client logs in again, and the Put that noticed is carried out.
func TestUsersChanged(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	// The server may run under another account.
	for _, dir := range []string{filepath.Dir(key), filepath.Dir(filepath.Dir(key))} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(key, []byte(store.NewVersion()), 0o644); err != nil {
		t.Fatal(err)
	}
	// Logins of this kind know the state of the users.
	server := testserver.Etcd(t, "--auth-token", "jwt,sign-method=HS256,priv-key="+key)
	root := client(t, server.Addr())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(root.UserAdd(ctx, "root", "root"))
	must(root.UserGrantRole(ctx, "root", "root"))
	must(root.AuthEnable(ctx))
	login := clientv3.Config{Endpoints: []string{server.Addr()}, Username: "root", Password: "root"}
	s, admin := New(clientOf(t, login), nil), clientOf(t, login)
	r := put(t, s, `1`, "")
	must(admin.UserAdd(ctx, "other", "other"))
	before := txns(t, server)
	next, err := s.Put(ctx, "k", []byte(`2`), store.Condition{Version: r.Version})
	if err != nil {
		t.Errorf("%+v, %v", next, err)
	}
	if n := txns(t, server) - before; n != 2 {
		t.Errorf("the server has got it %d times; it should refuse the first", n)
	}
	if got, err := s.Get(ctx, "k"); err != nil || got.Version != next.Version {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCorrupt(t *testing.T) {
	server := testserver.Etcd(t)
	c := client(t, server.Addr())
	s := New(c, nil)
	r := put(t, s, `1`, "")
	status, err := c.Status(t.Context(), server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	alarm := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: status.Header.MemberId, Alarm: pb.AlarmType_CORRUPT}
	if _, err := pb.NewMaintenanceClient(c.ActiveConnection()).Alarm(t.Context(), alarm); err != nil {
		t.Fatal(err)
	}
	worse(t, s, r.Version, "corrupt", true)
	if p, err := s.Durability(t.Context()); err == nil || !strings.Contains(err.Error(), "corrupt") {
		t.Errorf("Durability: %+v, %v", p, err)
	}
}

// TestSaid has errors as members and the client give them while a leader changes.
func TestSaid(t *testing.T) {
	s := New(client(t, "127.0.0.1:1"), nil)
	for _, tt := range []struct {
		err  error
		says string
	}{
		{status.Error(codes.Unknown, "raft proposal dropped"), "has changed its leader"},
		{status.Error(codes.Unknown, "context deadline exceeded"), "has not answered in time"},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), "has not answered in time"},
	} {
		if got := s.explain(t.Context(), tt.err).Error(); !strings.Contains(got, tt.says) {
			t.Errorf("%v; it should say %q", got, tt.says)
		}
		if refused(tt.err) {
			t.Errorf("%v may have been carried out", tt.err)
		}
	}
}
