package term

import (
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// Saved is a grant that another process of the same host and the same boot can
// go on with, when this one is dead.
type Saved struct {
	PoolID  string        `json:"pool_id"`
	Worker  int64         `json:"worker"`
	Record  Record        `json:"record"` // as last acknowledged
	Version store.Version `json:"version"`
	Since   time.Duration `json:"since"` // boot time at which it was asked for
	Reach   time.Duration `json:"reach"`
	Read    time.Time     `json:"read"`  // the store's clock when the boot clock said 0
	Lossy   bool          `json:"lossy"` // by the rules for a lossy store
}

// Saved returns what can be issued from, if anything can.
func (s State) Saved() (Saved, bool) {
	_, ok := s.Grant()
	return Saved{
		PoolID: s.poolID, Worker: s.Worker, Record: s.Have, Version: s.version,
		Since: s.Since, Reach: s.Reach, Read: s.read, Lossy: s.Lossy,
	}, ok
}

// Resume returns the state, before Begin, of a term that goes on with a saved
// grant, above mark: a tick that nothing issued so far is above. The process
// that saved it is dead.
func Resume(seed [32]byte, name string, v Saved, mark firn.Tick) State {
	return State{
		Phase: Holding, Worker: v.Worker, Have: v.Record, Base: mark, Since: v.Since, Reach: v.Reach,
		name: name, heir: true, poolID: v.PoolID, random: *rand.NewChaCha8(seed),
		version: v.Version, read: v.Read, heard: v.Since,
	}
}
