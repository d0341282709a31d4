package term

import (
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// Rules are what every member of a pool obeys. All durations are positive but
// Quarantine.
type Rules struct {
	Pool    string
	Layout  firn.Layout
	First   int64 // worker numbers are First to First+Workers-1
	Workers int64 // 0: as the pool was founded, with all of the layout's

	Choice Choice
	Worker int64 // the one that Insist and Prefer mean

	Reach  time.Duration // how far ahead of the clock the first grant goes, doubled by each extension
	Outage time.Duration // W: how far ahead of the clock a grant ever goes
	Renew  time.Duration // between two extensions, at most
	TTL    time.Duration // a record not written for so long may be taken; less while a grant is short
	Skew   time.Duration // bound of the error of any member's clock, and of the store's
	Wait   time.Duration // for a worker to become free, or for its base to pass
	Borrow time.Duration // how far ids run ahead of the clock

	// Lossy: the store can forget a write it acknowledged. Quarantine is Q: a
	// new holder issues nothing before its clock has passed everything that a
	// forgotten grant may have reached; 0 on a strict store.
	Lossy      bool
	Quarantine time.Duration

	// Embedded: the store's clock is this host's own, so it cannot judge the
	// clock; and a pool that it lacks was never there.
	Embedded bool
}

// A Choice says which worker a process takes.
type Choice uint8

const (
	Recycle Choice = iota // any free one
	Fresh                 // one that nobody ever had, as long as there is one
	Insist                // Rules.Worker or none
	Prefer                // Rules.Worker where it is free, else any
)

// Defaults of a pool.
const (
	Reach        = 10 * time.Second
	Renew        = 10 * time.Second
	TTL          = 30 * time.Second
	Skew         = 5 * time.Second
	Wait         = 5 * time.Second
	OutageStrict = 5 * time.Minute
	OutageLossy  = 3 * time.Second
)

// Default returns the rules of a pool on a store with such a promise.
func Default(pool string, layout firn.Layout, p store.Promise) Rules {
	r := Rules{
		Pool: pool, Layout: layout,
		Reach: Reach, Renew: Renew, TTL: TTL, Skew: Skew, Wait: Wait,
		Borrow: firn.DefaultBorrow, Embedded: p.Embedded, Lossy: p.Class != store.Strict,
	}
	r.SetOutage(OutageStrict)
	if r.Lossy {
		r.SetOutage(OutageLossy)
	}
	return r
}

// SetOutage sets W, and Q with it. A grant that a lossy store has forgotten
// reached at most W beyond its holder's clock; that clock and the next holder's
// are each off by Skew at most.
func (r *Rules) SetOutage(w time.Duration) {
	r.Outage, r.Quarantine = w, 0
	if r.Lossy {
		r.Quarantine = w + 2*r.Skew
	}
}

// listed is the largest pool that is listed to find a free worker. In a larger
// one workers are looked up at random.
const listed = 4096

// probes is how many workers of a large pool are looked up in one round.
const probes = 64

// keyPool, keyWorkers and keyWorker name a pool's records.
func keyPool(pool string) string    { return "pool/" + pool }
func keyWorkers(pool string) string { return "pool/" + pool + "/worker/" }
func keyWorker(pool string, n int64) string {
	return fmt.Sprintf("%s%d", keyWorkers(pool), n)
}

// keyFresh is the record that says where to look for a worker nobody ever had.
func keyFresh(pool string) string { return "pool/" + pool + "/fresh" }

// keyStore is the record that holds for every pool of a store.
const keyStore = "store"

// reach is how far ahead of the clock the grant after one of reach d goes.
func (r *Rules) reach(d time.Duration) time.Duration {
	return min(max(2*d, r.Reach), r.Outage)
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
