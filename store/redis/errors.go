package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store/internal/advice"
)

// A cause is an error of the server, found by how it begins.
type cause struct{ prefix, advice string }

// causes are errors after which nothing was written: the server says them before
// it runs a command, or in place of the write.
var causes = []cause{
	{"NOAUTH", "the server wants a password, and none was given"},
	{"WRONGPASS", "the server refuses the user or the password; check both. A restart of Redis forgets a user that was not saved, and each replica has users of its own: docs/guides/stores.md, section Redis"},
	{"ERR invalid password", "the server refuses the password"},
	{"ERR AUTH", "the server refuses the password"},
	{"NOPERM", noPermission},
	{"ERR The user executing the script", noPermission},
	{"READONLY", "this server is a replica; connect to its master"},
	{"MASTERDOWN", "this server is a replica that has lost its master; connect to the master"},
	{"LOADING", "the server is still loading its data; wait"},
	{"OOM", "the server's memory is full; raise maxmemory"},
	{"MISCONF", "the server cannot write to its disk, and so refuses to write at all; look at its log, and whether the disk is full"},
	{"NOREPLICAS", "the server has fewer replicas than min-replicas-to-write; see why they are away"},
	{"CLUSTERDOWN", "the cluster is down, or nobody serves the slot of the key; see CLUSTER INFO"},
	{"TRYAGAIN", "the slot of the key is being moved; try again"},
	{"BUSY", "the server is busy with somebody's script; wait, or SCRIPT KILL"},
	{"WRONGTYPE", "the key is in use for something else; name another"},
	{"FIRNEXPIRES", "the key expires, and all records with it; find out who set that, then PERSIST it"},
	{"FIRNFIELD", "a field of the key is not a record; name another key"},
	{"FIRNGONE", "all records were removed or renamed in the middle of a list; try again"},
	{"ERR max number of clients", "the server has no connection left; raise maxclients"},
}

// passing are the causes of errors that pass by themselves.
var passing = []string{"MASTERDOWN", "LOADING", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "ERR max number of clients"}

// errRing: whoever does not reach the server that has the key takes another, which
// has none of the records, while the rest go on with the first.
var errRing = errors.New("a ring of several servers goes to another when one does not answer, and each client by itself; use one server, Sentinel or a cluster")

const noPermission = "this user may not do that; package redis lists the commands it needs"

// find returns the cause of an error that a server has answered with. Lua puts
// words of its own around the errors of what a script calls.
func find(err error) (cause, bool) {
	var reply goredis.Error
	if !errors.As(err, &reply) || errors.Is(err, goredis.Nil) {
		return cause{}, false
	}
	text := reply.Error()
	for _, c := range causes {
		if strings.HasPrefix(text, c.prefix) || strings.Contains(text, "-"+c.prefix+" ") {
			return c, true
		}
	}
	return cause{}, false
}

// refused says whether err means that nothing was written and nothing will be.
func refused(err error) bool {
	if _, ok := find(err); ok || errors.Is(err, goredis.ErrPoolTimeout) || errors.Is(err, errRing) {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// explain says what is wrong and, where it can be told, what to do.
func (s *Store) explain(err error) error {
	if err == nil || advice.Done(err) {
		return err
	}
	text, away := "", false
	var op *net.OpError
	var timeout net.Error
	if c, ok := find(err); ok {
		text, away = c.advice, slices.Contains(passing, c.prefix)
	} else {
		switch {
		case errors.Is(err, context.Canceled):
		case errors.As(err, &op) && op.Op == "dial":
			text = "the server cannot be reached; is it running, and is this its address?"
		case errors.Is(err, goredis.ErrPoolTimeout):
			text = "all connections of the client are in use; raise its PoolSize, or see what holds them"
		case errors.Is(err, goredis.ErrClosed):
			text = "the client is closed"
		case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
			text = "the server has not answered in time"
		case errors.As(err, new(tls.RecordHeaderError)):
			text = "what answers does not speak TLS; check the host and the port, or leave TLS out if this Redis has none"
		case strings.Contains(err.Error(), "tls:"), strings.Contains(err.Error(), "x509:"):
			text = "the server's certificate is not accepted"
		case errors.Is(err, io.EOF):
			text = "the server has closed the connection: is this the address of a Redis server? If it wants TLS, the client must speak it"
		case strings.HasPrefix(err.Error(), "redis: can't parse"), strings.HasPrefix(err.Error(), "redis: invalid reply"):
			text = "what answers is not Redis; check the host and the port"
		}
	}
	return &advice.Error{Where: "redis: key " + s.key, Advice: text, Err: err, Away: away}
}

func (s *Store) errorf(format string, args ...any) error {
	return &advice.Error{Where: "redis: key " + s.key, Err: fmt.Errorf(format, args...)}
}
