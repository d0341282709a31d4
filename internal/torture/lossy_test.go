//go:build linux

package torture

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// Stores of several servers, and stores that forget what they acknowledged. All but
// the last are long forms, which do the same again and again.

// long skips a test that is a long form unless one is asked for, and returns what
// says whether to go on.
func long(t *testing.T) func() bool {
	t.Helper()
	length, ok := asked(t)
	if !ok {
		t.Skip("a long form: FIRN_TORTURE=2m")
	}
	begun := now()
	return func() bool { return now()-begun < length }
}

// A cluster of three loses its leader, by a kill or because it freezes, and has
// another one.
func TestLeaderLost(t *testing.T) {
	for _, tt := range []struct {
		name  string
		start func(testing.TB, int) *testserver.Cluster
	}{
		{"etcd", testserver.EtcdCluster},
		{"zookeeper", testserver.ZooKeeperCluster},
	} {
		t.Run(tt.name, func(t *testing.T) {
			more := long(t)
			c := tt.start(t, 3)
			s := besiege(t, c.URL(), 20*time.Second)
			for n := 0; more(); n++ {
				leader := c.Leader(t)
				if n%2 == 0 {
					s.away("leader killed", func() { leader.Kill(t) }, func() { c.Leader(t) })
					leader.Start(t)
				} else {
					s.away("leader frozen", func() { leader.Freeze(t) }, func() { s.another(c, leader) })
					leader.Thaw(t)
				}
				s.replace(0)
				s.settled()
			}
			s.beyond("no majority", func() { c.Members[0].Kill(t); c.Members[1].Kill(t) }, func() { c.Start(t) })
			s.end()
		})
	}
}

// another waits until a member leads that is not the frozen one.
func (s *siege) another(c *testserver.Cluster, frozen *testserver.Server) {
	s.t.Helper()
	rest := *c
	rest.Members = nil
	for _, m := range c.Members {
		if m != frozen {
			rest.Members = append(rest.Members, m)
		}
	}
	rest.Leader(s.t)
}

// mostSkew is close to how far clocks may be off, of those who hold leases on a store
// that forgets.
const mostSkew = 4500 * time.Millisecond

// either is a clock that is as fast, or as slow, as may be.
func either() time.Duration {
	if rand.N(2) == 0 {
		return mostSkew
	}
	return -mostSkew
}

// besiegeLossy is besiege for a store that forgets, with clocks as far apart as may
// be. Ids come in batches that fill most of a tick: two processes that issue from
// the same ticks of a worker repeat each other's for sure.
func besiegeLossy(t *testing.T, url string) *siege {
	t.Helper()
	s := besiege(t, url, 3*time.Second, "-draw", "append", "-batch", "2500", "-rate", "40")
	s.world.lossy = true
	for range s.procs {
		s.replace(either())
	}
	s.begins()
	return s
}

// begins waits until all have leases. On a store that forgets that takes 13 s and more.
func (s *siege) begins() {
	s.t.Helper()
	begun := now()
	for _, p := range s.procs {
		p.await(Opened)
	}
	s.issue()
	s.t.Logf("all issue after %s", round(now()-begun))
}

// asleep stops some processes until wake is called.
func (s *siege) asleep(some []*proc) (wake func()) {
	for _, p := range some {
		p.stop()
	}
	return func() {
		for _, p := range some {
			p.signal(syscall.SIGCONT)
		}
	}
}

// A PostgreSQL primary loses its standby and goes on alone; then it dies, and the
// standby is promoted without the last seconds of what was acknowledged. The lossy
// rules have nothing repeat, though all clocks are off by as much as they may be.
// An operator who vouches for such a store is wrong, and ids repeat: were it
// otherwise, nothing would be tested.
func TestFailoverLosesWrites(t *testing.T) {
	for _, promise := range []string{"lossy", "strict"} {
		t.Run(promise, func(t *testing.T) {
			more := long(t)
			primary := testserver.Postgres(t)
			front := testserver.NewProxy(t, primary.Addr())
			s := besiegeLossy(t, through(primary.URL(), primary.Addr(), front, "promise="+promise))
			for more() {
				primary = s.failover(primary, front, promise == "strict")
				s.begins()
			}
			if promise == "lossy" {
				s.look()
			} else if r := s.world.report(); r.Repeated == 0 {
				t.Error("a store that forgets, by the rules for one that does not: no id was issued twice, so these failovers are harmless")
			}
		})
	}
}

// failover makes the server behind front another one, which lacks the last seconds
// of writes. Where none of the processes can go on, others come in their place.
func (s *siege) failover(primary *testserver.Server, front *testserver.Proxy, all bool) *testserver.Server {
	s.t.Helper()
	standby := testserver.PostgresStandby(s.t, primary)
	s.settled()
	standby.Link.Hang(true)
	begun := now()
	for range 3 { // who comes now is forgotten
		time.Sleep(time.Second + rand.N(2*time.Second))
		s.replace(either())
	}
	wake := s.asleep(s.procs[:2])
	lost := now() - begun
	primary.Kill(s.t)
	front.Refuse(true)
	front.Cut()
	standby.Promote(s.t)
	front.Target(standby.Addr())
	front.Refuse(false)
	dead := 3 // who issued until now, and others in their place
	if all {
		dead = len(s.procs)
	}
	for range dead {
		s.replace(either())
	}
	wake()
	s.t.Logf("%s of writes were lost", round(lost))
	return standby.Server
}

// A Redis server comes back with nothing of what it acknowledged. Who holds a lease
// stops; who comes later starts above all that may have been granted.
func TestWiped(t *testing.T) {
	more := long(t)
	server := testserver.Redis(t)
	s := besiegeLossy(t, server.URL())
	for more() {
		s.settled()
		before := s.procs
		places := s.places()
		wake := s.asleep(before[:2])
		server.Kill(t)
		server.Wipe(t)
		server.Start(t)
		s.procs = nil
		for range before {
			s.procs = append(s.procs, s.world.start(launch{off: either()}))
		}
		time.Sleep(rand.N(4 * time.Second))
		wake()
		for _, p := range before {
			e, _ := p.after(places[p], "it stops", func(e Event) bool { return e.Event == Failed && e.Hand != 2 })
			if e.Kind != Forgot && e.Kind != Outage {
				t.Errorf("%s fails with %s: %s", p.name, e.Kind, e.Text)
			}
		}
		s.begins()
		for _, p := range before {
			p.kill()
		}
	}
	s.look()
}

// A Redis server that may forget is killed, and has forgotten nothing: who is known
// to be alive goes on, by the lossy rules too.
func TestLossyServerAway(t *testing.T) {
	t.Parallel()
	server := testserver.Redis(t)
	s := besiege(t, server.URL(), 3*time.Second, "-ttl", "10s")
	s.world.lossy = true
	for range 3 {
		s.away("killed", func() { server.Kill(t) }, func() { server.Start(t) })
	}
	s.end()
	for _, p := range s.procs {
		if lost := p.find(0, func(e Event) bool { return e.Event == Failed && e.Kind != Shut }); len(lost) > 0 {
			t.Errorf("%s: calls failed for want of an extension: %s", p.name, lost[0].Text)
		}
	}
}
