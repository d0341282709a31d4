package move

import (
	"cmp"
	"time"
)

// Options say how shards are moved. A zero field takes the default that its comment ends with.
type Options struct {
	// LockWait is how long the mover waits for a moment in which no transaction has had a write
	// lock on the shard for longer than 30 ms: 1 minute.
	LockWait time.Duration

	// Lag is how far the copy may be behind, in time, when the shard changes over: 50 ms.
	Lag time.Duration

	// Stall is how long a copy may make no progress before the mover gives up: 2 minutes.
	Stall time.Duration

	// MaxWAL is how much WAL the source may keep for the move while it is copied, in bytes, before the mover gives
	// up with a [*WALError]: no limit. The source keeps the WAL until Abort.
	MaxWAL int64

	// Patience is how long the mover waits for a server that does not answer: 1 minute.
	Patience time.Duration

	// Addresses says how the other server reaches a server, by the server's name, as a URL or
	// another form of libpq. Nil: as this process reaches it.
	Addresses map[string]string

	// Consumers names publications of yours whose readers know of the move, and read from the
	// other server too. The mover refuses a shard with tables in any other publication. Nil: none.
	Consumers []string

	// DropRowsOf names a server whose copy Abort and Finish drop although a comparison found rows there
	// that the server that serves the shard lacks. Empty: they refuse, with a [*SurplusError].
	DropRowsOf string

	// Progress is called with how far the mover is, in the goroutine that uses the mover. Nil: not called.
	Progress func(Progress)
}

func (o *Options) orDefault() Options {
	var v Options
	if o != nil {
		v = *o
	}
	v.LockWait = cmp.Or(v.LockWait, time.Minute)
	v.Lag = cmp.Or(v.Lag, 50*time.Millisecond)
	v.Stall = cmp.Or(v.Stall, 2*time.Minute)
	v.Patience = cmp.Or(v.Patience, defaultPatience)
	if v.Progress == nil {
		v.Progress = func(Progress) {}
	}
	return v
}

// Progress says how far a mover is with a batch.
type Progress struct {
	Phase  Phase
	Shards int // of the batch
	Done   int // that are where they are to be

	Rows, RowsTotal   int64 // copied or compared, and how many there are by an estimate
	Bytes, BytesTotal int64 // copied
	Unapplied         int64 // bytes of the log that the copy has not applied

	Left time.Duration // until all is copied, at the rate so far; 0: nobody knows
}

// A Phase says what a mover is doing, for people.
type Phase string

const (
	Preparing Phase = "prepare"
	Copying   Phase = "copy"
	Verifying Phase = "verify"
	Cutting   Phase = "cutover"
	Counting  Phase = "count"
	Cleaning  Phase = "clean up"
)

// A Moved is a shard that has come to where it was to go.
type Moved struct {
	Shard int64
	Pause time.Duration    // for which nobody could write; zero: it was let go by another run
	Rows  map[string]int64 // by table, as counted on both; without tables that were truncated meanwhile; nil where nobody could count
}
