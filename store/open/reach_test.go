package open_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// A name that nobody knows now may be known later: it is an error of the call, and
// not of the URL.
func TestUnknownName(t *testing.T) {
	for _, srv := range servers {
		t.Run(srv.name, func(t *testing.T) {
			t.Parallel()
			s, err := open.URL(t.Context(), srv.name+"://app:hunter2@no.such.host.invalid/1")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			begun := time.Now()
			_, err = s.Get(t.Context(), "k")
			if err == nil || errors.As(err, new(*open.URLError)) || strings.Contains(err.Error(), "hunter2") || time.Since(begun) > 30*time.Second {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
		})
	}
}

// Servers of ZooKeeper are known by their names, of which a certificate has one.
// Why there is no connection is told.
func TestZooKeeperNames(t *testing.T) {
	server := testserver.Shared(t, testserver.ZooKeeper)
	cert, key := certificate(t, "localhost")
	other, _ := certificate(t, "localhost")
	_, port, err := net.SplitHostPort(inTLS(t, server.Addr(), cert, key, cert))
	if err != nil {
		t.Fatal(err)
	}
	client := "&cert=" + cert + "&key=" + key
	for url, want := range map[string]string{
		"zks://localhost:" + port + "/1?cacert=" + cert + client:  "",
		"zks://127.0.0.1:" + port + "/1?cacert=" + cert + client:  "127.0.0.1",
		"zks://localhost:" + port + "/1?cacert=" + other + client: "certificate",
		"zks://" + server.Addr() + "/1?cacert=" + cert:            "no server answers",
		"zk://127.0.0.1:1/1": "refused",
	} {
		s, err := open.URL(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Put(t.Context(), string(store.NewVersion()), []byte(`1`), store.Condition{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", url, err)
		}
		s.Close()
	}
}

// A call ends with its ctx, although the login to etcd that it waits for does not.
func TestLoginGivenUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s, err := open.URL(t.Context(), "etcd://app:hunter2@"+l.Addr().String()+"?dial_timeout=30s")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err = s.Get(ctx, "k")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no server answers") || time.Since(begun) > 20*time.Second {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
}
