//go:build linux

package siege

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store/open"
)

// How long a store is away: for less than the budget, or for longer.
const (
	short = budget / 2
	long  = budget + 2*time.Second
)

// away is a harm that keeps the store away.
func away(name string, of part, length time.Duration, fail, mend func(s *siege)) harm {
	h := harm{name: name, part: of, outage: true, length: length, do: func(s *siege, _ draw) func() {
		fail(s)
		return func() { mend(s) }
	}}
	if length == long {
		h.name, h.least = name+" for long", budget+time.Second
	}
	return h
}

func killed(server *testserver.Server, length time.Duration) harm {
	return away("store killed", theServer, length, func(s *siege) { server.Kill(s.tb) }, func(s *siege) { server.Start(s.tb) })
}

func frozen(server *testserver.Server, length time.Duration) harm {
	return away("store frozen", theServer, length, func(s *siege) { server.Freeze(s.tb) }, func(s *siege) { server.Thaw(s.tb) })
}

// proxies lead to a store, one to each of its servers.
type proxies []*testserver.Proxy

func (p proxies) each(do func(*testserver.Proxy)) func(*siege) {
	return func(*siege) {
		for _, one := range p {
			do(one)
		}
	}
}

func cutOff(p proxies, length time.Duration) harm {
	return away("store cut off", connections, length,
		p.each(func(one *testserver.Proxy) { one.Refuse(true); one.Cut() }), p.each(func(one *testserver.Proxy) { one.Refuse(false) }))
}

// networkHarms are what is done to what leads to a store.
func networkHarms(p proxies) []harm {
	return []harm{
		cutOff(p, short), cutOff(p, long),
		away("network silent", allBytes, short,
			p.each(func(one *testserver.Proxy) { one.Hang(true) }), p.each(func(one *testserver.Proxy) { one.Hang(false) })),
		away("requests lost", requests, short,
			p.each(func(one *testserver.Proxy) { one.LoseRequests(8) }), p.each(func(one *testserver.Proxy) { one.LoseRequests(0) })),
		away("replies lost", replies, short,
			p.each(func(one *testserver.Proxy) { one.LoseReplies(16) }), p.each(func(one *testserver.Proxy) { one.LoseReplies(0) })),
	}
}

// serverHarms are what is done to a server and to what leads there.
func serverHarms(server *testserver.Server, proxy *testserver.Proxy) []harm {
	return append([]harm{
		killed(server, short), killed(server, long),
		frozen(server, short), frozen(server, long),
	}, networkHarms(proxies{proxy})...)
}

// clusterHarms are what is done to a cluster of three.
func clusterHarms(c *testserver.Cluster) []harm {
	leader := func(s *siege, fail, mend func(*testserver.Server)) func() {
		led := c.Leader(s.tb)
		fail(led)
		return func() { mend(led) }
	}
	return []harm{
		{name: "leader killed", part: theServer, outage: true, length: short, do: func(s *siege, _ draw) func() {
			return leader(s, func(m *testserver.Server) { m.Kill(s.tb) }, func(m *testserver.Server) { m.Start(s.tb) })
		}},
		{name: "leader frozen", part: theServer, outage: true, length: short, do: func(s *siege, _ draw) func() {
			return leader(s, func(m *testserver.Server) { m.Freeze(s.tb) }, func(m *testserver.Server) { m.Thaw(s.tb) })
		}},
		away("majority killed", theServer, long, func(s *siege) {
			c.Members[0].Kill(s.tb)
			c.Members[1].Kill(s.tb)
		}, func(s *siege) { c.Start(s.tb) }),
	}
}

// putBack puts an old copy in a store's place while nobody reaches it, and says so with the
// command. All processes are ended before and started after, but for two: one goes on
// with what it was granted, and one sleeps through it.
func putBack(replace func(s *siege)) harm {
	return harm{name: "store recover", part: wholeStore, length: time.Second, do: func(s *siege, d draw) func() {
		s.store.cut()
		last := (d.slot + 1) % len(s.slots)
		for i := range s.slots {
			if i != d.slot && i != last {
				s.slots[i].proc.kill()
			}
		}
		sleeps := s.slots[last].proc
		sleeps.signal(syscall.SIGSTOP)
		replace(s)
		s.restored()
		if s.waited > 0 { // the copy may be of an earlier pool than their grant files
			for i := range s.slots {
				s.slots[i].containers++
			}
		}
		return func() {
			s.store.mend()
			sleeps.cont()
			for i := range s.slots {
				if i != d.slot && i != last { // another fault may have started one meanwhile
					s.replace(i, d.off)
				}
			}
		}
	}}
}

// restored says that the store was put back.
func (s *siege) restored() {
	s.tb.Helper()
	s.era()
	cmd := exec.Command(program(s.tb, "firn"), "store", "recover", "--yes", "--store", s.store.url,
		"--outage", budget.String(), "--numbers", strconv.FormatInt(s.numbers(), 10))
	cmd.SysProcAttr = ownGroup()
	if out, err := cmd.CombinedOutput(); err != nil {
		s.tb.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// era says that the store has just lost something: no grant from before is for longer than
// the budget, but for the error of clocks.
func (s *siege) era() {
	s.world.eras = append(s.world.eras, era{begun: now(), tick: s.world.layout.Tick(time.Now().Add(budget + 2500*time.Millisecond))})
}

// failover loses a primary, and promotes a standby that lacks the last seconds of what was
// acknowledged. Where the rules are those of a store that does not forget, all who could
// notice are replaced.
func failover(primary *testserver.Server, front *testserver.Proxy) harm {
	return harm{name: "failover without the last writes", part: wholeStore, first: true, length: time.Second, do: func(s *siege, _ draw) func() {
		standby := testserver.PostgresStandby(s.tb, primary)
		s.recovers(now())
		standby.Link.Hang(true)
		for i := range 3 { // who comes now is forgotten
			s.wait(now() + time.Second + rand.N(2*time.Second))
			s.replace(i, s.apart())
		}
		wake := s.asleep()
		primary.Kill(s.tb)
		front.Refuse(true)
		front.Cut()
		standby.Promote(s.tb)
		front.Target(standby.Addr())
		front.Refuse(false)
		primary = standby.Server
		for i := range s.slots {
			if i < len(s.slots)-2 && (i < 3 || s.Broken == Vouched) {
				s.replace(i, s.apart())
			}
		}
		return wake
	}}
}

// asleep stops the last two processes until wake is called.
func (s *siege) asleep() (wake func()) {
	some := s.slots[max(0, len(s.slots)-2):]
	for i := range some {
		some[i].proc.stop()
	}
	return func() {
		for i := range some {
			some[i].proc.signal(syscall.SIGCONT)
		}
	}
}

// emptied has servers that are one store come back with nothing.
func emptied(start func(testing.TB), members ...*testserver.Server) loss {
	return loss{name: "store wiped", nothing: true, do: func(s *siege) {
		for _, m := range members {
			m.Kill(s.tb)
			m.Wipe(s.tb)
		}
		start(s.tb)
	}}
}

// recordRemoved has the record of the pool removed by hand.
var recordRemoved = loss{name: "pool's record removed", keepsWorkers: true, do: func(s *siege) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if err := removeRecord(ctx, s.store.url, "pool/"+s.pool); err != nil {
		s.tb.Fatal(err)
	}
}}

// setAside keeps a copy of the table of PostgreSQL, and dumpRestored puts it in its place,
// as pg_restore --clean does.
const setAside = `CREATE TABLE aside (LIKE firn_records INCLUDING ALL); INSERT INTO aside TABLE firn_records`

var dumpRestored = loss{name: "dump restored", do: func(s *siege) {
	s.sql(`BEGIN; DROP TABLE firn_records; CREATE TABLE firn_records (LIKE aside INCLUDING ALL); INSERT INTO firn_records TABLE aside; COMMIT`)
}}

// sql executes statements in the database of the store.
func (s *siege) sql(statements string) {
	s.tb.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	config, err := open.PostgreSQL(s.store.url)
	if err != nil {
		s.tb.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		s.tb.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.PgConn().Exec(ctx, statements).ReadAll(); err != nil {
		s.tb.Fatal(err)
	}
}

// stopForGood waits until processes issue nothing more, as their store has forgotten, and
// ends them.
func (s *siege) stopForGood(all []*proc) {
	last, since := map[*proc]int64{}, now()
	for begun := now(); now()-since < 500*time.Millisecond; time.Sleep(5 * time.Millisecond) {
		for _, p := range all {
			n := p.count()
			if n == last[p] {
				continue
			}
			last[p], since = n, now()
			if now()-begun > patience {
				s.out.problem("%s issues on after a loss, whatever was typed:\n%s", p.name, p.story())
				return
			}
		}
	}
	for _, p := range all {
		p.kill()
	}
}
