// Package store is the one contract under every protocol of firn: small
// versioned records that are compared and set, and never forgotten.
//
// An adapter is a package of its own, made from the client the program already
// has; [github.com/firn-id/firn/store/sqlite] needs none. Whoever writes one
// runs [github.com/firn-id/firn/store/storetest] against it.
package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// A Store keeps records. There is no delete: a record carries what must never
// be forgotten. All methods may be called from many goroutines at once, and return
// soon after their ctx has ended, whatever the store does: whoever calls waits for
// nothing else.
//
// A key is 1 to [MaxKey] bytes of printable ASCII without space; a value at
// most [MaxValue] bytes of JSON, so that a person can look.
type Store interface {
	// Get returns the record of key. One never written has the zero Version
	// and no value; that is not an error. It sees every Put acknowledged
	// before it was called.
	Get(ctx context.Context, key string) (Record, error)

	// Put writes value under a new Version if the record is, in the store and
	// at that instant, as cond says, and returns the record as written.
	//
	// ErrConflict means that this Put was not and never will be carried out.
	// After any other error the outcome is unknown: it may be carried out
	// later, once, or never. The Version of the record returned with the error
	// is then the one that was tried, or zero if nothing was sent; whoever
	// finds it in the store knows the write for its own.
	//
	// An adapter sends a Put once. It switches its client's own retries off.
	Put(ctx context.Context, key string, value []byte, cond Condition) (Record, error)

	// List returns the records whose keys begin with prefix, by key, bytewise.
	List(ctx context.Context, prefix string) ([]Record, error)

	// Durability looks at the store and returns what its acknowledgement is worth now. The
	// answer may change, so callers ask again as time goes by.
	Durability(ctx context.Context) (Durability, error)
}

// Limits of keys and values, in bytes.
const (
	MaxKey   = 255
	MaxValue = 64 << 10
)

// A Record is one value as the store had it at the instant Read.
type Record struct {
	Key     string
	Value   []byte
	Version Version
	Written time.Time // by the store's clock; zero where it has none, or never written
	Read    time.Time // by the store's clock; zero where it has none
}

// A Version names one write, never a count: a count repeats after a store was
// rolled back, and would take an old writer's word for the new one's. The zero
// Version is that of a record never written.
type Version string

// NewVersion returns 128 random bits, for one Put.
func NewVersion() Version {
	var b [16]byte
	rand.Read(b[:])
	return Version(hex.EncodeToString(b[:]))
}

// A Condition is what must hold, in the store, when a Put is carried out.
type Condition struct {
	// Version of the record that is replaced; zero: it was never written.
	Version Version
	// Within: the record was written no longer ago than this, by the store's
	// clock. Zero, or a store without a clock: any time. None holds for a record
	// that was never written, and a negative one never.
	Within time.Duration
}

// A Durability says what a store does with a write that it acknowledged. The zero Durability
// is that of a store that may lose one.
type Durability struct {
	// Durable means that the store never loses a write that it acknowledged. A store that is
	// not durable is called lossy.
	Durable bool

	// Why is what was seen, for a person: "journal_mode=wal synchronous=full".
	Why string

	// LocalClock means that the store's clock is this host's own, because the store is in this
	// process or in a file of this host. Such a clock cannot judge the host's.
	LocalClock bool

	// NoticesLoss means that the store notices when it was removed or replaced, and then fails
	// with a [*ForgotError]. So what is missing in it never existed, and a program may create
	// it without asking anybody.
	NoticesLoss bool

	// Instance names what answers: a PostgreSQL timeline, the run of a Redis server. It
	// changes when another server answers, or the same one after it may have gone back; it
	// may also change when nothing was lost. Empty means that the store cannot tell. A counter
	// on a lossy store continues only under the instance that it was begun with.
	Instance string

	// Identity names the place where the records are: a table of a PostgreSQL cluster, an etcd
	// cluster. It stays the same through restarts, upgrades in place and failovers, and
	// differs in a restored dump and in another server. A physical copy of a PostgreSQL server
	// has the same one. Empty means that the store cannot tell.
	Identity string
}

// String returns "durable" or "lossy".
func (d Durability) String() string {
	if d.Durable {
		return "durable"
	}
	return "lossy"
}

// ErrConflict: the record is not as the condition says. Nothing was written,
// and nothing will be.
var ErrConflict = errors.New("store: conflict")

// ErrDenied: the server refuses what was asked, because this user lacks a right. Nothing was
// written. It helps nobody to ask again before somebody has granted the right. The stores in
// PostgreSQL and MySQL say so.
var ErrDenied = errors.New("store: this user lacks a right")

// A ForgotError says that a store no longer has what it acknowledged: it was
// removed, replaced, or has gone back to an earlier state. Whoever holds
// anything from it stops; "firn store recover" makes it usable again.
type ForgotError struct {
	Store string // which, without secrets: "sqlite:/data/ids.db"
	What  string // what was seen
}

func (e *ForgotError) Error() string {
	return fmt.Sprintf("store: %s has forgotten what it acknowledged: %s", e.Store, e.What)
}

// Retryable is false; see firn.Retryable.
func (*ForgotError) Retryable() bool { return false }

// An OtherStoreError says that a record was made in another store than the one that has it:
// this store is a copy, a restored dump, or was moved. Whoever holds anything from it stops;
// "firn store recover" makes it usable.
type OtherStoreError struct {
	What       string // which record says so: `pool "default"`, `series "orders"`
	Have, Want string // what the store says of itself now; what the record says
}

func (e *OtherStoreError) Error() string {
	return fmt.Sprintf("store: %s belongs to another store: this one is %s, and the record was made in %s, so this is a copy, a restored dump, or was moved; use the other one, or, only if that is gone for good, stop all processes that use this one, and type: firn store recover --store URL (add --numbers N if it has segments, tickets or serials)",
		e.What, e.Have, e.Want)
}

// Retryable is false; see firn.Retryable.
func (*OtherStoreError) Retryable() bool { return false }

// CheckValue reports what is wrong with a value, for adapters.
func CheckValue(value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("store: a value has at most %d bytes, not %d", MaxValue, len(value))
	}
	return nil
}

// A FormatError says that a record cannot be read by this version of firn: a later version
// wrote it, or it is damaged. Reason tells which.
type FormatError struct {
	Key    string
	Reason string
}

func (e *FormatError) Error() string { return fmt.Sprintf("store: record %s: %s", e.Key, e.Reason) }

// Retryable is false; see firn.Retryable.
func (*FormatError) Retryable() bool { return false }

// CheckKey reports what is wrong with a key, for adapters.
func CheckKey(key string) error {
	if len(key) < 1 || len(key) > MaxKey {
		return fmt.Errorf("store: a key has 1 to %d bytes, not %d", MaxKey, len(key))
	}
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("store: key %q: byte %d is not printable ASCII", key, i)
		}
	}
	return nil
}
