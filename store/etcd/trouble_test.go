package etcd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// eventually waits until ok, at most 30 seconds.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not within 30 s: %s", what)
		}
	}
}

// put writes what must be written.
func put(t *testing.T, s *Store, value string, v store.Version) store.Record {
	t.Helper()
	r, err := s.Put(t.Context(), "k", []byte(value), store.Condition{Version: v})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// worse requires that a Put and a Get say what is the matter, within 5 seconds,
// and returns what the Put tried.
func worse(t *testing.T, s *Store, on store.Version, says string, reads bool) store.Version {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	tried, err := s.Put(ctx, "k", []byte(`2`), store.Condition{Version: on})
	// The first to notice may have had a connection that ended under it.
	for try := 0; try < 10 && tried.Version == "" && !strings.Contains(err.Error(), says); try++ {
		time.Sleep(200 * time.Millisecond)
		tried, err = s.Put(ctx, "k", []byte(`2`), store.Condition{Version: on})
	}
	if err == nil || errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), says) {
		t.Errorf("Put: %v; it should say %q", err, says)
	}
	t.Log(err)
	if _, err := s.Get(ctx, "k"); reads != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("Get: %v; it should say %q", err, says)
	}
	return tried.Version
}

// better requires that all works again, and that the record is one of those. What
// was tried may be carried out after it was read, so each Put follows a Get.
func better(t *testing.T, s *Store, versions ...store.Version) {
	t.Helper()
	eventually(t, "it can be read and written", func() bool {
		got, err := s.Get(t.Context(), "k")
		if err != nil {
			return false
		}
		if !slices.Contains(versions, got.Version) {
			t.Fatalf("the store has %+v", got)
		}
		r, err := s.Put(t.Context(), "k", []byte(`3`), store.Condition{Version: got.Version})
		if r.Version != "" {
			versions = append(versions, r.Version)
		}
		return err == nil
	})
}

func TestAway(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		begin, end func(*testserver.Server, testing.TB)
		says       string
	}{
		{"stopped", (*testserver.Server).Stop, (*testserver.Server).Start, "cannot be reached"},
		{"killed", (*testserver.Server).Kill, (*testserver.Server).Start, "cannot be reached"},
		{"frozen", (*testserver.Server).Freeze, (*testserver.Server).Thaw, "has not answered in time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := testserver.Etcd(t)
			s := New(client(t, server.Addr()), nil)
			r := put(t, s, `1`, "")
			tt.begin(server, t)
			if tt.name != "frozen" {
				// The first to notice has a connection that ends under it.
				s.Put(t.Context(), "other", nil, store.Condition{})
			}
			tried := worse(t, s, r.Version, tt.says, false)
			tt.end(server, t)
			better(t, s, r.Version, tried)
		})
	}
}

func TestNoLeader(t *testing.T) {
	t.Parallel()
	c := testserver.EtcdCluster(t, 3)
	leader := c.Leader(t)
	var addrs []string
	var others []*testserver.Server
	for _, m := range c.Members {
		addrs = append(addrs, m.Addr())
		if m != leader {
			others = append(others, m)
		}
	}
	s := New(client(t, addrs...), nil)
	r := put(t, s, `1`, "")
	leader.Kill(t)
	better(t, s, r.Version) // two of three are enough
	r, err := s.Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	others[0].Kill(t)
	alone := New(client(t, others[1].Addr()), nil)
	tried := worse(t, alone, r.Version, "", false)
	leader.Start(t)
	better(t, s, r.Version, tried)
}

func TestNoSpace(t *testing.T) {
	server := testserver.Etcd(t, "--quota-backend-bytes", "1000000")
	c := client(t, server.Addr())
	s := New(c, nil)
	r := put(t, s, `1`, "")
	large := []byte(`"` + strings.Repeat("x", store.MaxValue-2) + `"`)
	// The first Put that is refused is too large for what is left; smaller ones are
	// refused from when the members have agreed on the alarm.
	i := 0
	eventually(t, "the alarm is raised", func() bool {
		i++
		s.Put(t.Context(), "large/"+strconv.Itoa(i), large, store.Condition{})
		list, err := c.AlarmList(t.Context())
		return err == nil && len(list.Alarms) > 0
	})
	worse(t, s, r.Version, "database is full", true)
	resp, err := c.Delete(t.Context(), s.prefix+"large/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(t.Context(), resp.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Defragment(t.Context(), server.Addr()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	better(t, s, r.Version)
}

// TestPrivileges has a user with what is documented, and takes it away.
func TestPrivileges(t *testing.T) {
	server := testserver.Etcd(t)
	root := client(t, server.Addr())
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(root.UserAdd(ctx, "root", "root"))
	must(root.UserGrantRole(ctx, "root", "root"))
	must(root.RoleAdd(ctx, "firn"))
	must(root.RoleGrantPermission(ctx, "firn", DefaultPrefix, clientv3.GetPrefixRangeEnd(DefaultPrefix), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(root.UserAdd(ctx, "app", "secret"))
	must(root.UserGrantRole(ctx, "app", "firn"))
	stranger := New(root, nil)
	must(root.AuthEnable(ctx))

	if _, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, Username: "app", Password: "wrong", Logger: zap.NewNop()}); err == nil {
		t.Error("a wrong password is accepted")
	}
	if _, err := stranger.Get(ctx, "k"); err == nil || !strings.Contains(err.Error(), "none was given") {
		t.Errorf("without a login: %v", err)
	}
	c := clientOf(t, clientv3.Config{Endpoints: []string{server.Addr()}, Username: "app", Password: "secret"})
	s := New(c, nil)
	r := put(t, s, `1`, "")
	if l, err := s.List(ctx, ""); err != nil || len(l) != 1 {
		t.Errorf("List: %v, %v", l, err)
	}
	if p, err := s.Durability(ctx); err != nil || !strings.Contains(p.Why, "a single member") {
		t.Errorf("Durability: %+v, %v", p, err)
	}
	if _, err := c.Get(ctx, "other"); err == nil {
		t.Error("this user may read anything")
	}
	admin := clientOf(t, clientv3.Config{Endpoints: []string{server.Addr()}, Username: "root", Password: "root"})
	must(admin.UserRevokeRole(ctx, "app", "firn"))
	worse(t, s, r.Version, "may not do that", false)
	must(admin.UserGrantRole(ctx, "app", "firn"))
	better(t, s, r.Version)
}

// TestSentOnce loses the reply of a Put, and has one end as "canceled", after
// which the client would send it again.
func TestSentOnce(t *testing.T) {
	server := testserver.Etcd(t)
	p := testserver.NewProxy(t, server.Addr())
	var cancel atomic.Bool
	s := New(clientOf(t, clientv3.Config{
		Endpoints: []string{p.Addr()},
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(
			// As a proxy between: what it has carried out it says was canceled.
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				err := invoke(ctx, method, req, reply, cc, opts...)
				if cancel.CompareAndSwap(true, false) {
					return status.Error(codes.Canceled, "by the proxy")
				}
				return err
			},
		)},
	}), nil)
	r := put(t, s, `1`, "")
	for name, lose := range map[string]func(){
		"reply lost": func() { p.LoseReplies(1) },
		"canceled":   func() { cancel.Store(true) },
	} {
		// What the proxy loses may be a frame that comes before the request, and what
		// was sent may be carried out after it was looked for.
		before, tries := txns(t, server), 0
		var tried []store.Version
		for ; tries < 20 && !slices.Contains(tried, r.Version); tries++ {
			lose()
			put, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
			if err == nil || errors.Is(err, store.ErrConflict) && tries == 0 {
				t.Errorf("%s: Put: %+v, %v", name, put, err)
			}
			if put.Version != "" {
				tried = append(tried, put.Version)
			}
			eventually(t, "it can be read", func() bool {
				r, err = s.Get(t.Context(), "k")
				return err == nil
			})
		}
		if !slices.Contains(tried, r.Version) {
			t.Errorf("%s: no Put was carried out", name)
		}
		if sent := txns(t, server) - before; sent > tries {
			t.Errorf("%s: %d Puts were sent %d times", name, tries, sent)
		}
	}
	before := requests(t, server)
	for range 5 {
		s.Get(t.Context(), "k")
		s.List(t.Context(), "")
		s.Put(t.Context(), "k", nil, store.Condition{})
	}
	if n := requests(t, server) - before; n != 15 {
		t.Errorf("15 calls are %d requests", n)
	}
}

func txns(t *testing.T, s *testserver.Server) int     { return handled(t, s, `grpc_method="Txn"`) }
func requests(t *testing.T, s *testserver.Server) int { return handled(t, s, `grpc_type="unary"`) }

// handled adds up what the server says it has handled.
func handled(t *testing.T, s *testserver.Server, label string) (n int) {
	t.Helper()
	defer http.DefaultClient.CloseIdleConnections()
	resp, err := http.Get("http://" + s.Addr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^grpc_server_started_total\{(.*)\} (\d+)$`).FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], label) {
			k, _ := strconv.Atoi(m[2])
			n += k
		}
	}
	return n
}

// TestForgot brings an old state of a cluster back, and another cluster.
func TestForgot(t *testing.T) {
	t.Parallel()
	server := testserver.Etcd(t)
	dir := regexp.MustCompile(`[^"]*/home/data`).FindString(server.Log())
	p := testserver.NewProxy(t, server.Addr())
	s := New(client(t, server.Addr()), nil)
	moved := New(client(t, p.Addr()), nil)
	r := put(t, s, `1`, "")
	if _, err := moved.Get(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	other := testserver.Etcd(t)
	p.Target(other.Addr())
	p.Cut()
	forgot(t, moved, "this is cluster")

	server.Stop(t)
	run(t, "cp", "-a", dir, dir+".old")
	server.Start(t)
	eventually(t, "it is back", func() bool { _, err := s.Get(t.Context(), "k"); return err == nil })
	for i := range 3 {
		r = put(t, s, strconv.Itoa(i), r.Version)
	}
	server.Stop(t)
	run(t, "rm", "-r", dir)
	run(t, "mv", dir+".old", dir)
	server.Start(t)
	forgot(t, s, "it is at revision")
	if got, err := New(client(t, server.Addr()), nil).Get(t.Context(), "k"); err != nil || string(got.Value) != `1` {
		t.Errorf("whoever comes later has %+v, %v", got, err)
	}
}

func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
}

// forgot requires that all calls end with a ForgotError, once the server answers.
func forgot(t *testing.T, s *Store, what string) {
	t.Helper()
	var f *store.ForgotError
	eventually(t, "it answers", func() bool {
		_, err := s.Get(t.Context(), "k")
		return err == nil || errors.As(err, &f)
	})
	_, get := s.Get(t.Context(), "k")
	_, put := s.Put(t.Context(), "new", []byte(`1`), store.Condition{})
	_, list := s.List(t.Context(), "")
	_, durability := s.Durability(t.Context())
	for _, err := range []error{get, put, list, durability} {
		if !errors.As(err, &f) || !strings.Contains(f.What, what) || f.Store == "" {
			t.Errorf("%v; it should say %q", err, what)
		}
	}
}

// TestIdentity: a store says of which cluster it is, so that a pool that was made in another
// one is noticed.
func TestIdentity(t *testing.T) {
	identity := func(server *testserver.Server, o *Options) string {
		t.Helper()
		p, err := New(client(t, server.Addr()), o).Durability(t.Context())
		if err != nil || p.Identity == "" || p.Identity != p.Instance {
			t.Fatalf("%+v, %v", p, err)
		}
		return p.Identity
	}
	one, other := testserver.Etcd(t), testserver.Etcd(t)
	if a, b := identity(one, nil), identity(one, newPrefix()); a != b {
		t.Errorf("one cluster is %s and %s", a, b)
	}
	if a, b := identity(one, nil), identity(other, nil); a == b {
		t.Errorf("two clusters are %s", a)
	}
}
