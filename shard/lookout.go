package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"github.com/firn-id/firn/internal/trouble"
	"github.com/firn-id/firn/shard/topology"
)

// A lookout knows which server a shard is on, by what the servers said when they were
// last looked at, and by where they have sent us since. It may be wrong at any time:
// firn.enter, with which a transaction begins, is what decides.
type lookout struct {
	servers map[string]*pgxpool.Pool
	looks   singleflight.Group // one at a time at a server

	mu       sync.Mutex
	views    map[string]*topology.View
	looked   map[string]time.Time // when the look began that gave the view or the fault
	faults   map[string]error     // why the last look at a server gave no view
	followed map[int64]hop        // what is newer than the views
	m        *topology.Map        // of views
}

// A hop is where a server said that a shard went.
type hop struct {
	from, to string
	told     time.Time
}

const (
	// lookEvery is how often a server is looked at, at most.
	lookEvery = 250 * time.Millisecond
	// lookPatience is how long a look may take.
	lookPatience = 3 * time.Second
	// noShardFor is how long it is believed that no server knows a shard, or only one
	// without a pool.
	noShardFor = 5 * time.Second
)

func newLookout(servers map[string]*pgxpool.Pool) *lookout {
	return &lookout{
		servers: maps.Clone(servers), views: map[string]*topology.View{}, looked: map[string]time.Time{},
		faults: map[string]error{}, followed: map[int64]hop{}, m: &topology.Map{},
	}
}

// first looks at all servers, of which one has to answer.
func (l *lookout) first(ctx context.Context) error {
	if err := l.look(ctx, l.names(""), time.Now()); err != nil {
		return err
	}
	all := l.trouble()
	for _, err := range all {
		if errors.Is(err, errMismatch) {
			return err
		}
	}
	if !l.heard(time.Time{}) {
		return errors.Join(all...)
	}
	return nil
}

// trouble is why servers gave no view when they were last looked at.
func (l *lookout) trouble() (all []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.faults)) {
		all = append(all, l.faults[name])
	}
	return all
}

// heard says whether a server has given a view since an instant.
func (l *lookout) heard(since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, looked := range l.looked {
		if l.faults[name] == nil && !looked.Before(since) {
			return true
		}
	}
	return false
}

// names are the servers, but for one.
func (l *lookout) names(without string) []string {
	names := make([]string, 0, len(l.servers))
	for name := range l.servers {
		if name != without {
			names = append(names, name)
		}
	}
	return names
}

// look looks at some servers, if that was not done since an instant. Its error is that
// of ctx; what servers say, or that they do not, is noted.
func (l *lookout) look(ctx context.Context, names []string, since time.Time) error {
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() { l.lookAt(ctx, name, since) })
	}
	all.Wait()
	return ctx.Err()
}

func (l *lookout) lookAt(ctx context.Context, name string, since time.Time) {
	for ctx.Err() == nil && l.lastLook(name).Before(since) {
		select {
		case <-l.startLook(name):
		case <-ctx.Done():
		}
	}
}

// refresh has some servers looked at meanwhile, where that was not done just now.
func (l *lookout) refresh(names []string) {
	for _, name := range names {
		if time.Since(l.lastLook(name)) > lookEvery {
			l.startLook(name)
		}
	}
}

// startLook looks at a server, or joins who does. The look is made for all who wait,
// so it does not end with one of them.
func (l *lookout) startLook(name string) <-chan singleflight.Result {
	return l.looks.DoChan(name, func() (any, error) {
		time.Sleep(time.Until(l.lastLook(name).Add(lookEvery)))
		ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
		defer cancel()
		begun := time.Now()
		view, err := topology.Look(ctx, l.servers[name])
		l.note(name, begun, view, err)
		return nil, nil
	})
}

func (l *lookout) lastLook(name string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looked[name]
}

// errMismatch: a server is not the one it should be.
var errMismatch = errors.New("the servers do not belong together")

// note takes down what a look gave. A view that does not fit to the others changes
// nothing, and one that could not be had leaves the last.
func (l *lookout) note(name string, begun time.Time, view *topology.View, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looked[name] = begun
	views, faults := maps.Clone(l.views), maps.Clone(l.faults)
	if err != nil {
		faults[name] = &topology.ServerError{Server: name, Err: trouble.Explain(err)}
	} else {
		views[name] = view
		delete(faults, name)
	}
	m := l.m
	if len(views) > 0 {
		var wrong error
		if m, wrong = topology.NewMap(withoutOutdated(views, faults)); wrong != nil {
			l.faults[name] = fmt.Errorf("%w (%w)", wrong, errMismatch)
			return
		}
	}
	l.views, l.faults, l.m = views, faults, m
	if err != nil {
		return
	}
	maps.DeleteFunc(l.followed, func(_ int64, h hop) bool { return h.from == name && h.told.Before(begun) })
	for _, row := range view.Shards {
		if h, ok := l.followed[row.Shard]; ok && h.told.Before(begun) && row.Serves() && row.Term > l.termBeside(name, row.Shard) {
			l.followed[row.Shard] = hop{h.from, name, h.told}
		}
	}
}

// termBeside is the highest term of a shard that any server but one has told. One that
// serves at a higher term opened the shard after all of them: so it is there, though who
// sent us elsewhere before never answers again.
func (l *lookout) termBeside(without string, shard int64) (highest int64) {
	for name, v := range l.views {
		for _, row := range v.Shards {
			if name != without && row.Shard == shard {
				highest = max(highest, row.Term)
			}
		}
	}
	return highest
}

// withoutOutdated are views without what servers that do not answer said of shards that
// another server has opened since, or let go since, which has a higher term. Of a shard that was let
// go to a server which does not answer, only that server can say whether it has the shard.
func withoutOutdated(views map[string]*topology.View, faults map[string]error) map[string]*topology.View {
	since := make(map[int64]int64) // the highest term, by shard
	for name, v := range views {
		for _, row := range v.Shards {
			if faults[name] == nil && (row.Serves() || row.State == topology.StateMoved) {
				since[row.Shard] = max(since[row.Shard], row.Term)
			}
		}
	}
	believed := maps.Clone(views)
	for name, v := range views {
		if faults[name] != nil {
			last := *v
			last.Shards = slices.DeleteFunc(slices.Clone(v.Shards), func(row topology.Row) bool { return row.Term < since[row.Shard] })
			believed[name] = &last
		}
	}
	return believed
}

// follow takes down that a server said a shard went to another.
func (l *lookout) follow(shard int64, from, to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followed[shard] = hop{from, to, time.Now()}
}

// route is the server that a shard is on, or why it is on none.
func (l *lookout) route(shard int64) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	server := l.followed[shard].to
	if server == "" {
		r, ok := l.m.Route(shard)
		switch {
		case !ok:
			return "", l.unknown(shard)
		case r.Server == "":
			return "", &noServer{shard, r.Why}
		}
		server = r.Server
	}
	if l.servers[server] == nil {
		if l.longAgo() {
			return "", &noServer{shard, "it was on " + server + " a while ago"}
		}
		return "", fmt.Errorf("shard: shard %d is on server %s, which this cluster was opened without", shard, server)
	}
	return server, nil
}

// longAgo says whether a server was last looked at too long ago to believe that a shard
// is out of reach.
func (l *lookout) longAgo() bool {
	since := time.Now().Add(-noShardFor)
	for name := range l.servers {
		if l.looked[name].Before(since) {
			return true
		}
	}
	return false
}

// unknown is why a shard has no route: there is none, as all servers say, or one of
// them might.
func (l *lookout) unknown(shard int64) error {
	for _, name := range slices.Sorted(maps.Keys(l.faults)) {
		return &noServer{shard, "no server that answers knows it; " + strings.TrimPrefix(l.faults[name].Error(), "shard: ")}
	}
	if l.longAgo() {
		return &noServer{shard, "no server knew it a while ago"}
	}
	if len(l.m.Missing) > 0 {
		return fmt.Errorf("shard: shard %d is on no server that this cluster was opened with; there is also %s", shard, strings.Join(l.m.Missing, ", "))
	}
	return fmt.Errorf("shard: %w: %d", ErrNoShard, shard)
}

// numbers are the shards that some server knows; and all below count, while what one of
// the servers knows is not known.
func (l *lookout) numbers(count int64) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	numbers := make([]int64, 0, len(l.m.Routes))
	for _, r := range l.m.Routes {
		numbers = append(numbers, r.Shard)
	}
	if len(l.views) < len(l.servers) || len(l.m.Missing) > 0 {
		for n := range count {
			numbers = append(numbers, n)
		}
		slices.Sort(numbers)
		numbers = slices.Compact(numbers)
	}
	return numbers
}

// noServer: a shard is nowhere now. It may be somewhere after another look.
type noServer struct {
	shard int64
	why   string
}

func (e *noServer) Error() string {
	return fmt.Sprintf("shard: shard %d is on no server: %s", e.shard, e.why)
}

// Map returns what the servers said when they were last asked. Do not change it.
func (l *lookout) Map() *topology.Map {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.m
}
