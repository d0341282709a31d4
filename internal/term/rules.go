package term

import (
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// Rules are what a member of a pool obeys. All durations are positive but
// Outage.
type Rules struct {
	Pool   string
	Layout firn.Layout
	Build  string // the version of firn, for people

	Choice Choice
	Worker int64 // the one that Insist and Prefer mean; one that the pool does not have is refused

	Reach  time.Duration // how far ahead of the clock the first grant goes, doubled by each extension
	Outage time.Duration // W: how far ahead of the clock a grant ever goes; 0: see [Rules.Budget]
	Renew  time.Duration // between two extensions, at most
	TTL    time.Duration // a record not written for so long may be taken; less while a grant is short
	Skew   time.Duration // bound of the error of any member's clock, and of the store's
	Wait   time.Duration // for a worker to become free, or for its base to pass
	Borrow time.Duration // how far ids run ahead of the clock
	Look   time.Duration // how often a holder asks what the store promises

	// LocalClock: the store's clock is this host's own, so it cannot judge the clock.
	LocalClock bool
}

// A Choice says which worker a process takes.
type Choice uint8

const (
	Recycle Choice = iota // any free one
	Fresh                 // one that nobody ever had, as long as there is one
	Insist                // Rules.Worker or none
	Prefer                // Rules.Worker if it is free, else any other of the pool
)

// Defaults of a pool.
const (
	Reach         = 10 * time.Second
	Renew         = 10 * time.Second
	TTL           = 30 * time.Second
	Skew          = record.Skew
	Wait          = 5 * time.Second
	Look          = time.Minute
	OutageDurable = 5 * time.Minute
	OutageLossy   = 3 * time.Second
)

// Default returns the rules of a pool on a store of such durability.
func Default(pool string, layout firn.Layout, p store.Durability) Rules {
	return Rules{
		Pool: pool, Layout: layout,
		Reach: Reach, Renew: Renew, TTL: TTL, Skew: Skew, Wait: Wait, Look: Look,
		Borrow: firn.DefaultBorrow, LocalClock: p.LocalClock,
	}
}

// Budget returns W, how far ahead of the clock a grant of this member's ever
// goes, in a pool with such a record: what the member wants, once the record
// says so. On a lossy store the record is not raised, since the others
// work out from it how long to wait. With Outage 0 the budget is 5 min, or there what
// the record allows. It is never above the pool's limit.
func (r *Rules) Budget(p Pool, lossy bool) time.Duration {
	most := p.OutageLimit()
	if lossy {
		most = p.LongestOutage()
	}
	if r.Outage == 0 {
		return min(OutageDurable, most)
	}
	return min(r.Outage, most)
}

// StartDelay is how long each process waits that starts, on a lossy store.
func (r *Rules) StartDelay(p Pool) time.Duration {
	return max(r.Quarantine(p), r.Budget(p, true)+2*r.Skew)
}

// Quarantine returns Q: on a lossy store, a new holder issues nothing
// before its clock, read after the acknowledgement, has passed Q. A grant that was
// forgotten reached at most as far beyond its holder's clock as the pool's record
// says, and that clock and the new holder's are each off by Skew at most.
func (r *Rules) Quarantine(p Pool) time.Duration { return p.LongestOutage() + 2*r.Skew }

// mostListed is the largest pool that is listed to find a free worker. In a larger
// one workers are looked up at random.
const mostListed = 4096

// probes is how many workers of a large pool are looked up in one round.
const probes = 64

// Keys of records, for whoever reads or writes them without holding a term.
const (
	KeyStore = "store" // of the record that holds for every pool of a store
	KeyPools = "pool/" // prefix of every pool's record and its workers'
)

// KeyPool is the key of a pool's record.
func KeyPool(pool string) string { return KeyPools + pool }

// KeyWorkers is the prefix of the keys of a pool's workers.
func KeyWorkers(pool string) string { return KeyPool(pool) + "/worker/" }

// KeyWorker is the key of a worker's record.
func KeyWorker(pool string, n int64) string { return KeyWorkers(pool) + strconv.FormatInt(n, 10) }

// WorkerOf returns the number in the key of a pool's worker.
func WorkerOf(pool, key string) (n int64, ok bool) {
	s, ok := strings.CutPrefix(key, KeyWorkers(pool))
	n, err := strconv.ParseInt(s, 10, 64)
	return n, ok && err == nil && n >= 0
}

// keyFresh is the record that says where to look for a worker nobody ever had.
func keyFresh(pool string) string { return KeyPool(pool) + "/fresh" }

// reach is how far ahead of the clock the grant after one of reach d goes.
func (r *Rules) reach(d, budget time.Duration) time.Duration {
	return min(max(2*d, r.Reach), budget)
}

// ttl is after how long without a write the holder of a grant that reaches d is
// taken for dead. A holder in its ramp writes often, so its worker falls free
// early: a crash loop costs seconds of a worker, not minutes.
func (r *Rules) ttl(d time.Duration) time.Duration {
	return min(max(d, r.Reach), r.TTL)
}

// due is how long after a grant of reach d was asked for it is extended.
func (r *Rules) due(d time.Duration) time.Duration {
	return min(d/3, r.Renew)
}

// tick is the layout's tick at t, within the layout's life.
func (r *Rules) tick(t time.Time) firn.Tick {
	return min(max(r.Layout.Tick(t), 0), r.Layout.Last())
}
