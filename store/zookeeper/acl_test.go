package zookeeper

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// as returns a Store of a user.
func as(t *testing.T, addr, root, digest string) *Store {
	return New(connect(t, addr), &Options{Root: root, Digest: digest})
}

// prepare makes a root as an administrator does, with these permissions for firn.
func prepare(t *testing.T, addr string, perms int32) (root string) {
	t.Helper()
	root = newRoot()
	admin := connect(t, addr)
	must(t, admin.AddAuth("digest", []byte("admin:a")))
	must(t, New(admin, nil).makeNode(t.Context(), root[:strings.LastIndexByte(root, '/')]))
	_, err := admin.Create(root, nil, 0, append(zk.DigestACL(zk.PermAll, "admin", "a"), zk.DigestACL(perms, "firn", "s3")...))
	must(t, err)
	return root
}

// The least that the root has to allow, as docs/reference/stores.md says, is enough for
// everything; less is not.
func TestLeastPrivilege(t *testing.T) {
	addr := server(t).Addr()
	root := prepare(t, addr, zk.PermCreate)
	s := as(t, addr, root, "firn:s3")
	r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)
	r, err = s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
	must(t, err)
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Error(got, err)
	}
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 1 {
		t.Error(l, err)
	}
	if _, err := s.Durability(t.Context()); err != nil {
		t.Error(err)
	}
	for name, digest := range map[string]string{"a wrong password": "firn:wrong", "nobody": ""} {
		s := as(t, addr, root, digest)
		_, getErr := s.Get(t.Context(), "k")
		_, putErr := s.Put(t.Context(), "k", []byte(`3`), store.Condition{Version: r.Version})
		for _, err := range []error{getErr, putErr} {
			if err == nil || !strings.Contains(err.Error(), "no permission") || strings.Contains(err.Error(), "wrong") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}

	root = prepare(t, addr, zk.PermRead|zk.PermWrite|zk.PermDelete)
	if _, err := as(t, addr, root, "firn:s3").Put(t.Context(), "k", []byte(`1`), store.Condition{}); err == nil || !strings.Contains(err.Error(), "no permission") {
		t.Errorf("without the right to create: %v", err)
	}
}

// The store is made by an administrator, and used by one who may not make it.
func TestInitByAnother(t *testing.T) {
	addr := server(t).Addr()
	root := newRoot()
	admin := connect(t, addr)
	must(t, admin.AddAuth("digest", []byte("admin:a")))
	must(t, New(admin, nil).makeNode(t.Context(), root[:strings.LastIndexByte(root, '/')])) // for all tests
	acl := append(zk.DigestACL(zk.PermAll, "admin", "a"), zk.DigestACL(zk.PermCreate|zk.PermRead, "firn", "s3")...)
	if made, err := New(admin, &Options{Root: root, ACL: acl}).Init(t.Context()); err != nil || !made {
		t.Fatal(made, err)
	}
	s := as(t, addr, root, "firn:s3")
	r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)
	_, err = s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
	must(t, err)
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 1 {
		t.Error(l, err)
	}
	if err := s.conn.Delete(*s.home.Load()+"/k", -1); err == nil {
		t.Error("firn could remove a record")
	}
}

// The credentials get there although the server was away when they were first
// sent, and again after the connection was lost.
func TestDigestArrives(t *testing.T) {
	addr := server(t).Addr()
	root := prepare(t, addr, zk.PermCreate)
	p := testserver.NewProxy(t, addr)
	p.Refuse(true)
	s := as(t, p.Addr(), root, "firn:s3")
	if _, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{}); err == nil || !strings.Contains(err.Error(), "no server answers") {
		t.Fatal(err)
	}
	p.Refuse(false)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // the client pauses between attempts
		if _, err := s.Get(t.Context(), "k"); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)
	p.Cut()
	comesBack(t, s, r)
}
