//go:build linux

package siege

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-zookeeper/zk"
	goredis "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/store/open"
)

// removeRecord removes a record from a store by hand, as nothing of firn can.
func removeRecord(ctx context.Context, address, key string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	switch u.Scheme {
	case "sqlite":
		db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(address, "sqlite:")+"?mode=rw&_pragma=busy_timeout(30000)")
		return execute(ctx, db, err, "DELETE FROM record WHERE key = '"+key+"'")
	case "postgres", "mysql":
		options := u.Query()
		options.Del("assume")
		u.RawQuery = options.Encode()
		db, err := open.Database(u.String())
		return execute(ctx, db, err, "DELETE FROM firn_records WHERE "+map[string]string{"postgres": "key", "mysql": "`key`"}[u.Scheme]+" = '"+key+"'")
	case "redis":
		c := goredis.NewClient(&goredis.Options{Addr: u.Host})
		defer c.Close()
		return c.HDel(ctx, "firn", key).Err()
	case "etcd":
		c, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(u.Host, ",")})
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Delete(ctx, "firn/"+key)
		return err
	case "zk":
		return removeNode(strings.Split(u.Host, ","), strings.ReplaceAll(key, "/", ":"))
	}
	return fmt.Errorf("a store at %s", address)
}

// execute executes a statement in a database that was opened, and closes that.
func execute(ctx context.Context, db *sql.DB, err error, statement string) error {
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// removeNode removes the node of a record, below the one node below firn's.
func removeNode(hosts []string, name string) error {
	conn, _, err := zk.Connect(hosts, patience, zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer conn.Close()
	homes, _, err := conn.Children("/firn/store")
	if err != nil {
		return err
	}
	for _, home := range homes {
		node := "/firn/store/" + home + "/" + name
		marks, _, err := conn.Children(node) // the name of its version
		for _, mark := range marks {
			err = errors.Join(err, conn.Delete(node+"/"+mark, -1))
		}
		if err = errors.Join(err, conn.Delete(node, -1)); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}
