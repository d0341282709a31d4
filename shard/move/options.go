package move

import (
	"cmp"
	"time"
)

// Options say how shards are moved. The zero value is the default.
type Options struct {
	// LockWait is how long a moment is waited for in which nobody has written to a
	// shard for longer than 30 ms (1 m).
	LockWait time.Duration

	// Lag is how far the copy may be behind when the source lets a shard go (50 ms).
	Lag time.Duration

	// Stall is for how long a copy may come no farther (2 m).
	Stall time.Duration

	// Patience is how long a server is waited for that does not answer (1 m).
	Patience time.Duration

	// Addresses are how a server is reached by the other one, by name, in the form of
	// libpq: of those that are reached otherwise than from here.
	Addresses map[string]string

	// Consumers are publications of others whose readers know that the shards go to
	// another server, and read from there too. Any other one that has tables of a shard
	// is refused.
	Consumers []string

	// Progress is told how far the work is, from one goroutine.
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

// Progress says how far a batch is.
type Progress struct {
	Phase  Phase
	Shards int // of the batch
	Done   int // that are where they are to be

	Rows, RowsTotal   int64 // copied or compared, and how many there are by an estimate
	Bytes, BytesTotal int64 // copied
	Unapplied         int64 // bytes of the log that the copy has not applied

	Left time.Duration // until all is copied, at the rate so far; 0: nobody knows
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
	Pause time.Duration    // for which nobody could write; zero: it was let go by another run
	Rows  map[string]int64 // by table, as counted on both; nil where nobody could count
}
