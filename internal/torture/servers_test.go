//go:build linux

package torture

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/open"
)

// A backend is a store that is a server.
type backend struct {
	name    string
	start   func(testing.TB, ...string) *testserver.Server
	options string // of its URL
}

var backends = []backend{
	{"postgres", testserver.Postgres, ""},
	{"mysql", testserver.MariaDB, ""},
	// The test server has its data again after a kill, as it writes each command
	// to its disk first: an operator could vouch for it.
	{"redis", testserver.Redis, "promise=strict"},
	{"etcd", testserver.Etcd, ""},
	{"zookeeper", testserver.ZooKeeper, ""},
}

// through is the URL of a server by way of a proxy, with options.
func through(url, addr string, p *testserver.Proxy, options string) string {
	url = strings.Replace(url, addr, p.Addr(), 1)
	if options == "" {
		return url
	}
	if strings.Contains(url, "?") {
		return url + "&" + options
	}
	return url + "?" + options
}

// A siege is eight processes and a store that has servers.
type siege struct {
	t      *testing.T
	world  *world
	procs  []*proc
	budget time.Duration // outage budget
	next   int           // the process to be replaced next
}

// besiege founds a pool on an empty store, and starts the processes all at once.
func besiege(t *testing.T, url string, budget time.Duration, args ...string) *siege {
	t.Helper()
	const workers = 12
	found(t, url, &lease.Options{Workers: workers, Outage: budget})
	s := &siege{t: t, budget: budget}
	s.world = newWorld(t, with([]string{
		"-outage", budget.String(), "-renew", "300ms", "-ttl", "1s", "-workers", strconv.Itoa(workers), "-insist",
		"-hands", "3", "-rate", "200", "-draw", "mixed", "-batch", "16",
	}, args)...)
	s.world.url = url
	program(t, "holder") // is not to be built while others wait
	r, barrier, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		s.procs = append(s.procs, s.world.start(launch{args: []string{"-barrier"}, files: []*os.File{r}}))
	}
	r.Close()
	for _, p := range s.procs {
		p.await(Started)
	}
	barrier.Close()
	for _, p := range s.procs {
		p.await(Opened)
	}
	s.issue()
	return s
}

// found makes a pool whose ids begin at once, as "firn store init --new" does.
func found(t *testing.T, url string, opts *lease.Options) {
	t.Helper()
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := lease.Found(t.Context(), s, "torture", opts); err != nil {
		t.Fatal(err)
	}
}

// issue waits until every process has issued some ids more.
func (s *siege) issue() {
	s.t.Helper()
	for _, p := range s.procs {
		p.issues(50)
	}
}

// places are how much each process has said so far.
func (s *siege) places() map[*proc]int {
	places := map[*proc]int{}
	for _, p := range s.procs {
		places[p] = p.seen()
	}
	return places
}

// away has the store be away for less than the outage budget. Ids go on, and when
// it is back so do extensions.
func (s *siege) away(what string, fail, mend func()) {
	s.t.Helper()
	s.settled()
	places, begun := s.places(), now()
	fail()
	s.issue()
	mend()
	mended := now()
	slowest := s.extended(places, mended)
	calls := 0
	for p, place := range places {
		for _, e := range p.find(place, named(Failed)) {
			calls++
			s.early(what, p, e, begun)
		}
	}
	s.t.Logf("%-17s for %6s, all extended %6s after that; %d calls failed", what, round(mended-begun), round(slowest), calls)
}

// early reports a call that failed too soon after the store went away, if that is
// before the horizon. The last extension before is up to a renewal old; on a busy
// machine it is older, and the horizon nearer.
func (s *siege) early(what string, p *proc, failed Event, begun time.Duration) {
	s.t.Helper()
	at := time.Duration(failed.Boot) - begun
	if left := s.world.left(p, failed); at < s.budget-1500*time.Millisecond && left > 0 {
		s.t.Errorf("%s: %s: a call fails after %s, and the budget is %s: %s before the horizon: %s",
			what, p.name, round(at), s.budget, round(left), failed.Text)
	}
}

// left is how long it was from an event of p's to the horizon that it then had.
func (w *world) left(p *proc, at Event) time.Duration {
	granted := p.find(0, func(e Event) bool { return e.Event == Granted && e.Boot <= at.Boot })
	wall := time.Now().Add(time.Duration(at.Boot) - now() + p.skew.get())
	return w.layout.Time(granted[len(granted)-1].Horizon).Sub(wall)
}

// settled waits until all have a lease, and the whole budget.
func (s *siege) settled() {
	s.t.Helper()
	for _, p := range s.procs {
		p.await(Opened)
	}
	s.extended(s.places(), now())
}

// extended waits until the store has acknowledged something to each process since
// an instant, and returns how long the last of them took.
func (s *siege) extended(places map[*proc]int, since time.Duration) (slowest time.Duration) {
	s.t.Helper()
	for p, place := range places {
		e, _ := p.after(place, "an extension after the store is back", func(e Event) bool {
			return e.Event == Granted && time.Duration(e.Boot) > since
		})
		slowest = max(slowest, time.Duration(e.Boot)-since)
	}
	return slowest
}

// beyond has the store be away for longer than the outage budget. Calls fail, and
// say why; when it is back they succeed again.
func (s *siege) beyond(what string, fail, mend func()) {
	s.t.Helper()
	s.settled()
	places, begun := s.places(), now()
	fail()
	var first, last time.Duration // of the calls that fail
	for _, p := range s.procs {
		for range 3 { // hands
			var e Event
			e, places[p] = p.after(places[p], "calls fail", named(Failed))
			want := Outage
			if e.Hand == 2 { // it tries, and does not wait
				want = Spent
			}
			if e.Kind != want {
				s.t.Errorf("%s: %s hand %d fails with %s: %s", what, p.name, e.Hand, e.Kind, e.Text)
			}
			s.early(what, p, e, begun)
			at := time.Duration(e.Boot) - begun
			if last = max(last, at); first == 0 || at < first {
				first = at
			}
		}
	}
	if last > s.budget+20*time.Second { // when a busy machine gets to it
		s.t.Errorf("%s: calls fail after %s to %s, and the budget is %s", what, round(first), round(last), s.budget)
	}
	before := map[*proc]int64{}
	for _, p := range s.procs {
		before[p] = p.count()
	}
	late := s.world.start(launch{})
	e := late.await(Refused)
	if e.Kind != Away && e.Kind != Other { // what the store says, with or without a try of the lease's
		s.t.Errorf("%s: who comes now is refused with %s: %s", what, e.Kind, e.Text)
	}
	for _, p := range s.procs {
		if n := p.count(); n != before[p] {
			s.t.Errorf("%s: %s has issued %d ids more", what, p.name, n-before[p])
		}
	}
	mend()
	mended := now()
	late.await(Opened)
	s.procs = append(s.procs, late)
	var slowest time.Duration
	for _, p := range s.procs {
		p.issues(50)
		slowest = max(slowest, now()-mended)
	}
	s.t.Logf("%-17s calls failed after %s to %s (%s); all issued %s after it was back", what, round(first), round(last), e.Text, round(slowest))
}

// replace kills a process, and starts another with a clock that is off.
func (s *siege) replace(off time.Duration) {
	s.t.Helper()
	i := s.next % len(s.procs)
	s.next++
	s.procs[i].kill()
	s.procs[i] = s.world.start(launch{off: off})
}

// end gives all workers back, and looks at all ids.
func (s *siege) end() {
	s.t.Helper()
	s.settled()
	for _, p := range s.procs {
		p.say("close")
	}
	for _, p := range s.procs {
		p.close()
		for _, e := range p.find(0, named(Failed, "garbage")) {
			if e.Kind != Outage && e.Kind != Spent && e.Kind != Shut {
				s.t.Errorf("%s: %s %s: %s", p.name, e.Event, e.Kind, e.Text)
			}
		}
	}
	s.look()
}

// look ends what still runs, and looks at all ids.
func (s *siege) look() {
	s.t.Helper()
	if r := s.world.check(); r.IDs < 10_000 {
		s.t.Errorf("only %d ids were issued", r.IDs)
	}
}

// A harm is done to a server, and undone.
type harm struct {
	name       string
	fail, mend func()
}

// harms are what is done to a server and to what leads there.
func harms(t *testing.T, server *testserver.Server, proxy *testserver.Proxy) []harm {
	last := func(calls ...func()) func() { // as long as clients need to notice
		return func() {
			for _, call := range calls {
				call()
			}
			time.Sleep(500*time.Millisecond + rand.N(time.Second))
		}
	}
	kill, up := func() { server.Kill(t) }, func() { server.Start(t) }
	return []harm{
		{"killed", kill, up},
		{"killed for longer", last(kill), up},
		{"frozen", last(func() { server.Freeze(t) }), func() { server.Thaw(t) }},
		{"refused", last(func() { proxy.Refuse(true) }, proxy.Cut), func() { proxy.Refuse(false) }},
		{"silent", last(func() { proxy.Hang(true) }), func() { proxy.Hang(false) }},
		{"requests lost", last(func() { proxy.LoseRequests(8) }), func() { proxy.LoseRequests(0) }},
		{"replies lost", last(func() { proxy.LoseReplies(16) }), func() { proxy.LoseReplies(0) }},
	}
}

// Each store's server is killed, frozen, cut off and stopped for long, while eight
// processes issue ids, and is there again. In the long form that is done at random.
func TestServerAway(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			length, long := asked(t)
			if !long {
				t.Parallel()
			}
			server := b.start(t)
			proxy := testserver.NewProxy(t, server.Addr())
			s := besiege(t, through(server.URL(), server.Addr(), proxy, b.options), 5*time.Second)
			all := harms(t, server, proxy)
			for i, h := range all {
				s.away(h.name, h.fail, h.mend)
				if i == 0 {
					s.replace(0)
				}
			}
			s.beyond("stopped for long", func() { server.Stop(t) }, func() { server.Start(t) })
			for begun := now(); now()-begun < length; {
				h := all[rand.N(len(all))]
				s.away(h.name, h.fail, h.mend)
				s.replace(0)
			}
			s.end()
		})
	}
}
