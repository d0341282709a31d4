// Package redis keeps records in one hash of a Redis server, version 6 or newer,
// or of what speaks its protocol and runs its scripts.
//
//	client := goredis.NewClient(&goredis.Options{Addr: "localhost:6379"})
//	ids, err := lease.Open(ctx, redis.New(client, nil), nil)
//
// The client may be one of a server, of a master behind Sentinel, or of a cluster;
// a ring of several servers is refused. All records are fields of one key, so in a
// cluster they are on one shard; whatever the client's options say about replicas,
// its master is asked. The client's own retries may stay as they are: they do not
// apply to this package's commands.
//
// # Durability
//
// Redis may lose what it acknowledged: it replicates after it has answered, and
// unless appendfsync is always it writes to its disk after it has answered. A
// store in Redis is therefore always lossy. [store.Durability.Why] names what was seen of
// this server: appendfsync, the replicas, what happens when its memory is full.
//
// Two masters at once are two stores, and what each grants may be the same: a
// master that is cut off goes on for whoever still reaches it, while Sentinel has
// made another. Let it stop: min-replicas-to-write 1 and a min-replicas-max-lag of
// at most the lease's outage budget. A cluster's master stops by itself after
// cluster-node-timeout.
//
// A server that would drop the records while it works is refused. The key must
// not expire: a Put on one that does is an error. And maxmemory-policy must not
// be one of the allkeys policies with a maxmemory: Durability is then an error. Use
// noeviction, or one of the volatile policies.
//
// # Privileges
//
// A user needs the key and these commands:
//
//	ACL SETUSER firn on >PASSWORD resetkeys ~firn resetchannels -@all
//		+eval +hget +hset +hscan +pttl +time +info +config|get
//
// A cluster client also needs +cluster|slots. Without +config|get
// [store.Durability.Why] says that appendfsync could not be seen.
package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/store"
	goredis "github.com/redis/go-redis/v9"
)

// DefaultKey is where the records are.
const DefaultKey = "firn"

// Options of a store; nil and zero are the defaults.
type Options struct {
	// Key is the key of the hash. Empty means [DefaultKey]. Stores under different keys are
	// different stores.
	Key string
}

// A Store is a [store.Store] in one hash. Its clock is that of the server.
//
// A Store has nothing to be closed: the client is the caller's. A call whose ctx
// ends returns at once; its connection waits on for the answer, at most the
// client's ReadTimeout.
type Store struct {
	client goredis.UniversalClient
	key    string
}

var _ store.Store = (*Store)(nil)

// New returns the store that client leads to. It sends nothing.
func New(client goredis.UniversalClient, opts *Options) *Store {
	s := &Store{client: client, key: DefaultKey}
	if opts != nil && opts.Key != "" {
		s.key = opts.Key
	}
	return s
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	items, err := s.strings(ctx, 1, getScript, key)
	if err != nil {
		return store.Record{}, err
	}
	now, err := instant(items[0])
	if err != nil {
		return store.Record{}, s.explain(err)
	}
	list, err := records(now, items[1:])
	if err != nil {
		return store.Record{}, s.explain(err)
	}
	if len(list) == 0 {
		return store.Record{Key: key, Read: now}, nil
	}
	return list[0], nil
}

// strings runs a script that returns strings, at least as many.
func (s *Store) strings(ctx context.Context, least int, script string, args ...string) ([]string, error) {
	reply, err := s.eval(ctx, script, args...)
	if err != nil {
		return nil, s.explain(err)
	}
	items, err := strs(reply)
	if err != nil || len(items) < least {
		return nil, s.errorf("the answer is not that of its script: %.100v", reply)
	}
	return items, nil
}

// records reads keys and fields in turn.
func records(now time.Time, items []string) ([]store.Record, error) {
	var list []store.Record
	for i := 0; i+1 < len(items); i += 2 {
		r, err := decode(items[i], items[i+1])
		if err != nil {
			return nil, err
		}
		r.Read = now
		list = append(list, r)
	}
	return list, nil
}

// Put implements [store.Store]. An error with the zero Version means that nothing
// was written, and that nothing will be.
func (s *Store) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := store.CheckValue(value); err != nil {
		return store.Record{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Record{}, s.explain(err)
	}
	within := "" // none
	switch {
	case cond.Within < 0:
		return store.Record{}, store.ErrConflict
	case cond.Within > 0:
		within = strconv.FormatInt(cond.Within.Microseconds(), 10)
	}
	r := store.Record{Key: key, Version: store.NewVersion()}
	reply, err := s.eval(ctx, putScript, key, string(cond.Version), within, string(r.Version), string(value))
	if err != nil {
		if refused(err) {
			r = store.Record{}
		}
		return r, s.explain(err)
	}
	text, ok := reply.(string)
	if !ok {
		return r, s.errorf("the answer is not that of its script: %.100v", reply)
	}
	if text == "conflict" {
		return store.Record{}, store.ErrConflict
	}
	now, err := instant(text)
	if err != nil {
		return r, s.explain(err)
	}
	r.Value, r.Written, r.Read = slices.Clone(value), now, now
	return r, nil
}

// decode reads a field: version, space, microseconds, newline, value.
func decode(key, field string) (store.Record, error) {
	head, value, ok := strings.Cut(field, "\n")
	version, written, ok2 := strings.Cut(head, " ")
	if !ok || !ok2 {
		return store.Record{}, fmt.Errorf("the field %q is not a record", key)
	}
	t, err := instant(written)
	if err != nil {
		return store.Record{}, fmt.Errorf("the field %q is not a record: %w", key, err)
	}
	return store.Record{Key: key, Value: []byte(value), Version: store.Version(version), Written: t}, nil
}

// instant reads microseconds since 1970.
func instant(text string) (time.Time, error) {
	us, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMicro(us).UTC(), nil
}

// strs returns the strings of a reply that is a list of them.
func strs(reply any) ([]string, error) {
	list, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("%T is no list", reply)
	}
	out := make([]string, len(list))
	for i, item := range list {
		if out[i], ok = item.(string); !ok {
			return nil, fmt.Errorf("%T is no string", item)
		}
	}
	return out, nil
}
