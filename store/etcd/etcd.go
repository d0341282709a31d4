// Package etcd keeps records in etcd, version 3.4 or newer.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"localhost:2379"}})
//	ids, err := lease.Open(ctx, etcd.New(client, nil), nil)
//
// A record is one key, by default below "firn/": its value is the Version, a
// newline and the record's value, so that `etcdctl get --prefix firn/` shows all
// there is. Get, Put and List are one request each. A Put is one transaction that
// compares the Version the key's value begins with, and writes the next. It does
// not compare the key's revision, which comes to old numbers again after a
// restored snapshot. No key is ever attached to an etcd lease: it would be deleted.
//
// etcd has no clock: times are zero, and Condition.Within is as good as none.
//
// # Durability
//
// A write was acknowledged when a majority of the members had it on their disks,
// so a store in etcd is durable, on these conditions, which no client can see:
// the members run without --unsafe-no-fsync, their disks keep what they have
// synced, and no backup is restored and no --force-new-cluster run without "firn
// store recover" after it.
//
// A Store remembers the cluster it has talked to and the highest revision it has
// seen. An answer of another cluster, or one with a lower revision, is a cluster
// that forgot: this and every later call is a [store.ForgotError]. A program that
// starts after the restore cannot see it, nor is one seen that has raised the
// revision (etcdutl snapshot restore --bump-revision).
//
// # The client
//
// The requests go over the client's connections and its login, but past
// [clientv3.Client.KV]: a namespace that was put in front of that does not apply;
// use Options.Prefix. Reads are repeated as the client does by default; a Put is
// sent once. A call waits for its answer until its ctx ends: give it a deadline, or
// the client DialKeepAliveTime and DialKeepAliveTimeout. While no member answers the
// client tries again ever more seldom, by default up to two minutes apart: with
// grpc.WithConnectParams among its DialOptions it finds sooner that they are back.
//
// # Privileges
//
// With authentication on, a user needs read and write on the prefix, and nothing
// else:
//
//	etcdctl role add firn
//	etcdctl role grant-permission firn --prefix=true readwrite firn/
//	etcdctl user grant-role USER firn
//
// etcd 3.4 looks at the old login of a client that logs in again. Once that has
// expired, as it does after five minutes without a call, the client tries over and
// over until the call's ctx ends, and no new login succeeds but that of another
// client. With authentication use etcd 3.5 or newer.
package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn/store"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// DefaultPrefix is what the keys begin with.
const DefaultPrefix = "firn/"

// afterNewline is the byte that follows the one between Version and value.
const afterNewline = "\x0b"

// Options of a store; nil and zero are the defaults.
type Options struct {
	// Prefix is what all keys begin with. Empty means [DefaultPrefix]. Two stores are different
	// stores if neither prefix begins with the other.
	Prefix string
}

// A Store is a [store.Store] in the keys below a prefix.
//
// A Store has nothing to be closed: the client is the caller's.
type Store struct {
	client *clientv3.Client
	kv     pb.KVClient
	prefix string
	name   string // without secrets: "etcd://host:2379/firn/"
	memory memory
}

var _ store.Store = (*Store)(nil)

// New returns the store that client leads to. It sends nothing.
func New(client *clientv3.Client, opts *Options) *Store {
	s := &Store{client: client, kv: clientv3.RetryKVClient(client), prefix: DefaultPrefix}
	if opts != nil && opts.Prefix != "" {
		s.prefix = opts.Prefix
	}
	s.name = nameOf(client.Endpoints()) + "/" + s.prefix
	return s
}

// nameOf joins the addresses of endpoints, which may be URLs.
func nameOf(endpoints []string) string {
	hosts := make([]string, len(endpoints))
	for i, e := range endpoints {
		if _, after, ok := strings.Cut(e, "://"); ok {
			e = after
		}
		hosts[i] = e[strings.LastIndexByte(e, '@')+1:]
	}
	return "etcd://" + strings.Join(hosts, ",")
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	resp, err := s.get(ctx, &pb.RangeRequest{Key: []byte(s.prefix + key)})
	if err != nil {
		return store.Record{}, err
	}
	if len(resp.Kvs) == 0 {
		return store.Record{Key: key}, nil
	}
	return s.decode(key, resp.Kvs[0].Value)
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Record, error) {
	from := s.prefix + prefix
	resp, err := s.get(ctx, &pb.RangeRequest{
		Key:        []byte(from),
		RangeEnd:   []byte(clientv3.GetPrefixRangeEnd(from)),
		SortOrder:  pb.RangeRequest_ASCEND,
		SortTarget: pb.RangeRequest_KEY,
	})
	if err != nil {
		return nil, err
	}
	list := make([]store.Record, 0, len(resp.Kvs))
	for _, kv := range resp.Kvs {
		r, err := s.decode(strings.TrimPrefix(string(kv.Key), s.prefix), kv.Value)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// get reads, linearizably.
func (s *Store) get(ctx context.Context, req *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := s.memory.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, s.explain(ctx, err)
	}
	least := s.memory.least()
	resp, err := s.kv.Range(ctx, req, receive)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return resp, s.memory.see(s.name, resp.Header, least)
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
	if err := s.memory.check(); err != nil {
		return store.Record{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Record{}, s.explain(ctx, err)
	}
	tried := store.Record{Key: key, Version: store.NewVersion()}
	least := s.memory.least()
	sent := new(once)
	resp, err := s.kv.Txn(ctx, s.txn(key, value, tried.Version, cond.Version), sent.options()...)
	if err != nil {
		if sent.nothing() {
			tried = store.Record{}
		}
		return tried, s.explain(ctx, err)
	}
	if err := s.memory.see(s.name, resp.Header, least); err != nil {
		return tried, err
	}
	if !resp.Succeeded {
		return store.Record{}, store.ErrConflict
	}
	tried.Value = slices.Clone(value)
	return tried, nil
}

// txn writes key if its value begins with the Version it is on.
//
// etcd compares values whole, by order. What begins with a Version and a newline
// is greater than the Version, and less than the Version and what follows a
// newline; nothing else that was ever written is, as all Versions are 32 hex
// digits and so no one is the beginning of another.
func (s *Store) txn(key string, value []byte, next, on store.Version) *pb.TxnRequest {
	k := []byte(s.prefix + key)
	compare := []*pb.Compare{{
		Key: k, Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: 0},
	}}
	if on != "" {
		compare = []*pb.Compare{
			{
				Key: k, Target: pb.Compare_VALUE, Result: pb.Compare_GREATER,
				TargetUnion: &pb.Compare_Value{Value: []byte(on)},
			},
			{
				Key: k, Target: pb.Compare_VALUE, Result: pb.Compare_LESS,
				TargetUnion: &pb.Compare_Value{Value: []byte(on + afterNewline)},
			},
		}
	}
	return &pb.TxnRequest{
		Compare: compare,
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: k, Value: slices.Concat([]byte(next), []byte("\n"), value)},
		}}},
	}
}

// decode reads the value of a key.
func (s *Store) decode(key string, text []byte) (store.Record, error) {
	version, value, ok := strings.Cut(string(text), "\n")
	if !ok || len(version) != len(store.NewVersion()) {
		return store.Record{}, fmt.Errorf("store/etcd: %s%s is not a record; use another prefix", s.name, key)
	}
	return store.Record{Key: key, Value: []byte(value), Version: store.Version(version)}, nil
}
