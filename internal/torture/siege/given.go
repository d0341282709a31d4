//go:build linux

package siege

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/open"
)

// A Given is a store that the siege did not start: somebody's own server. The siege makes
// one pool and one sequence in it, changes no other record, and does nothing to the server.
// It harms its own processes, and its own connections in a proxy of this process.
type Given struct {
	URL   string
	Name  string // of the pool and of the sequence
	Lossy bool   // the store is lossy

	pools []string // that it has
	empty bool     // it has no record at all
}

// ports are those of a URL that names none.
var ports = map[string]string{
	"postgres": "5432", "postgresql": "5432", "mysql": "3306", "redis": "6379", "rediss": "6379",
	"etcd": "2379", "etcds": "2379", "zk": "2181", "zks": "2181",
}

// LookAt looks at a store that is to be besieged, and changes nothing. It returns an error
// where the store cannot be read, or has a pool or a sequence of that name.
func LookAt(ctx context.Context, url, name string) (*Given, error) {
	g := &Given{URL: url, Name: name}
	if strings.HasPrefix(url, "sqlite:") {
		return nil, errors.New("a SQLite file has no server whose connections could be harmed; -stores sqlite does harm to a file of its own")
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	st, err := open.URL(ctx, url)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	d, err := st.Durability(ctx)
	if err != nil {
		return nil, err
	}
	all, err := st.List(ctx, "")
	if err != nil {
		return nil, err
	}
	g.Lossy, g.empty = !d.Durable, len(all) == 0
	for i := range all {
		if g.owns(all[i].Key) {
			return nil, fmt.Errorf("the store has a record %s already; choose another name with -pool", all[i].Key)
		}
	}
	infos, err := pool.List(ctx, st)
	for i := range infos {
		g.pools = append(g.pools, infos[i].Name)
	}
	return g, err
}

// String is the URL without what is secret in it.
func (g *Given) String() string { return open.Redact(g.URL) }

// owns reports whether a key is of the pool or of the sequence.
func (g *Given) owns(key string) bool {
	return slices.Contains(strings.Split(key, "/"), g.Name)
}

// Creates says what a siege by so many processes creates there.
func (g *Given) Creates(workers int) (lines []string) {
	what := fmt.Sprintf("it creates the pool %s there, with workers 0 to %d of layout firn", g.Name, placesFor(workers, g.Lossy)-1)
	if !g.Lossy {
		what += ", and the sequence " + g.Name
	}
	if g.empty {
		what += ", and first what firn keeps records in, as the store has none"
	}
	lines = []string{
		"nothing is done to " + g.String() + ": only processes of this torture are harmed, and the connections that they have through a proxy of this process",
		what + "; no other record is changed",
		"no command of firn removes a pool or a sequence, so their records stay; give a database that you can drop",
	}
	if len(g.pools) > 0 {
		lines = append(lines, "the pool's ids may equal ids of "+strings.Join(g.pools, ", ")+": they are compared, and thrown away")
	}
	if g.Lossy {
		lines = append(lines, "the store can lose acknowledged writes: each process waits 13s before its first id, and there is no sequence; ?assume=durable in the URL has it taken for one that cannot")
	}
	return lines
}

// target is how a store is besieged that was given.
func (g *Given) target() target {
	t := target{name: g.String(), lossy: g.Lossy, start: g.start}
	if scheme, _, _ := strings.Cut(g.URL, ":"); slices.Contains([]string{"etcd", "etcds", "zk", "zks"}, scheme) {
		t.ahead = 5 * time.Second
	}
	return t
}

// start makes the pool and the sequence, and the proxy before the server.
func (g *Given) start(s *siege) *victim {
	s.tb.Helper()
	s.pool, s.series = g.Name, g.Name
	proxied, front, err := throughProxies(s.tb, g.URL)
	if err == nil {
		err = reaches(s.ctx, proxied)
	}
	if err != nil {
		s.tb.Fatalf("through a proxy on 127.0.0.1: %v; where the URL asks for TLS, it must not ask for the host's name", err)
	}
	s.world.url = proxied
	s.found(g.URL)
	processes := processHarms
	if g.Lossy {
		processes = lossyProcessHarms
	}
	return &victim{url: g.URL, harms: slices.Concat(networkHarms(front), processes)}
}

// reaches returns an error where a store cannot be read.
func reaches(ctx context.Context, url string) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	st, err := open.URL(ctx, url)
	if err != nil {
		return err
	}
	defer st.Close()
	_, err = pool.List(ctx, st)
	return err
}

// throughProxies starts a proxy before each host of a URL, and returns the URL that leads
// through them.
func throughProxies(tb testing.TB, url string) (string, proxies, error) {
	scheme, rest, _ := strings.Cut(url, "://")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	at := strings.LastIndexByte(authority, '@') + 1
	if authority[at:] == "" {
		return "", nil, errors.New("the URL names no host")
	}
	var front proxies
	var addrs []string
	for host := range strings.SplitSeq(authority[at:], ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), ports[scheme])
		}
		p := testserver.NewProxy(tb, host)
		front, addrs = append(front, p), append(addrs, p.Addr())
	}
	return scheme + "://" + authority[:at] + strings.Join(addrs, ",") + rest[end:], front, nil
}

// giveBack has all processes end in order, so that no worker stays leased.
func (s *siege) giveBack() {
	var running []*proc
	for _, p := range s.world.procs {
		if !p.finished() {
			p.cont()
			p.say("close")
			running = append(running, p)
		}
	}
	for deadline := time.After(patience); len(running) > 0; running = running[1:] {
		select {
		case <-running[0].ended:
		case <-deadline:
			return // they are killed
		}
	}
}

// stays lists the records that a siege leaves in a store that was given.
func (g *Given) stays() (keys []string, err error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	st, err := open.URL(ctx, g.URL)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	all, err := st.List(ctx, "")
	for i := range all {
		if g.owns(all[i].Key) {
			keys = append(keys, all[i].Key)
		}
	}
	return keys, err
}
