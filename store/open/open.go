// Package open makes a store from a URL. It imports every driver; a program
// that knows its store imports that adapter instead.
//
// # URLs
//
//	sqlite:PATH                                         a file of this host
//	postgres://USER:PASSWORD@HOST:PORT/DATABASE         also postgresql://
//	mysql://USER:PASSWORD@HOST:PORT/DATABASE            MySQL, MariaDB
//	redis://USER:PASSWORD@HOST:PORT/DATABASE            rediss:// with TLS
//	etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX     etcds:// with TLS
//	zk://USER:PASSWORD@HOST:PORT,HOST:PORT/ROOT         zks:// with TLS
//
// USER, PASSWORD, PORT and what is behind the hosts may be left out. In a user or
// a password whatever is not a letter, a digit or one of -._~ is written as %XX.
// Options follow as ?NAME=VALUE&NAME=VALUE. Each store has those that users of its
// client know, docs/reference/stores.md lists them, and each but sqlite: has
//
//	assume=durable    the operator vouches that the store never loses a write
//	                  that it acknowledged, whatever can be seen of it
//	assume=lossy      the store is taken for one that may, whatever can be seen
//
// The PATH of a SQLite file is absolute, and taken as it is: nothing in it is
// escaped, and there are no options. A relative path would name another file in
// each working directory, and so would make two stores of one.
package open

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/store"
)

// A Store owns the connections that were made for it. A call whose ctx has no
// deadline gets one of 10 seconds, a List of 60, unless it is about a file.
type Store struct {
	store.Store
	init  func(context.Context) (bool, error)
	close func() error
}

// Close closes the connections. The Store must not be used afterwards.
func (s *Store) Close() error { return s.close() }

// HasSetup reports whether the store needs anything before its first record, so that Init may make it.
func (s *Store) HasSetup() bool { return s.init != nil }

// Init makes what the store needs to keep records, tables or nodes, if it is not
// there, as the first Put would. It returns whether it made anything.
func (s *Store) Init(ctx context.Context) (made bool, err error) {
	if s.init == nil {
		return false, nil
	}
	ctx, cancel := patient(ctx, patience)
	defer cancel()
	return s.init(ctx)
}

// URL opens the store that url names. It does not wait for a server: whether
// there is one the first call will tell. A SQLite file that another process has
// locked is waited for until ctx ends, at most 5 seconds. Errors show no
// passwords; one about the URL itself is a [*URLError].
func URL(ctx context.Context, url string) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	open, err := parse(url)
	if err != nil {
		return nil, err
	}
	return open(ctx)
}

// Check returns what is wrong with a URL as such, nil or a [*URLError]. It opens
// nothing, and looks for no file that the URL names.
func Check(url string) error {
	_, err := parse(url)
	return err
}

// A URLError says what is wrong with the URL of a store.
type URLError struct {
	URL    string // without secrets
	Reason string
}

func (e *URLError) Error() string { return fmt.Sprintf("store/open: %q: %s", e.URL, e.Reason) }

// Retryable is false; see firn.Retryable.
func (*URLError) Retryable() bool { return false }

// An opener makes a store that has servers. It waits for none of them.
type opener func() (*Store, error)

// A kind is one of the stores that have servers.
type kind struct {
	form    string // what a URL looks like
	options []string
	socket  string // the option that names a socket instead of a host; may be empty
	parse   func(a *address) (opener, error)
}

// kinds are by scheme.
var kinds = map[string]kind{
	"etcd":       etcdCluster,
	"etcds":      etcdCluster,
	"mysql":      mySQL,
	"postgres":   postgreSQL,
	"postgresql": postgreSQL,
	"redis":      redisServer,
	"rediss":     redisServer,
	"zk":         zooKeeper,
	"zks":        zooKeeper,
}

// schemes are the names of all stores, for errors.
func schemes() []string {
	names := []string{"sqlite"}
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// parse returns what opens the store that url names.
func parse(url string) (func(context.Context) (*Store, error), error) {
	bad := func(format string, args ...any) error {
		return &URLError{Redact(url), fmt.Sprintf(format, args...)}
	}
	scheme, rest, ok := strings.Cut(url, ":")
	switch {
	case url == "":
		return nil, bad("no store is named; if the URL is from a variable such as FIRN_STORE, the variable is empty or not set")
	case !ok && (strings.ContainsAny(url, `/\`) || strings.HasSuffix(url, ".db")):
		return nil, bad("not a URL of a store; a SQLite file is written sqlite:%s", url)
	case !ok:
		return nil, bad("not a URL of a store; there are %s", strings.Join(schemes(), ", "))
	}
	switch scheme {
	case "sqlite":
		path, err := sqlitePath(rest)
		if err != nil {
			return nil, bad("%s", err)
		}
		return openSQLite(path), nil
	case "memory":
		return nil, bad("a store in memory is one for each process, and two processes would make the same ids; a test uses memory.New")
	}
	k, ok := kinds[scheme]
	if !ok {
		reason := fmt.Sprintf("no store is called %q", scheme)
		if best := nearest.Name(scheme, schemes()); best != "" {
			return nil, bad("%s; is it %s?", reason, best)
		}
		return nil, bad("%s; there are %s", reason, strings.Join(schemes(), ", "))
	}
	a, err := k.address(scheme, rest)
	if err != nil {
		return nil, bad("%s", err)
	}
	assumed, err := declared(a)
	if err != nil {
		return nil, bad("%s", err)
	}
	servers := cmp.Or(strings.Join(a.hosts, ","), a.options[k.socket])
	open, err := k.parse(a)
	if err != nil {
		return nil, bad("%s", a.scrub(err))
	}
	return func(context.Context) (*Store, error) {
		s, err := open()
		if err != nil {
			return nil, bad("%s", a.scrub(err))
		}
		b := &bounded{s.Store, servers}
		if init := s.init; init != nil {
			s.init = func(ctx context.Context) (bool, error) {
				made, err := init(ctx)
				return made, b.locate(err)
			}
		}
		s.Store = b
		if assumed != nil {
			s.Store = &vouched{s.Store, *assumed}
		}
		return s, nil
	}, nil
}

// address takes apart what follows "SCHEME:".
func (k kind) address(scheme, rest string) (*address, error) {
	a, err := parseAddress(scheme, rest, k)
	if err != nil {
		return nil, err
	}
	if len(a.hosts) == 0 && a.options[k.socket] == "" {
		return nil, fmt.Errorf("no host; it is %s", k.form)
	}
	return a, nil
}
