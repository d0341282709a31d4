package zookeeper

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store"
)

// Where the records are. ROOT/store names the id of the store, and is made in one
// multi with the records' parent, ROOT/store/ID, by exactly one of those who try.

// A card is the data of ROOT/store.
type card struct {
	V  int    `json:"v"`
	ID string `json:"id"`
}

const format = 1

// cardPath is the path of the node that names the store.
func (s *Store) cardPath() string { return s.root + "/store" }

// settle returns the path of the records' parent, "" if there is no store yet,
// when this session has caught up with everything acknowledged before the call.
func (s *Store) settle(ctx context.Context) (home string, err error) {
	if f := s.forgot.Load(); f != nil {
		return "", f
	}
	if err := s.identify(ctx); err != nil {
		return "", err
	}
	known := s.home.Load()
	path := s.cardPath()
	if known != nil {
		path = *known
	}
	_, _, err = call(ctx, s, func() ([]zk.MultiResponse, error) {
		return s.conn.Multi(&zk.CheckVersionRequest{Path: path, Version: anyVersion})
	})
	switch {
	case errors.Is(err, zk.ErrNoNode) && known != nil:
		return "", s.forget()
	case errors.Is(err, zk.ErrNoNode):
		return "", nil
	case err != nil:
		return "", s.explain(err)
	case known != nil:
		return *known, nil
	}
	return s.find(ctx)
}

// errGone: what was there a moment ago is not.
var errGone = errors.New("a node is gone")

// steady calls f with what settle returns, until one session has answered it all.
// The next one may be with a server that lags behind the one before: what it says
// may be old, and what it lacks is not gone.
func steady[T any](ctx context.Context, s *Store, f func(home string) (T, error)) (T, error) {
	var none T
	for range 3 {
		session := s.conn.SessionID()
		home, err := s.settle(ctx)
		if err != nil {
			return none, err
		}
		switch value, err := f(home); {
		case err != nil && err != errGone:
			return none, err
		case s.conn.SessionID() != session:
		case err != nil:
			return none, s.forget()
		default:
			return value, nil
		}
	}
	return none, s.explain(zk.ErrSessionExpired)
}

// identify sends the digest, once. The connection sends it again whenever it
// begins anew.
func (s *Store) identify(ctx context.Context) error {
	var sent bool
	select {
	case sent = <-s.login:
	case <-ctx.Done():
		return s.explain(ctx.Err())
	}
	defer func() { s.login <- sent }()
	if sent {
		return nil
	}
	_, _, err := call(ctx, s, func() (any, error) { return nil, s.conn.AddAuth("digest", []byte(s.digest)) })
	sent = err == nil
	return s.explain(err)
}

// find reads which store it is, and remembers that.
func (s *Store) find(ctx context.Context) (home string, err error) {
	data, _, err := call(ctx, s, func() ([]byte, error) {
		data, _, err := s.conn.Get(s.cardPath())
		return data, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return "", nil
	case err != nil:
		return "", s.explain(err)
	}
	var c card
	switch err := json.Unmarshal(data, &c); {
	case err != nil || c.V < 1 || !isVersion(store.Version(c.ID)):
		return "", s.explain(fmt.Errorf("node %s was not made by firn", s.cardPath()))
	case c.V > format:
		return "", s.explain(fmt.Errorf("node %s was made by a later firn: format %d, and this one knows %d", s.cardPath(), c.V, format))
	}
	home = s.cardPath() + "/" + c.ID
	if !s.home.CompareAndSwap(nil, &home) && *s.home.Load() != home {
		return "", s.forget()
	}
	return home, nil
}

// made returns the path of the records' parent, and makes the store if there was
// none and this Store has never seen one.
func (s *Store) made(ctx context.Context) (home string, err error) {
	if f := s.forgot.Load(); f != nil {
		return "", f
	}
	if known := s.home.Load(); known != nil {
		return *known, nil
	}
	for range 3 { // somebody else may come first
		home, err = s.settle(ctx)
		if err != nil || home != "" {
			return home, err
		}
		if err := s.make(ctx); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return "", s.explain(err)
		}
	}
	return "", s.explain(fmt.Errorf("node %s comes and goes", s.cardPath()))
}

// Init makes the store if there is none, as the first Put would. It returns
// whether it did.
func (s *Store) Init(ctx context.Context) (made bool, err error) {
	home, err := s.settle(ctx)
	if err != nil || home != "" {
		return false, err
	}
	_, err = s.made(ctx)
	return err == nil, err
}

func (s *Store) make(ctx context.Context) error {
	if err := s.makeNode(ctx, s.root); err != nil {
		return err
	}
	var id [16]byte
	rand.Read(id[:])
	c := card{V: format, ID: hex.EncodeToString(id[:])}
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, _, err = call(ctx, s, func() ([]zk.MultiResponse, error) {
		return s.conn.Multi(
			&zk.CreateRequest{Path: s.cardPath(), Data: data, Acl: s.acl},
			&zk.CreateRequest{Path: s.cardPath() + "/" + c.ID, Acl: s.acl},
		)
	})
	return err
}

// makeNode makes a node and its parents where they are missing. One that is there
// is not touched: its parent may not be this user's to write.
func (s *Store) makeNode(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	there, _, err := call(ctx, s, func() (bool, error) {
		there, _, err := s.conn.Exists(path)
		return there, err
	})
	if err != nil || there {
		return err
	}
	if err := s.makeNode(ctx, path[:strings.LastIndexByte(path, '/')]); err != nil {
		return err
	}
	_, _, err = call(ctx, s, func() (string, error) { return s.conn.Create(path, nil, 0, s.acl) })
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// forget returns the error of a store that forgot, from now on.
func (s *Store) forget() error {
	what := "its records are gone"
	if known := s.home.Load(); known != nil {
		what = fmt.Sprintf("node %s, or one below it, was removed or is of an earlier state", *known)
	}
	s.forgot.CompareAndSwap(nil, &store.ForgotError{Store: "zookeeper " + s.root, What: what})
	return s.forgot.Load()
}
