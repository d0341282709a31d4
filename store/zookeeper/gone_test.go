package zookeeper

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store"
)

// forgot requires the error of a store that forgot, of every call.
func forgot(t *testing.T, s *Store, what string, last store.Record) {
	t.Helper()
	_, getErr := s.Get(t.Context(), last.Key)
	_, putErr := s.Put(t.Context(), last.Key, []byte(`9`), store.Condition{Version: last.Version})
	_, newErr := s.Put(t.Context(), "another", []byte(`9`), store.Condition{})
	_, listErr := s.List(t.Context(), "")
	_, promiseErr := s.Durability(t.Context())
	for call, err := range map[string]error{"Get": getErr, "Put": putErr, "create": newErr, "List": listErr, "Durability": promiseErr} {
		var f *store.ForgotError
		if !errors.As(err, &f) {
			t.Errorf("%s: %s: %v, not that the store forgot", what, call, err)
		}
	}
}

// remove removes a node and all below.
func remove(t *testing.T, conn *zk.Conn, path string) {
	t.Helper()
	names, _, err := conn.Children(path)
	must(t, err)
	for _, name := range names {
		remove(t, conn, path+"/"+name)
	}
	must(t, conn.Delete(path, -1))
}

// A store that was removed is not made again by one who has seen it, and what is
// made by another is not taken for it: whichever call comes first.
func TestRemoved(t *testing.T) {
	addr := server(t).Addr()
	conn := connect(t, addr)
	for name, first := range map[string]func(*Store, store.Record) error{
		"Get": func(s *Store, r store.Record) error { _, err := s.Get(t.Context(), r.Key); return err },
		"Put": func(s *Store, r store.Record) error {
			_, err := s.Put(t.Context(), r.Key, []byte(`2`), store.Condition{Version: r.Version})
			return err
		},
		"create": func(s *Store, _ store.Record) error {
			_, err := s.Put(t.Context(), "new", []byte(`2`), store.Condition{})
			return err
		},
		"List":       func(s *Store, _ store.Record) error { _, err := s.List(t.Context(), ""); return err },
		"Durability": func(s *Store, _ store.Record) error { _, err := s.Durability(t.Context()); return err },
	} {
		for _, again := range []bool{false, true} {
			root := newRoot()
			s := open(t, addr, root)
			r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
			must(t, err)
			remove(t, conn, root)
			if again {
				_, err := open(t, addr, root).Put(t.Context(), "k", []byte(`1`), store.Condition{})
				must(t, err)
			}
			var f *store.ForgotError
			if err := first(s, r); !errors.As(err, &f) {
				t.Errorf("%s first, made again %t: %v", name, again, err)
			}
			forgot(t, s, name, r)
			if there, _, err := conn.Exists(root); err != nil || there != again {
				t.Errorf("%s, made again %t: there %t, %v", name, again, there, err)
			}
		}
	}
}

// A record that vanishes while its name is known was forgotten.
func TestRecordRemoved(t *testing.T) {
	addr := server(t).Addr()
	s := open(t, addr, newRoot())
	r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)
	if _, err := steady(t.Context(), s, func(home string) ([]store.Record, error) {
		return s.readAll(t.Context(), home, []string{"k", "never"})
	}); !errors.As(err, new(*store.ForgotError)) {
		t.Errorf("a listed record that is gone: %v", err)
	}
	forgot(t, s, "record", r)
}

// Looking makes nothing, and Init makes what the first Put would.
func TestInit(t *testing.T) {
	addr := server(t).Addr()
	root := newRoot()
	s, conn := open(t, addr, root), connect(t, addr)
	if _, err := s.Get(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 0 {
		t.Error(l, err)
	}
	if _, err := s.Durability(t.Context()); err != nil {
		t.Error(err)
	}
	if there, _, err := conn.Exists(root); err != nil || there {
		t.Errorf("made by looking: %v", err)
	}
	for i, want := range []bool{true, false} {
		if made, err := s.Init(t.Context()); err != nil || made != want {
			t.Errorf("Init %d: %t, %v", i, made, err)
		}
	}
	if _, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{}); err != nil {
		t.Error(err)
	}
}

// What is not firn's is refused, and left as it is.
func TestForeign(t *testing.T) {
	addr := server(t).Addr()
	conn := connect(t, addr)
	for data, want := range map[string]string{
		"":        "was not made by firn",
		"hello":   "was not made by firn",
		`{"v":1}`: "was not made by firn",
		`{"v":2,"id":"0123456789abcdef0123456789abcdef"}`: "by a later firn: format 2",
	} {
		root := newRoot()
		s := open(t, addr, root)
		must(t, s.makeNode(t.Context(), root))
		_, err := conn.Create(root+"/store", []byte(data), 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		if _, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", data, err)
		}
		if got, _, err := conn.Get(root + "/store"); err != nil || string(got) != data {
			t.Errorf("%q became %q, %v", data, got, err)
		}
	}
	s := open(t, addr, newRoot())
	_, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)
	_, err = conn.Set(*s.home.Load()+"/k", []byte("mine"), -1)
	must(t, err)
	if _, err := s.Get(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "node k was not written by firn") {
		t.Error(err)
	}
	_, err = conn.Create(*s.home.Load()+"/a%2Fb", nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	if l, err := s.List(t.Context(), "a"); err != nil || len(l) != 0 {
		t.Errorf("a node of no key is listed: %v, %v", l, err)
	}
}

func TestNodeNames(t *testing.T) {
	for key, want := range map[string]string{
		"pool/web/worker/7": "pool:web:worker:7", "a:b": "a%3Ab", "a%b": "a%25b", "a%3Ab": "a%253Ab", ".": "%2E", "..": "%2E%2E", "...": "...", "/": ":",
	} {
		name := nodeName(key)
		if back, ok := keyOf(name); name != want || !ok || back != key {
			t.Errorf("%s: %s, back %s %t", key, name, back, ok)
		}
	}
	for _, name := range []string{"", "%2F", "%41", "a b", "%zz", "%"} {
		if key, ok := keyOf(name); ok {
			t.Errorf("node %q is taken for %q", name, key)
		}
	}
}
