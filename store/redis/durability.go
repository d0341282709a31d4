package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
	goredis "github.com/redis/go-redis/v9"
)

// Durability implements [store.Store]. It looks at the server that has the key. The
// class is always Lossy; a server that is a replica, or that drops the records by
// itself, is an error.
func (s *Store) Durability(ctx context.Context) (store.Durability, error) {
	reply, err := s.eval(ctx, promiseScript)
	if err != nil {
		return store.Durability{}, s.explain(err)
	}
	items, err := strs(reply)
	if err != nil || len(items) < 2 {
		return store.Durability{}, s.errorf("the answer is not that of its script: %.100v", reply)
	}
	in := parseInfo(strings.Join(items[1:], "\n"))
	in.ttl = items[0]
	in.fsync, err = s.appendfsync(ctx)
	if err != nil {
		return store.Durability{}, s.explain(err)
	}
	if err := in.fault(); err != nil {
		return store.Durability{}, s.explain(err)
	}
	return store.Durability{Durable: false, Why: in.why(), Instance: in.instance()}, nil
}

// appendfsync asks for what INFO does not say: "" if it may not be asked. No
// script may ask, so it goes to the server of the key by another way.
func (s *Store) appendfsync(ctx context.Context) (string, error) {
	var server processor = s.client
	var err error
	switch c := s.client.(type) {
	case *goredis.ClusterClient:
		server, err = c.MasterForKey(ctx, s.key)
	case *goredis.Ring:
		server, err = c.GetShardClientForKey(s.key)
	}
	if err != nil {
		return "", err
	}
	reply, err := send(ctx, server, "CONFIG", "GET", "appendfsync")
	if _, ok := find(err); ok || forbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	switch r := reply.(type) {
	case map[any]any: // RESP3
		v, _ := r["appendfsync"].(string)
		return v, nil
	case []any:
		if len(r) == 2 {
			v, _ := r[1].(string)
			return v, nil
		}
	}
	return "", nil
}

// forbidden says whether a server that somebody else runs has no such command.
func forbidden(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "ERR ")
}

// info is what a server says of itself.
type info struct {
	values map[string]string
	ttl    string // of the key, in milliseconds; negative: none
	fsync  string // appendfsync; "" where it could not be seen
}

// parseInfo reads the lines of INFO.
func parseInfo(text string) info {
	in := info{values: make(map[string]string)}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			in.values[name] = value
		}
	}
	return in
}

// fault returns why this server must not be used.
func (in info) fault() error {
	if in.values["role"] != "master" {
		return fmt.Errorf("this server is a replica; connect to its master %s:%s", in.values["master_host"], in.values["master_port"])
	}
	if !strings.HasPrefix(in.ttl, "-") {
		return fmt.Errorf("the key expires in %s ms, and all records with it; find out who set that, then PERSIST it", in.ttl)
	}
	if policy := in.values["maxmemory_policy"]; strings.HasPrefix(policy, "allkeys") && in.values["maxmemory"] != "0" {
		return fmt.Errorf("maxmemory-policy is %s: the server drops any key, this one too, when it has used %s bytes; set noeviction or a volatile policy", policy, in.values["maxmemory"])
	}
	return nil
}

// why names what was seen.
func (in info) why() string {
	disk := "appendonly no: a restart forgets all since the last snapshot"
	if in.values["aof_enabled"] == "1" {
		switch in.fsync {
		case "":
			disk = "appendonly yes; appendfsync could not be seen: CONFIG GET is not allowed"
		case "always":
			disk = "appendonly yes, appendfsync always"
		case "no":
			disk = "appendonly yes, appendfsync no: a crash of the host forgets what it had not written, some 30 s"
		default:
			disk = "appendonly yes, appendfsync " + in.fsync + ": a crash of the host forgets up to 2 s"
		}
	}
	replicas := "no replica"
	if n := in.values["connected_slaves"]; n != "0" && n != "" {
		replicas = n + " replicas, which learn of a write after it was acknowledged"
		// The server says how many are good only where it wants some.
		if _, ok := in.values["min_slaves_good_slaves"]; !ok && in.values["redis_mode"] != "cluster" {
			replicas += "; min-replicas-to-write is not set: cut off from them it goes on, and one of them may be promoted meanwhile"
		}
	}
	policy := in.values["maxmemory_policy"]
	if policy == "" {
		policy = "not seen"
	}
	return fmt.Sprintf("redis %s; %s; %s; maxmemory-policy %s", in.values["redis_version"], disk, replicas, policy)
}

// instance names the run of the server and what it replicates: both change with a
// restart, the second also when it becomes the master.
func (in info) instance() string {
	return "redis " + in.values["run_id"] + " " + in.values["master_replid"]
}
