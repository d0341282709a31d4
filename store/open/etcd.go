package open

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcd"
)

var etcdCluster = kind{
	form:    "etcd://[USER:PASSWORD@]HOST[:PORT],.../PREFIX",
	options: append([]string{"dial_timeout"}, tlsOptions...),
	parse:   parseEtcd,
}

func parseEtcd(a *address) (opener, error) {
	if (a.user == "") != (a.password == "") {
		return nil, errors.New("a user and a password go together")
	}
	timeout, err := a.duration("dial_timeout", dialPatience)
	if err != nil {
		return nil, err
	}
	files, err := a.takeTLS(a.scheme == "etcds", "etcd")
	if err != nil {
		return nil, err
	}
	prefix := strings.Trim(a.path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return func() (*Store, error) {
		config, err := files.config()
		if err != nil {
			return nil, err
		}
		verifyName(config)
		// ctx bounds the login, and not the life of the client.
		connect := func(ctx context.Context) (store.Store, func() error, error) {
			life, end := context.WithCancel(context.Background())
			stop := context.AfterFunc(ctx, end)
			c, err := clientv3.New(clientv3.Config{
				Endpoints: a.addresses("2379"), Username: a.user, Password: a.password, TLS: config,
				DialTimeout: timeout, Logger: zap.NewNop(), Context: life,
				DialOptions: []grpc.DialOption{grpc.WithConnectParams(reconnect(timeout))},
			})
			closer := func() error { defer end(); return c.Close() }
			switch {
			case err != nil:
				stop()
				end()
				return nil, nil, cmp.Or(ctx.Err(), err)
			case !stop():
				return nil, nil, errors.Join(ctx.Err(), closer())
			}
			return etcd.New(c, &etcd.Options{Prefix: prefix}), closer, nil
		}
		if a.known {
			l := newLazy("etcd://"+strings.Join(a.hosts, ","), connect)
			return &Store{Store: l, close: l.close}, nil
		}
		s, closer, err := connect(context.Background())
		if err != nil {
			return nil, err
		}
		return &Store{Store: s, close: closer}, nil
	}, nil
}

// reconnect is how soon a connection that was lost is tried again. By gRPC's own rule
// that is up to two minutes apart when a server was away for some: long after it is back,
// a grant would be used up.
func reconnect(timeout time.Duration) grpc.ConnectParams {
	b := backoff.DefaultConfig
	b.BaseDelay, b.MaxDelay = 500*time.Millisecond, 2*time.Second
	return grpc.ConnectParams{Backoff: b, MinConnectTimeout: timeout}
}
