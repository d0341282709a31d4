package open

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	client "github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store/redis"
)

var redisServer = kind{
	form: "redis://[[USER]:PASSWORD@]HOST[:PORT],.../DATABASE",
	options: append([]string{
		"client_name", "cluster", "dial_timeout", "hash", "master_name", "protocol", "read_timeout",
		"sentinel_password", "sentinel_username", "write_timeout",
	}, tlsOptions...),
	parse: parseRedis,
}

// redisLog is set once: the client has one logger for the whole process.
var redisLog sync.Once

type silentRedis struct{}

func (silentRedis) Printf(context.Context, string, ...any) {}

func parseRedis(a *address) (opener, error) {
	o := client.UniversalOptions{Addrs: a.addresses("6379"), Username: a.user, Password: a.password, PoolSize: connections, MaxRetries: -1, DialerRetries: 1}
	var err error
	var errs [4]error
	o.ClientName, _ = a.take("client_name")
	o.MasterName, _ = a.take("master_name")
	o.SentinelUsername, _ = a.take("sentinel_username")
	o.SentinelPassword, _ = a.take("sentinel_password")
	o.DialTimeout, errs[0] = a.duration("dial_timeout", dialPatience)
	o.ReadTimeout, errs[1] = a.duration("read_timeout", dialPatience)
	o.WriteTimeout, errs[2] = a.duration("write_timeout", dialPatience)
	o.Protocol, errs[3] = a.number("protocol", 0, 2, 3)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if o.IsClusterMode, err = a.flag("cluster"); err != nil {
		return nil, err
	}
	if db := strings.Trim(a.path, "/"); db != "" {
		if o.DB, err = strconv.Atoi(db); err != nil || o.DB < 0 {
			return nil, fmt.Errorf("%q is no number of a database", db)
		}
	}
	cluster := o.IsClusterMode || len(o.Addrs) > 1 && o.MasterName == ""
	switch {
	case cluster && o.DB != 0:
		return nil, errors.New("a Redis Cluster has database 0 only; several hosts are one, unless option master_name says that they are sentinels")
	case o.IsClusterMode && o.MasterName != "":
		return nil, errors.New("options cluster and master_name exclude each other")
	}
	hash, _ := a.take("hash")
	files, err := a.takeTLS(a.scheme == "rediss", "redis")
	if err != nil {
		return nil, err
	}
	return func() (*Store, error) {
		redisLog.Do(func() { client.SetLogger(silentRedis{}) })
		config, err := files.config()
		if err != nil {
			return nil, err
		}
		o.TLSConfig = config
		c := client.NewUniversalClient(&o)
		s := redis.New(c, &redis.Options{Key: hash})
		return &Store{Store: s, close: c.Close}, nil
	}, nil
}
