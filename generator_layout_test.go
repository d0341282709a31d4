package firn_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// Layouts of all shapes, with the epoch 2026-01-01T00:00:00Z.
var shapes = []string{
	"time:41@1ms,worker:10,seq:12",
	"time:41@1ms,seq:12,worker:10",
	"worker:10,time:41@1ms,seq:12",
	"worker:10,seq:12,time:41@1ms",
	"seq:12,time:41@1ms,worker:10",
	"seq:12,worker:10,time:41@1ms",
	"time:41@1ms,shard:13,seq:9",
	"shard:13,time:41@1ms,seq:9",
	"time:40@1ms,region:2,datacenter:3,shard:4,worker:5,seq:9",
	"rack:1,time:40@1ms,shard:4,row:2,seq:9,worker:5",
	"time:42@1ms,worker:5,process:5,seq:12", // 64 bits
	"time:41@1ms,shard:13,seq:10",           // 64 bits
	"time:48@1ms,seq:16",                    // 64 bits
	"time:63@1us,worker:1",                  // 64 bits
	"time:2@1h,worker:61,seq:1",             // 64 bits
	"time:53@1us,seq:10",
	"time:53@1us,worker:10",
	"time:20@1h,worker:5,seq:8",
	"time:20@1h,worker:5",
	"time:40@1ms",
	"time:5@1h",
	"time:30@1s,seq:33",
	"time:5@1ms,seq:58",
	"time:1@1m,seq:62",
	"time:1@1m,worker:62",
}

// An id of every layout has its worker, its shard and the clock's tick, and
// increases; the workers and shards at the edges too.
func TestEveryLayout(t *testing.T) {
	for _, spec := range shapes {
		l := firn.MustLayout(spec + ";epoch=2026-01-01T00:00:00Z")
		for range 20 {
			worker := []int64{0, l.Workers() - 1, rand.Int64N(l.Workers())}[rand.IntN(3)]
			shard := []int64{0, l.Shards() - 1, rand.Int64N(l.Shards())}[rand.IntN(3)]
			clock := &manual{l.Time(1 + firn.Tick(rand.Int64N(min(int64(l.Last()), 1<<40))))}
			grant := firn.Grant{Worker: worker, Base: l.Tick(clock.at) - 1, Horizon: l.Last()}
			g := generator(t, l, grant, &firn.GeneratorOptions{Shard: shard, Now: clock.now, Borrow: -1})
			var before firn.Parts
			var last firn.ID
			for range 100 {
				id, err := g.Try()
				if errors.Is(err, firn.ErrBusy) {
					clock.move(l.Unit())
					id, err = g.Try()
				}
				var end *firn.EndError
				if errors.As(err, &end) && l.Tick(clock.at) >= l.Last() {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v", l, err)
				}
				p := decode(t, l, id)
				if again, err := l.Encode(p); again != id || err != nil || id <= 0 {
					t.Fatalf("%s: id %d is %+v, which is id %d, %v", l, id, p, again, err)
				}
				if p.Worker != worker || p.Shard != shard || p.Tick != l.Tick(clock.at) {
					t.Fatalf("%s: %+v, want worker %d, shard %d, tick %d", l, p, worker, shard, l.Tick(clock.at))
				}
				if p.Tick < before.Tick || p.Tick == before.Tick && p.Seq <= before.Seq && before.Time != (time.Time{}) {
					t.Fatalf("%s: %+v after %+v", l, p, before)
				}
				if l.Ordered() && id <= last {
					t.Fatalf("%s: id %d after %d", l, id, last)
				}
				before, last = p, id
				clock.move(time.Duration(rand.Int64N(int64(3 * l.Unit()))))
			}
		}
	}
}

// Append makes the ids that Next would make, also over the end of ticks.
func TestAppendIsNext(t *testing.T) {
	for _, spec := range shapes {
		l := firn.MustLayout(spec + ";epoch=2026-01-01T00:00:00Z")
		clock := &manual{l.Time(1)}
		grant := firn.Grant{Worker: l.Workers() - 1, Horizon: l.Last()}
		opts := &firn.GeneratorOptions{Shard: l.Shards() - 1, Now: clock.now, Borrow: firn.MaxBorrow}
		g := generator(t, l, grant, opts)
		ids, err := g.TryAppend([]firn.ID{7}, 500)
		var end *firn.EndError
		if err != nil && !errors.As(err, &end) || ids[0] != 7 {
			t.Fatal(err)
		}
		for i, id := range ids[1:] {
			p := decode(t, l, id)
			if i > 0 && number(t, l, id) != number(t, l, ids[i])+1 || p.Worker != grant.Worker || p.Shard != opts.Shard {
				t.Fatalf("%s: %+v after %d", l, p, ids[i])
			}
		}
		if len(ids)-1 < min(500, 1<<min(seqBits(l), 10)/2) {
			t.Errorf("%s: %d ids", l, len(ids)-1)
		}
	}
}

// The last tick is issued to its last number, and then comes the error of a
// layout that has ended, however far the clock is beyond.
func TestEndOfLayout(t *testing.T) {
	for _, spec := range []string{
		"time:10@1ms,worker:10,seq:4",
		"time:10@1us,seq:53",
		"time:11@1us,seq:53", // 64 bits
		"time:5@1h,worker:50,seq:9",
		"time:3@1h,worker:61", // 64 bits
		"seq:4,worker:10,time:10@1ms",
		"time:2@1h,seq:61",
		"time:41@1ms,shard:13,seq:10", // 64 bits
		"time:42@1ms,worker:22",       // 64 bits
		"time:63@1us",
		"time:48@1ms,seq:16",
	} {
		l := firn.MustLayout(spec + ";epoch=2026-01-01T00:00:00Z")
		clock := &manual{l.Time(max(l.Last()-2, 1))}
		if clock.at.Year() > 2200 {
			continue // farther than nanoseconds since 1970 reach
		}
		grant := firn.Grant{Worker: l.Workers() - 1, Base: l.Tick(clock.at) - 1, Horizon: l.Last()}
		g := generator(t, l, grant, &firn.GeneratorOptions{Shard: l.Shards() - 1, Now: clock.now, Borrow: firn.MaxBorrow})
		over := func() {
			t.Helper()
			_, err := g.Next(t.Context())
			var end *firn.EndError
			if !errors.As(err, &end) || !end.End.Equal(l.End()) || end.Layout != l {
				t.Fatalf("%s at %s: %v, the layout ended on %s", l, clock.at, err, l.End())
			}
		}
		for tick := firn.Tick(1); tick <= min(l.Last(), 2000); tick++ {
			g := generator(t, l, firn.Grant{Base: tick - 1, Horizon: l.Last()}, &firn.GeneratorOptions{
				Borrow: []time.Duration{0, firn.MaxBorrow}[tick%2],
				Now:    func() time.Time { return l.Time(tick) },
			})
			if p := decode(t, l, next(t, g)); p.Tick != tick {
				t.Fatalf("%s: tick %d at %d", l, p.Tick, tick)
			}
		}
		clock.at = l.Time(l.Last())
		if p := decode(t, l, next(t, g)); p.Tick != l.Last() {
			t.Fatalf("%s: tick %d of %d", l, p.Tick, l.Last())
		}
		if seqBits(l) < 20 { // to the last number
			ids, _ := g.TryAppend(nil, 1<<20)
			if want := int64(l.Last()+1)<<seqBits(l) - 1; len(ids) > 0 && number(t, l, ids[len(ids)-1]) != want {
				t.Fatalf("%s: the last number is %d of %d", l, number(t, l, ids[len(ids)-1]), want)
			}
			over()
		}
		clock.at = l.End()
		over()
		for at := l.End(); at.Year() < 2200; at = at.Add(at.Sub(l.Epoch())) {
			clock.at = at.Add(rand.N(at.Sub(l.Epoch())))
			over()
			// And one that has not yet turned at all.
			g2 := generator(t, l, grant, &firn.GeneratorOptions{Now: func() time.Time { return l.Time(1) }})
			g2.SetClock(clock.at)
			if id, err := g2.Next(t.Context()); err == nil {
				t.Fatalf("%s: id %d at %s, the layout ended on %s", l, id, clock.at, l.End())
			}
		}
		if _, err := firn.NewGenerator(l, grant, &firn.GeneratorOptions{Now: clock.now}); err == nil {
			t.Errorf("%s: a generator at %s", l, clock.at)
		}
	}
}
