package shard_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard/install"
)

// TestLayouts holds what the database makes and reads, in layouts of all kinds,
// against the library.
func TestLayouts(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		// Each makes a schema.
		if err := checks.Value.Set("20"); err != nil {
			t.Fatal(err)
		}
		defer checks.Value.Set(checks.DefValue)
	}
	db := newDatabase(t)
	rapid.Check(t, func(r *rapid.T) {
		seq := rapid.IntRange(0, 20).Draw(r, "seq")
		shards := rapid.IntRange(1, 20).Draw(r, "shard")
		unit := rapid.SampledFrom([]string{"1us", "7us", "10us", "500us", "1ms", "3ms", "10ms", "300ms", "1s"}).Draw(r, "unit")
		width := rapid.IntRange(20, 64-seq-shards).Draw(r, "time")
		parts := []string{fmt.Sprintf("shard:%d", shards)}
		if seq > 0 {
			parts = rapid.Permutation(append(parts, fmt.Sprintf("seq:%d", seq))).Draw(r, "order")
		}
		epoch := time.Unix(rapid.Int64Range(-3_000_000_000, 1_700_000_000).Draw(r, "epoch"), rapid.Int64Range(0, 999).Draw(r, "ms")*1_000_000).UTC()
		spec := fmt.Sprintf("time:%d@%s,%s;epoch=%s", width, unit, strings.Join(parts, ","), epoch.Format(time.RFC3339Nano))
		l, err := firn.ParseLayout(spec)
		if err != nil {
			r.Skip(err)
		}
		number := rapid.Int64Range(0, l.Shards()-1).Draw(r, "number")
		mustExec(t, db.Conn, "DROP SCHEMA IF EXISTS firn CASCADE; DROP SCHEMA IF EXISTS s CASCADE")
		mustExec(t, db.Conn, script(t, l, install.Definition{Number: number, Schema: "s"}))

		// A state, packed and read.
		last := int64(l.Last())
		tick, n := rapid.Int64Range(0, last).Draw(r, "tick"), rapid.Int64Range(0, 1<<seq-1).Draw(r, "n")
		id, err := l.Encode(firn.Parts{Time: l.Time(firn.Tick(tick)), Shard: number, Seq: n})
		if err != nil {
			r.Skip(err)
		}
		if got := query[int64](t, db.Conn, fmt.Sprintf("SELECT firn.pack(%d, %d)", tick<<seq|n, number)); got != int64(id) {
			r.Fatalf("%s: tick %d, seq %d: %d, want %d", spec, tick, n, got, id)
		}
		if at := l.Time(firn.Tick(tick)); at.Year() < 200_000 {
			want := fmt.Sprintf("%d %d %d", at.UnixMicro(), number, n)
			if got := query[string](t, db.Conn, fmt.Sprintf(`SELECT concat_ws(' ', (extract(epoch FROM "time") * 1000000)::bigint, shard, seq) FROM firn.decode(%d)`, id)); got != want {
				r.Errorf("%s: decode(%d): %s, want %s", spec, id, got, want)
			}
		}
		// The bounds of an instant.
		at := time.Now().Add(time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(r, "at"))).UTC().Truncate(time.Microsecond)
		if tick := l.Tick(at); tick >= 0 && tick <= l.Last() {
			first, end, err := l.Bounds(at, at.Add(1))
			if err != nil {
				r.Fatalf("%s: %v: %v", spec, at, err)
			}
			got := query[string](t, db.Conn, fmt.Sprintf("SELECT concat_ws(' ', greatest(1, firn.first_id('%[1]s')), firn.last_id('%[1]s'))", at.Format(time.RFC3339Nano)))
			if want := fmt.Sprintf("%d %d", first, end); got != want {
				r.Errorf("%s: %v: %s, want %s", spec, at, got, want)
			}
		}
		// The clock, to a tick.
		before := time.Now()
		state, err := tryQuery[int64](t, db.Conn, "SELECT firn.now_state()")
		if err != nil {
			r.Fatalf("%s: now_state: %v", spec, err)
		}
		within := func(t firn.Tick) firn.Tick { return min(max(t, 0), l.Last()+1) }
		if tick := firn.Tick(state >> seq); tick < within(l.Tick(before)-1) || tick > within(l.Tick(time.Now())+1) {
			r.Errorf("%s: the clock is at tick %d, not %d", spec, tick, l.Tick(before))
		}
		switch now := l.Tick(time.Now()); {
		case now > l.Last():
			refused(t, db.Conn, "ID004", "SELECT s.next_id()")
		case now >= 0 && now < l.Last()-1_000_000:
			ids := query[[]int64](t, db.Conn, "SELECT array_agg(s.next_id()) FROM generate_series(1, 20)")
			for i, id := range ids {
				p, err := l.Decode(firn.ID(id))
				if err != nil || p.Shard != number || i > 0 && id <= ids[i-1] {
					r.Fatalf("%s: %v: %+v, %v", spec, ids, p, err)
				}
			}
		}
	})
}

// TestForever: bounds that are no bounds.
func TestForever(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	if n := query[int64](t, db.Conn, "SELECT count(insta5.next_id()) FROM generate_series(1, 5)"); n != 5 {
		t.Fatal(n)
	}
	if !query[bool](t, db.Conn, "SELECT insta5.next_id() BETWEEN firn.first_id('-infinity') AND firn.last_id('infinity')") {
		t.Error("an id is not between the infinities")
	}
	if !query[bool](t, db.Conn, "SELECT firn.first_id('infinity') IS NULL AND firn.last_id('-infinity') = 0") {
		t.Error("there are ids at the infinities")
	}
}
