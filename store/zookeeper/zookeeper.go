// Package zookeeper keeps records in a ZooKeeper ensemble, 3.5 or later. Start
// with [New], which is given the connection that the program has.
//
// It makes persistent nodes only: no ephemeral one, no watch, no session state.
// Below the root of a Store there is
//
//	ROOT/store                        {"v":1,"id":"9f86…"}, random, of this store
//	ROOT/store/9f86…                  the records' parent
//	ROOT/store/9f86…/pool:web         the record "pool/web": its Version, a line end, its value
//	ROOT/store/9f86…/pool:web/52d0…   no data; its name is the record's Version
//
// A Put is one multi that deletes the child named by the old Version, creates
// that of the new one, and sets the data. So what is compared is a name that was
// never used before: the counts that ZooKeeper keeps of a node's writes start over
// when a node is made anew, and repeat when a snapshot is restored.
//
// Because every path has the store's id, nothing is ever read from or written to
// a store that was removed and made again. A Store that finds its own gone
// returns [store.ForgotError] from then on, and makes no other.
//
// # Reads
//
// A ZooKeeper server answers a read from its own memory, which may lag. Its sync
// does not close that gap, because a leader that was deposed, and does not know
// it yet, answers it without asking a quorum. So before a read a Store sends a
// multi that only checks that the records' parent is there: that is a transaction
// like a write, committed by a quorum, and servers answer a session in order. A
// Get is two requests, one after the other; a Put is one.
package zookeeper

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store"
)

// DefaultRoot is where a store is that has no other root.
const DefaultRoot = "/firn"

// Options of a Store. Nil, or any zero field, takes the default.
type Options struct {
	// Root is the path of the store's node. The first write creates it and its parents. Empty
	// means DefaultRoot.
	Root string

	// Digest is "USER:PASSWORD". The Store adds it to the connection before its first request.
	// Empty means no credentials, or that the program adds them itself.
	Digest string

	// ACL is the ACL of the nodes that the Store creates. Nil means all permissions: with Digest
	// for that user, and without it for everybody. zk.AuthACL(zk.PermAll) means the user of the
	// connection.
	ACL []zk.ACL

	// Unreachable returns why the last connection could not be made, if the program's dialer
	// knows, for errors: the client does not tell. Nil means that nobody knows.
	Unreachable func() error
}

// A Store is a [store.Store] on a connection that belongs to the caller: it is
// of use until that is closed, through lost connections and expired sessions,
// because the connection makes others by itself. It never sends a request again.
//
// An error of a call whose ctx has ended comes at once; the request may still be
// waiting to be sent then, or for its answer.
type Store struct {
	conn   *zk.Conn
	root   string
	acl    []zk.ACL
	digest string
	why    func() error // Options.Unreachable

	login chan bool // one slot: whether the digest was sent

	slots  chan struct{} // requests under way, so that a server that hangs collects no more
	home   atomic.Pointer[string]
	forgot atomic.Pointer[store.ForgotError]
}

var _ store.Store = (*Store)(nil)

// inFlight is how many requests of one Store are under way at most.
const inFlight = 64

// New returns a Store on conn. It sends nothing.
func New(conn *zk.Conn, opts *Options) *Store {
	var o Options
	if opts != nil {
		o = *opts
	}
	s := &Store{
		conn: conn, root: strings.TrimRight(cmp.Or(o.Root, DefaultRoot), "/"), acl: slices.Clone(o.ACL), digest: o.Digest, why: o.Unreachable,
		login: make(chan bool, 1), slots: make(chan struct{}, inFlight),
	}
	s.login <- o.Digest == ""
	switch {
	case len(s.acl) > 0:
	case o.Digest != "":
		s.acl = zk.AuthACL(zk.PermAll)
	default:
		s.acl = zk.WorldACL(zk.PermAll)
	}
	return s
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	return steady(ctx, s, func(home string) (store.Record, error) {
		if home == "" {
			return store.Record{Key: key}, nil
		}
		return s.read(ctx, home, key)
	})
}

// read reads a record as the server has it.
func (s *Store) read(ctx context.Context, home, key string) (store.Record, error) {
	data, _, err := call(ctx, s, func() ([]byte, error) {
		data, _, err := s.conn.Get(home + "/" + nodeName(key))
		return data, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return store.Record{Key: key}, nil
	case err != nil:
		return store.Record{}, s.explain(err)
	}
	r, err := decode(key, data)
	if err != nil {
		return store.Record{}, s.explain(err)
	}
	return r, nil
}

// Put implements [store.Store]. There is no clock: Within is as good as none.
func (s *Store) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := store.CheckValue(value); err != nil {
		return store.Record{}, err
	}
	if !isVersion(cond.Version) && cond.Version != "" {
		// No Put ever had it. And it is not to become a part of a path.
		return store.Record{}, store.ErrConflict
	}
	home, err := s.made(ctx)
	if err != nil {
		return store.Record{}, err
	}
	next := store.Record{Key: key, Value: slices.Clone(value), Version: store.NewVersion()}
	tried := store.Record{Key: key, Version: next.Version}
	results, sent, err := call(ctx, s, func() ([]zk.MultiResponse, error) {
		return s.conn.Multi(s.swap(home, next, cond.Version)...)
	})
	switch {
	case err == nil:
		return next, nil
	case !sent:
		return store.Record{}, s.explain(err)
	}
	switch at := refused(results); {
	case at == swapCheck && errors.Is(err, zk.ErrNoNode):
		return tried, s.forget()
	case at == swapCompare && errors.Is(err, zk.ErrNoNode), at == swapCompare && errors.Is(err, zk.ErrNodeExists):
		return tried, store.ErrConflict
	}
	return tried, s.explain(err)
}

// The places in a multi of swap at which it fails for a reason of its own.
const (
	swapCheck   = 0 // the store is not there
	swapCompare = 1 // the record is not as the condition says
)

// swap is the multi that writes next over the record with Version old.
func (s *Store) swap(home string, next store.Record, old store.Version) []any {
	node := home + "/" + nodeName(next.Key)
	check := &zk.CheckVersionRequest{Path: home, Version: anyVersion}
	mark := &zk.CreateRequest{Path: node + "/" + string(next.Version), Acl: s.acl}
	if old == "" {
		return []any{check, &zk.CreateRequest{Path: node, Data: encode(next), Acl: s.acl}, mark}
	}
	return []any{
		check,
		&zk.DeleteRequest{Path: node + "/" + string(old), Version: anyVersion},
		mark,
		&zk.SetDataRequest{Path: node, Data: encode(next), Version: anyVersion},
	}
}

// anyVersion: ZooKeeper's own counts are never compared.
const anyVersion = -1

// refused is the place of the operation for which the server refused a multi, or
// -1 if it did not say so: then nobody knows what became of it.
func refused(results []zk.MultiResponse) int {
	return slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error != nil })
}

// List implements [store.Store]. It reads the names of all records, and then each
// that it returns, inFlight at a time.
func (s *Store) List(ctx context.Context, prefix string) ([]store.Record, error) {
	return steady(ctx, s, func(home string) ([]store.Record, error) {
		if home == "" {
			return nil, nil
		}
		return s.list(ctx, home, prefix)
	})
}

// list lists the records as the server has them.
func (s *Store) list(ctx context.Context, home, prefix string) ([]store.Record, error) {
	names, _, err := call(ctx, s, func() ([]string, error) {
		names, _, err := s.conn.Children(home)
		return names, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, errGone
	case err != nil:
		return nil, s.explain(err)
	}
	var keys []string
	for _, name := range names {
		if key, ok := keyOf(name); ok && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return s.readAll(ctx, home, keys)
}

// readAll reads the records of keys, all of which were there a moment ago.
func (s *Store) readAll(ctx context.Context, home string, keys []string) ([]store.Record, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	list := make([]store.Record, len(keys))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(keys), inFlight) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(keys) {
					return
				}
				r, err := s.read(ctx, home, keys[i])
				if err == nil && r.Version == "" {
					err = errGone // nobody deletes records
				}
				if err != nil {
					cancel(err)
					return
				}
				list[i] = r
			}
		})
	}
	wg.Wait()
	switch err := context.Cause(ctx); {
	case err == errGone:
		return nil, err
	case err != nil:
		return nil, s.explain(err)
	}
	return list, nil
}

// Durability implements [store.Store]. An ensemble is durable: an acknowledged write
// is on the disks of a quorum. A server that was told not to write through
// (forceSync=no) cannot be told from one that does.
func (s *Store) Durability(ctx context.Context) (store.Durability, error) {
	if _, err := s.settle(ctx); err != nil {
		return store.Durability{}, err
	}
	config, _, err := call(ctx, s, func() ([]byte, error) {
		config, _, err := s.conn.Get("/zookeeper/config")
		return config, err
	})
	p := store.Durability{Durable: true}
	const unseen = "a write is acknowledged by a quorum; that each server writes through to its disk (forceSync) is not visible"
	switch n := voters(config); {
	case err == nil && n > 0:
		p.Why = fmt.Sprintf("an ensemble of %d voting servers; %s", n, unseen)
	case err == nil, errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNoAuth):
		p.Why = "one server, or an ensemble that does not show its members; " + unseen
	default:
		return store.Durability{}, s.explain(err)
	}
	return p, nil
}

// voters counts the voting servers in the text of /zookeeper/config.
func voters(config []byte) (n int) {
	for line := range strings.Lines(string(config)) {
		if strings.HasPrefix(line, "server.") && strings.Contains(line, ":participant") {
			n++
		}
	}
	return n
}

// isVersion says whether v can be a Version of [store.NewVersion].
func isVersion(v store.Version) bool {
	b, err := hex.DecodeString(string(v))
	return err == nil && len(b) == 16 && strings.ToLower(string(v)) == string(v)
}

// call runs one request, and leaves it to itself if ctx ends before its answer:
// the client cannot take it back. It says whether anything may have been sent.
func call[T any](ctx context.Context, s *Store, request func() (T, error)) (value T, sent bool, err error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, false, err
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return none, false, fmt.Errorf("%w: %d requests wait for an answer", ctx.Err(), inFlight)
	}
	type result struct {
		value T
		err   error
	}
	answer := make(chan result, 1)
	go func() {
		defer func() { <-s.slots }()
		value, err := request()
		answer <- result{value, err}
	}()
	select {
	case r := <-answer:
		return r.value, true, r.err
	case <-ctx.Done():
		return none, true, ctx.Err()
	}
}
