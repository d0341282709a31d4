// Package store is the contract between firn and the place where it writes things down: a
// [Store] keeps small records, replaces one only if it is still the one that was read, and
// never loses one.
//
// There is one package for each kind of store. Its New takes the client that the program
// already has, and *Options where there is a choice; nil means the defaults:
//
//	s := postgres.New(db)       // *sql.DB
//	s := redis.New(client, nil) // redis.UniversalClient
//	s, err := sqlite.Open(ctx, "/var/lib/shop/ids.db")
//	s, err := open.URL(ctx, os.Getenv("FIRN_STORE"))
//
// A new kind of store is tested with [github.com/firn-id/firn/store/storetest].
package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// A Store keeps records. It has no delete, because a record says what must never be
// forgotten. All methods are safe for concurrent use, and return soon after their ctx has
// ended, whatever the store does.
//
// A key has 1 to [MaxKey] bytes of printable ASCII without spaces. A value has at most
// [MaxValue] bytes and is JSON, so that a person can read it.
type Store interface {
	// Get returns the record of key. A record that was never written has the zero
	// Version and no value; that is not an error. Get sees every Put that was
	// acknowledged before Get was called.
	Get(ctx context.Context, key string) (Record, error)

	// Put writes value under a new Version if, at that instant, the record in the
	// store is as cond says. It returns the record as written.
	//
	// ErrConflict means that this Put was not carried out and never will be.
	// After any other error the outcome is unknown: the Put may be carried out
	// later, once, or never. The record returned with the error then has the
	// Version that was tried; a caller that finds this Version in the store knows
	// that the write is its own. The zero Version means that nothing was sent.
	//
	// An adapter sends a Put once. It switches its client's own retries off.
	Put(ctx context.Context, key string, value []byte, cond Condition) (Record, error)

	// List returns the records whose keys begin with prefix, sorted by the bytes of
	// the key.
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

// A Record is a value as the store had it when it was read.
type Record struct {
	Key     string
	Value   []byte
	Version Version
	Written time.Time // when it was written, by the store's clock; zero if the store has no clock, or the record was never written
	Read    time.Time // when it was read, by the store's clock; zero if the store has no clock
}

// A Version names one write. It is random and no count, because a count repeats after a store
// was put back to an earlier state: then a writer would take another one's write for its own.
// The zero Version is that of a record that was never written.
type Version string

// NewVersion returns 128 random bits for one Put, in an adapter.
func NewVersion() Version {
	var b [16]byte
	rand.Read(b[:])
	return Version(hex.EncodeToString(b[:]))
}

// A Condition says how the record must be in the store when a Put is carried out.
type Condition struct {
	// Version is that of the record that is replaced. Zero means that the record was never
	// written.
	Version Version
	// Within is how long ago the record may have been written at most, by the store's clock.
	// Zero means any time, and so does any positive one in a store without a clock. With a
	// record that was never written only zero holds, and a negative Within never holds.
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

// ErrConflict says that the record is not as the condition says. Nothing was written, and
// nothing will be.
var ErrConflict = errors.New("store: conflict")

// ErrDenied says that the server refused the request because this user lacks a right, or that the
// search_path of this user does not lead to the store. Nothing was written. Do not retry before
// somebody has granted the right or changed the search_path. The stores in PostgreSQL and MySQL
// return it.
var ErrDenied = errors.New("store: this user lacks a right")

// A ForgotError says that a store no longer has what it acknowledged: it was
// removed, replaced, or put back to an earlier state. A process that holds a worker or numbers
// of this store stops using them. "firn store recover" makes the store usable again.
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
// this store is a copy, a restored dump, or was moved. A process that holds a worker or numbers
// of this store stops using them. "firn store recover" makes the store usable.
type OtherStoreError struct {
	What       string // which record says so: `pool "default"`, `series "orders"`
	Have, Want string // what the store says of itself now; what the record says
}

func (e *OtherStoreError) Error() string {
	return fmt.Sprintf("store: %s belongs to another store: this one is %s, and the record was made in %s, so this is a copy, a restored dump, or was moved; use the other one, or, only if that no longer exists, stop all processes that use this one, and type: firn store recover --store URL (add --numbers N if it has sequences or documents, and --outage if any process had an outage budget of more than 5 min)",
		e.What, e.Have, e.Want)
}

// Retryable is false; see firn.Retryable.
func (*OtherStoreError) Retryable() bool { return false }

// CheckValue returns what is wrong with a value, or nil. It is for adapters.
func CheckValue(value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("store: a value has at most %d bytes, not %d", MaxValue, len(value))
	}
	return nil
}

// A FormatError says that this version of firn cannot read a record: a later version wrote it,
// or it is damaged. Reason tells which.
type FormatError struct {
	Key    string
	Reason string
}

func (e *FormatError) Error() string { return fmt.Sprintf("store: record %s: %s", e.Key, e.Reason) }

// Retryable is false; see firn.Retryable.
func (*FormatError) Retryable() bool { return false }

// CheckKey returns what is wrong with a key, or nil. It is for adapters.
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
