package move

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard"
)

// Options say how shards are moved. The zero value is the default.
type Options struct {
	// LockWait is how long a moment is waited for in which nobody has written to a
	// shard for longer than 30 ms (1 m).
	LockWait time.Duration

	// Lag is how far the copy may be behind when the source lets a shard go (50 ms).
	Lag time.Duration

	// Addresses are how a server is reached by the other one, by name, in the form of
	// libpq: of those that are reached otherwise than from here.
	Addresses map[string]string

	// Verified skips the comparison of the copy with the source before it takes over.
	Unverified bool

	// Progress is told how far the work is, from one goroutine at a time.
	Progress func(Progress)
}

func (o *Options) orDefault() Options {
	var v Options
	if o != nil {
		v = *o
	}
	v.LockWait = cmp.Or(v.LockWait, time.Minute)
	v.Lag = cmp.Or(v.Lag, 50*time.Millisecond)
	if v.Progress == nil {
		v.Progress = func(Progress) {}
	}
	return v
}

// Progress says how far a batch is.
type Progress struct {
	Phase  Phase
	Shards int // of the batch
	Done   int // that are where they are to be

	Rows, RowsTotal   int64 // copied or compared, and how many there are by an estimate
	Bytes, BytesTotal int64 // copied
	Lag               int64 // bytes that the copy is behind
}

// A Phase is a part of a move, for people.
type Phase string

const (
	Preparing Phase = "prepare"
	Copying   Phase = "copy"
	Verifying Phase = "verify"
	Cutting   Phase = "cutover"
	Counting  Phase = "count"
	Cleaning  Phase = "clean up"
)

// A Moved is a shard that is where it was to go.
type Moved struct {
	Shard int64
	Pause time.Duration    // for which nobody could write; zero: somebody else's, or it was there
	Rows  map[string]int64 // by table, as counted on both; nil where nobody could count
}

// A Mover moves a batch of shards from a source to a target. It is for one goroutine.
type Mover struct {
	source, target *end
	attempt        string
	options        Options
}

// An end is one of the two servers.
type end struct {
	shard.Server
	conn *pgx.Conn
}

// New makes a mover.
func New(source, target shard.Server, o *Options) *Mover {
	b := make([]byte, 8)
	rand.Read(b)
	return &Mover{&end{Server: source}, &end{Server: target}, hex.EncodeToString(b), o.orDefault()}
}

// Close ends its connections.
func (m *Mover) Close() {
	for _, e := range []*end{m.source, m.target} {
		if e.conn != nil {
			e.conn.Close(context.Background())
		}
	}
}
