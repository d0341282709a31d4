package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/sony/sonyflake"
	"go.etcd.io/etcd/pkg/v3/idutil"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memory"
)

// The layouts: one whose ceiling, 131,072 ids in a millisecond, is out of reach
// of one id at a time, so that the code is compared and not the layout; and the
// usual one, where everybody waits for the clock.
var (
	wide  = firn.MustLayout("time:41@1ms,worker:5,seq:17;epoch=2020-01-01T00:00:00Z")
	usual = firn.MustLayout("time:41@1ms,worker:10,seq:12;epoch=2020-01-01T00:00:00Z")
)

// Groups of what is compared with each other.
const (
	one  = "one id at a time, 41/5/17"
	two  = "the same from two goroutines"
	many = "64 at a time, 41/5/17"
	text = "text"
)

// sink is where results go, so that the compiler cannot leave work out.
var sink struct {
	number int64
	text   string
	bytes  []byte
	uuid   uuid.UUID
	ulid   ulid.ULID
	xid    xid.ID
}

var ctx, cancel = context.WithCancel(context.Background())

// contenders makes everything that is compared, and returns what ends it.
func contenders() (all []contender, done func() error, err error) {
	held, err := lease.Open(ctx, memory.New(), &lease.Options{Layout: wide, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	all = append(all, ones(held)...)
	all = append(all, twos(held)...)
	all = append(all, manies(held)...)
	all = append(all, texts()...)
	shown, err := forms()
	if err != nil {
		return nil, nil, err
	}
	dense, closeDense, err := numbers()
	if err != nil {
		return nil, nil, err
	}
	all = append(append(all, dense...), shown...)
	return all, func() error { return errors.Join(held.Close(), closeDense()) }, nil
}

// generator has a grant for as long as anybody will look.
func generator(l firn.Layout) *firn.Generator {
	now := l.Tick(time.Now())
	g, err := firn.NewGenerator(l, firn.Grant{Worker: 1, Base: now - 1, Horizon: l.Last()}, nil)
	if err != nil {
		panic(err)
	}
	return g
}

func bwmarrin(l firn.Layout) *snowflake.Node {
	worker, _ := l.Field("worker")
	seq, _ := l.Field("seq")
	snowflake.NodeBits, snowflake.StepBits = uint8(worker.Width), uint8(seq.Width)
	n, err := snowflake.NewNode(1)
	if err != nil {
		panic(err)
	}
	return n
}

// next takes n ids of a source, as a program does.
func next(src firn.Source, n int) {
	for range n {
		id, err := src.Next(ctx)
		if err != nil {
			panic(err)
		}
		sink.number = int64(id)
	}
}

func ones(held *lease.Lease) []contender {
	var word atomic.Int64
	start := time.Now()
	b, g := bwmarrin(wide), generator(wide)
	all := []contender{
		{name: "monotonic clock", make: func(n int) {
			for range n {
				sink.number = int64(time.Since(start))
			}
		}},
		{name: "atomic add", make: func(n int) {
			for range n {
				sink.number = word.Add(1)
			}
		}},
		{name: "clock + add", role: floor, make: func(n int) {
			for range n {
				sink.number = int64(time.Since(start)) + word.Add(1)
			}
		}},
		{name: "bwmarrin", role: peer, make: func(n int) {
			for range n {
				sink.number = int64(b.Generate())
			}
		}},
		{name: "firn Generator.Next", make: func(n int) {
			for range n {
				id, err := g.Next(ctx)
				if err != nil {
					panic(err)
				}
				sink.number = int64(id)
			}
		}},
		{name: "firn Generator through Source", make: func(n int) { next(g, n) }},
		{name: "firn Lease through Source", make: func(n int) { next(held, n) }},
		{name: "firn Generator.Try", make: func(n int) {
			for range n {
				id, err := g.Try()
				if err != nil {
					panic(err)
				}
				sink.number = int64(id)
			}
		}},
	}
	return in(one, append(all, others()...))
}

// in puts contenders into a group.
func in(group string, all []contender) []contender {
	for i := range all {
		all[i].group = group
	}
	return all
}

// others are what one would pick instead, and layouts that bind sooner.
func others() []contender {
	b, g := bwmarrin(usual), generator(usual)
	etcd := idutil.NewGenerator(1, time.Now())
	sony := sonyflake.NewSonyflake(sonyflake.Settings{MachineID: func() (uint16, error) { return 1, nil }})
	return []contender{
		{name: "bwmarrin 41/10/12", part: 4, make: func(n int) {
			for range n {
				sink.number = int64(b.Generate())
			}
		}},
		{name: "firn Generator 41/10/12", part: 4, make: func(n int) { next(g, n) }},
		{name: "sonyflake", part: 200, make: func(n int) {
			for range n {
				id, err := sony.NextID()
				if err != nil {
					panic(err)
				}
				sink.number = int64(id)
			}
		}},
		{name: "etcd idutil", make: func(n int) {
			for range n {
				sink.number = int64(etcd.Next())
			}
		}},
		{name: "xid", make: func(n int) {
			for range n {
				sink.xid = xid.New()
			}
		}},
		{name: "uuid v4", part: 4, make: func(n int) {
			for range n {
				sink.uuid = uuid.New()
			}
		}},
		{name: "uuid v7", part: 4, make: func(n int) {
			for range n {
				sink.uuid = uuid.Must(uuid.NewV7())
			}
		}},
		{name: "ulid", part: 4, make: func(n int) {
			for range n {
				sink.ulid = ulid.Make()
			}
		}},
	}
}

func twos(held *lease.Lease) []contender {
	b, g := bwmarrin(wide), generator(wide)
	return in(two, []contender{
		{name: "bwmarrin", role: peer, make: func(n int) {
			both(n, func(n int) {
				for range n {
					b.Generate()
				}
			})
		}},
		{name: "firn Generator through Source", make: func(n int) { both(n, func(n int) { drain(g, n) }) }},
		{name: "firn Lease through Source", make: func(n int) { both(n, func(n int) { drain(held, n) }) }},
	})
}

// both has two goroutines make n ids together.
func both(n int, make func(n int)) {
	var wg sync.WaitGroup
	wg.Go(func() { make(n / 2) })
	wg.Go(func() { make(n - n/2) })
	wg.Wait()
}

// drain is next without a place that goroutines would share.
func drain(src firn.Source, n int) {
	for range n {
		if _, err := src.Next(ctx); err != nil {
			panic(err)
		}
	}
}

func manies(held *lease.Lease) []contender {
	const batch = 64
	b, g := bwmarrin(wide), generator(wide)
	buf := make([]firn.ID, 0, batch)
	appendFrom := func(src firn.Source, n int) {
		for n > 0 {
			var err error
			if buf, err = src.Append(ctx, buf[:0], min(n, batch)); err != nil {
				panic(err)
			}
			n -= len(buf)
		}
	}
	return in(many, []contender{
		{name: "bwmarrin, one at a time", role: peer, make: func(n int) {
			for range n {
				sink.number = int64(b.Generate())
			}
		}},
		{name: "firn Generator.Append", make: func(n int) { appendFrom(g, n) }},
		{name: "firn Lease.Append", make: func(n int) { appendFrom(held, n) }},
	})
}
