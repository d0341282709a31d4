package setup

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/firn-id/firn"
)

// A DifferenceError says in what a cluster differs from the [Wish].
type DifferenceError struct {
	What      string // as in Wish, in small letters
	Is, Asked string
}

func (e *DifferenceError) Error() string {
	return fmt.Sprintf("shard: the cluster has %s %s, not %s: that never changes", e.What, e.Is, e.Asked)
}

// A WishError says what of a wish cannot be.
type WishError struct{ Err error }

func (e *WishError) Error() string { return e.Err.Error() }

func (e *WishError) Unwrap() error { return e.Err }

func wrong(format string, args ...any) error { return &WishError{fmt.Errorf(format, args...)} }

// A CopyError says that a server is a copy: its shards may be served by the original too.
type CopyError struct{ Server string }

func (e *CopyError) Error() string {
	return fmt.Sprintf("shard: server %s is a copy, or was promoted or restored: its shards were opened elsewhere", e.Server)
}

// ErrNoCount says that Wish.Count is missing, which a new cluster needs.
var ErrNoCount = wrong("shard: how many shards? the number has to be said, and never changes: the shard of a key depends on it")

// A TooManyError says that a layout has not so many shards.
type TooManyError struct {
	Count  int64
	Layout firn.Layout
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("shard: %d shards: layout %s has 1 to %d", e.Count, layoutName(e.Layout), e.Layout.Shards())
}

// Wider is the layout of new clusters with as many bits of shard as the count needs,
// and so much less sequence. It is the zero Layout if the sequence would have no bit.
func (e *TooManyError) Wider() firn.Layout {
	sharded, _ := firn.Sharded().Field("shard")
	seq, _ := firn.Sharded().Field("seq")
	width := bits.Len64(uint64(e.Count - 1))
	left := sharded.Width + seq.Width - width
	if e.Count < 1 || left < 1 {
		return firn.Layout{}
	}
	return firn.MustLayout(fmt.Sprintf("time:41@1ms,shard:%d,seq:%d;epoch=%s", width, left, firn.Sharded().Epoch().Format(time.RFC3339)))
}

// An UnnamedError says that a server is in the cluster, and that the caller did not name it.
type UnnamedError struct{ Server string }

func (e *UnnamedError) Error() string {
	return fmt.Sprintf("shard: server %s is in the cluster too, and has to be named", e.Server)
}

// A ForgotError says that a server is in no cluster, although the other servers name it in theirs.
type ForgotError struct {
	Server  string
	HadNone bool // it has never had a shard, as [topology.Server.HadNone] says
}

func (e *ForgotError) Error() string {
	return fmt.Sprintf("shard: server %s: the others have it in their cluster, and it knows nothing of that: what it had is lost, or it is another database", e.Server)
}

// A StrangerError says that a server is not in the cluster that others are in.
type StrangerError struct{ Server string }

func (e *StrangerError) Error() string {
	return fmt.Sprintf("shard: server %s is not in the cluster", e.Server)
}

// A NowhereError says that no server serves a shard.
type NowhereError struct {
	Shard int64
	Why   string
}

func (e *NowhereError) Error() string {
	return fmt.Sprintf("shard: no server serves shard %d: %s", e.Shard, e.Why)
}

// A SchemaError says that a schema is there which is that of no shard yet.
type SchemaError struct{ Server, Schema string }

func (e *SchemaError) Error() string {
	return fmt.Sprintf("shard: server %s: there is a schema %s already, which is no shard's", e.Server, e.Schema)
}
