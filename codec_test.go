package firn

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The vectors are known answers for any language: every name besides note,
// layout, id, ticks, time and unix_ms is that of a field.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []map[string]any
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 8 {
		t.Fatalf("there are %d vectors", len(vectors))
	}
	for _, v := range vectors {
		checkVector(t, v)
	}
}

func checkVector(t *testing.T, v map[string]any) {
	t.Helper()
	number := func(name string) int64 {
		n, err := v[name].(json.Number).Int64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	l, err := ParseLayout(v["layout"].(string))
	if err != nil {
		t.Fatal(err)
	}
	id, err := ParseID(v["id"].(string))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := l.Decode(id)
	if err != nil {
		t.Fatal(err)
	}
	var want Parts
	if text, ok := v["time"]; ok {
		want.Time = at(t, text.(string)).UTC()
		want.Tick = l.Tick(want.Time)
	} else {
		want.Tick = Tick(number("ticks"))
		want.Time = l.Time(want.Tick)
	}
	known := []string{"note", "layout", "id", "ticks", "time", "unix_ms"}
	for f := range l.Fields() {
		if f.Name == "time" {
			continue
		}
		known = append(known, f.Name)
		n := number(f.Name)
		if f.Of(id) != n {
			t.Errorf("%s: %s is %d, want %d", id, f.Name, f.Of(id), n)
		}
		switch {
		case f.IsWorker():
			want.Worker = want.Worker*(f.Max()+1) + n
		case f.Name == "shard":
			want.Shard = n
		default:
			want.Seq = n
		}
	}
	if parts != want {
		t.Errorf("%s: decoded\n%+v, want\n%+v", id, parts, want)
	}
	if again, err := l.Encode(want); err != nil || again != id {
		t.Errorf("%s: encoded %d, %v", id, again, err)
	}
	if _, ok := v["ticks"]; ok && int64(parts.Tick) != number("ticks") {
		t.Errorf("%s: tick %d", id, parts.Tick)
	}
	if _, ok := v["unix_ms"]; ok && parts.Time.UnixMilli() != number("unix_ms") {
		t.Errorf("%s: %d", id, parts.Time.UnixMilli())
	}
	for name := range v {
		if !slices.Contains(known, name) {
			t.Errorf("%s: layout %s has no %s", id, l, name)
		}
	}
}

// checkRoundTrip takes an id apart and puts it together in three ways.
func checkRoundTrip(t *testing.T, l Layout, id ID) {
	t.Helper()
	p, err := l.Decode(id)
	if fits := id > 0 && (l.Bits() >= 63 || id>>l.Bits() == 0); (err == nil) != fits {
		t.Fatalf("%s: Decode(%d): %v", l, id, err)
	}
	if err != nil {
		return
	}
	if p.Tick < 0 || p.Tick > l.Last() || p.Shard >= l.Shards() || p.Worker >= l.Workers() || !p.Time.Equal(l.Time(p.Tick)) {
		t.Fatalf("%s: Decode(%d) = %+v", l, id, p)
	}
	byTick, late := p, p
	byTick.Time = time.Time{}
	late.Tick, late.Time = 0, p.Time.Add(l.Unit()-1)
	for _, p := range []Parts{p, byTick, late} {
		if again, err := l.Encode(p); err != nil || again != id {
			t.Fatalf("%s: Decode(%d) = %+v, encoded %d, %v", l, id, p, again, err)
		}
	}
	// Encode puts fields together by what they are; here it is by their places.
	var sum uint64
	for f := range l.Fields() {
		sum += uint64(f.Of(id)) << f.Shift
	}
	if sum != uint64(id) {
		t.Fatalf("%s: the fields of %d make %d", l, id, sum)
	}
	if l.Ordered() {
		first, last, err := l.Bounds(p.Time, p.Time)
		if err != nil || id < first || id > last {
			t.Fatalf("%s: id %d, tick %d: bounds %d to %d, %v", l, id, p.Tick, first, last, err)
		}
	}
}

// boundaries are all combinations of the least and the greatest of each field.
func boundaries(l Layout) (ids []ID) {
	values := map[string][]int64{}
	for f := range l.Fields() {
		top := f.Max()
		if f.Name == "time" {
			top = int64(l.Last())
		}
		values[f.Name] = []int64{0, 1, top - 1, top}
		if f.Width == 1 {
			values[f.Name] = []int64{0, top}
		}
	}
	ids = []ID{0}
	for f := range l.Fields() {
		var more []ID
		for _, v := range values[f.Name] {
			for _, id := range ids {
				more = append(more, id|ID(v<<f.Shift))
			}
		}
		ids = more
	}
	return ids
}

func TestRoundTrip(t *testing.T) {
	for name, l := range Presets() {
		ids := boundaries(l)
		if len(ids) < 16 {
			t.Errorf("%s: %d boundary values", name, len(ids))
		}
		for _, id := range ids {
			checkRoundTrip(t, l, id)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	n := 300
	if testing.Short() {
		n = 30
	}
	for range n {
		l := randomLayout(r)
		for i, id := range boundaries(l) {
			if i < 64 || r.IntN(64) == 0 { // eight fields have 65,536
				checkRoundTrip(t, l, id)
			}
		}
	}
}

func FuzzLayoutRoundTrip(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint64(1)<<(3*seed))
		f.Add(seed, uint64(math.MaxInt64)>>(3*seed))
	}
	f.Fuzz(func(t *testing.T, seed, bits uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		l := randomLayout(r)
		checkRoundTrip(t, l, ID(bits))
		if l.Bits() < 64 {
			checkRoundTrip(t, l, ID(bits&(1<<l.Bits()-1)))
		}
	})
}

func TestDecodeErrors(t *testing.T) {
	_, err := Default().Decode(0)
	fails(t, err, "firn: id 0 is never issued")
	_, err = Default().Decode(-1)
	fails(t, err, "firn: id -1 is not positive")
	if _, err := JS53().Decode(1<<53 - 1); err != nil {
		t.Error(err)
	}
	_, err = JS53().Decode(1 << 53)
	fails(t, err, "firn: id 9007199254740992 has more than the 53 bits of layout js53")
	// Ended and to come, both are read.
	p, err := MustLayout("uidgenerator").Decode(math.MaxInt64)
	if err != nil || !p.Time.Equal(at(t, "2024-11-20T13:24:15Z")) {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = MustLayout("sid-single").Decode(math.MaxInt64)
	if err != nil || p.Time.Year() != 37698 || p.Worker != 1 || p.Seq != 4095 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestEncodeErrors(t *testing.T) {
	l := MustLayout("time:3@1s,shard:2,worker:4,seq:5;epoch=2020-01-01T00:00:00Z")
	for _, c := range []struct {
		l    Layout
		p    Parts
		want string
	}{
		{l, Parts{Tick: -1}, "firn: tick -1: layout time:3@1s,shard:2,worker:4,seq:5;epoch=2020-01-01T00:00:00Z has 0 to 7"},
		{l, Parts{Tick: 8}, "firn: tick 8: layout time:3@1s,shard:2,worker:4,seq:5;epoch=2020-01-01T00:00:00Z has 0 to 7"},
		{l, Parts{Shard: 4}, "firn: shard 4: layout time:3@1s,shard:2,worker:4,seq:5;epoch=2020-01-01T00:00:00Z has 0 to 3"},
		{l, Parts{Shard: -1}, "firn: shard -1: layout time:3@1s,shard:2,worker:4,seq:5;epoch=2020-01-01T00:00:00Z has 0 to 3"},
		{l, Parts{Worker: 16}, "firn: worker 16: layout time:3@1s,shard:2,worker:4,seq:5;epoch=2020-01-01T00:00:00Z has 0 to 15"},
		{l, Parts{Seq: 32}, "firn: seq 32: layout time:3@1s,shard:2,worker:4,seq:5;epoch=2020-01-01T00:00:00Z has 0 to 31"},
		{l, Parts{}, "firn: these parts make id 0 of layout time:3@1s,shard:2,worker:4,seq:5;epoch=2020-01-01T00:00:00Z, which is never issued"},
		{l, Parts{Time: l.Epoch()}, "firn: these parts make id 0 of layout time:3@1s,shard:2,worker:4,seq:5;epoch=2020-01-01T00:00:00Z, which is never issued"},
		{MustLayout("instagram"), Parts{Tick: 1, Worker: 1}, "firn: worker 1: layout instagram has no worker"},
		{MustLayout("twitter"), Parts{Tick: 1, Shard: 1}, "firn: shard 1: layout twitter has no shard"},
		{MustLayout("twitter"), Parts{Tick: 1, Worker: 1024}, "firn: worker 1024: layout twitter has 0 to 1023"},
		{MustLayout("instagram"), Parts{Tick: 1 << 40}, "firn: tick 1099511627776: layout instagram has 0 to 1099511627775"},
		{MustLayout("twitter"), Parts{Time: time.Unix(0, 0)}, "firn: time 1970-01-01T00:00:00Z: layout twitter begins at 2010-11-04T01:42:54.657Z"},
		{MustLayout("instagram"), Parts{Time: MustLayout("instagram").End()}, "firn: time 2046-06-27T17:00:49.497Z: layout instagram ends at 2046-06-27T17:00:49.497Z"},
		{MustLayout("twitter"), Parts{Time: at(t, "2010-11-04T01:42:54.660Z"), Tick: 4}, "firn: tick 4: that of time 2010-11-04T01:42:54.66Z is 3"},
	} {
		id, err := c.l.Encode(c.p)
		if id != 0 {
			t.Errorf("%+v: id %d", c.p, id)
		}
		fails(t, err, c.want)
	}
	id, err := MustLayout("instagram").Encode(Parts{Time: MustLayout("instagram").End().Add(-1), Shard: 8191, Seq: 1023})
	if err != nil || id != math.MaxInt64 {
		t.Errorf("the last id of instagram: %d, %v", id, err)
	}
}

func TestBounds(t *testing.T) {
	l := MustLayout("time:4@1s,worker:2,seq:2;epoch=2020-01-01T00:00:00Z") // 16 ids a tick
	second := func(s float64) time.Time { return l.Epoch().Add(time.Duration(s * 1e9)) }
	for _, c := range []struct {
		from, to    float64
		first, last ID
	}{
		{1, 2, 16, 31},
		{1, 1, 16, 31},
		{1.5, 1.5, 16, 31},
		{1.5, 1.6, 16, 31},
		{1, 2.000000001, 16, 47},
		{1.999999999, 2, 16, 31},
		{1.999999999, 2.000000001, 16, 47},
		{0, 0, 1, 15}, // never 0
		{0, 16, 1, 255},
		{15, 15, 240, 255},
		{-5, 1, 1, 15}, // partly before
		{-5, 0.1, 1, 15},
		{15, 99, 240, 255}, // partly after
		{-1e9, 1e9, 1, 255},
	} {
		first, last, err := l.Bounds(second(c.from), second(c.to))
		if err != nil || first != c.first || last != c.last {
			t.Errorf("%v to %v: %d to %d, %v; want %d to %d", c.from, c.to, first, last, err, c.first, c.last)
		}
	}
	for _, c := range []struct {
		l        Layout
		from, to string
		want     string
	}{
		{l, "2020-01-01T00:00:02Z", "2020-01-01T00:00:01Z", "firn: bounds: 2020-01-01T00:00:01Z is before 2020-01-01T00:00:02Z"},
		{l, "2019-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "firn: bounds: layout time:4@1s,worker:2,seq:2;epoch=2020-01-01T00:00:00Z makes no id from 2019-01-01T00:00:00Z to 2020-01-01T00:00:00Z: it goes from 2020-01-01T00:00:00Z to 2020-01-01T00:00:16Z"},
		{l, "2020-01-01T00:00:16Z", "2020-01-01T00:00:16Z", "firn: bounds: layout time:4@1s,worker:2,seq:2;epoch=2020-01-01T00:00:00Z makes no id from 2020-01-01T00:00:16Z to 2020-01-01T00:00:16Z: it goes from 2020-01-01T00:00:00Z to 2020-01-01T00:00:16Z"},
		{MustLayout("worker:4,time:10;epoch=2020-01-01T00:00:00Z"), "2020-01-01T00:00:00Z", "2020-01-01T00:00:01Z", "firn: bounds: ids of layout worker:4,time:10@1ms;epoch=2020-01-01T00:00:00Z do not sort by time"},
		// The only id of this tick would be 0.
		{MustLayout("time:10@1s;epoch=2020-01-01T00:00:00Z"), "2020-01-01T00:00:00Z", "2020-01-01T00:00:01Z", "firn: bounds: layout time:10@1s;epoch=2020-01-01T00:00:00Z makes no id from 2020-01-01T00:00:00Z to 2020-01-01T00:00:01Z: it goes from 2020-01-01T00:00:00Z to 2020-01-01T00:17:04Z"},
	} {
		first, last, err := c.l.Bounds(at(t, c.from), at(t, c.to))
		if first != 0 || last != 0 {
			t.Errorf("%s to %s: %d to %d", c.from, c.to, first, last)
		}
		fails(t, err, c.want)
	}
	// So long before the epoch that its tick, shifted, is positive again.
	if first, last, err := Default().Bounds(Default().Time(1-1<<42), Default().Time(1)); err != nil || first != 1 || last != 1<<22-1 {
		t.Errorf("from long ago: %d to %d, %v", first, last, err)
	}
	// All there is, 64 bits, and far beyond both ends.
	if first, last, err := MustLayout("mastodon").Bounds(time.Unix(-1<<60, 0), time.Unix(1<<60, 0)); err != nil || first != 1 || last != math.MaxInt64 {
		t.Errorf("mastodon: %d to %d, %v", first, last, err)
	}
}

// Bounds against every id of a small layout.
func TestBoundsAgainstAll(t *testing.T) {
	l := MustLayout("time:4@1s,shard:1,seq:2,worker:2;epoch=2020-01-01T00:00:00Z")
	for from := -3; from < 40; from++ {
		for to := from; to < 40; to++ {
			begin, end := l.Epoch().Add(time.Duration(from)*time.Second/2), l.Epoch().Add(time.Duration(to)*time.Second/2)
			var ids []ID
			for id := ID(1); id < 1<<l.Bits(); id++ {
				p, _ := l.Decode(id)
				overlaps := p.Time.Before(end) && p.Time.Add(l.Unit()).After(begin)
				holds := !p.Time.After(begin) && p.Time.Add(l.Unit()).After(begin)
				if overlaps || from == to && holds {
					ids = append(ids, id)
				}
			}
			first, last, err := l.Bounds(begin, end)
			if len(ids) == 0 {
				if err == nil {
					t.Fatalf("%d to %d: %d to %d, want none", from, to, first, last)
				}
			} else if err != nil || first != ids[0] || last != ids[len(ids)-1] {
				t.Fatalf("%d to %d: %d to %d, %v; want %d to %d", from, to, first, last, err, ids[0], ids[len(ids)-1])
			}
		}
	}
}

func BenchmarkLayout(b *testing.B) {
	const id = 844272577781444608
	l := MustLayout("classic")
	p, _ := l.Decode(id)
	seq, _ := l.Field("seq")
	b.Run("Decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = l.Decode(id)
		}
	})
	b.Run("Encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = l.Encode(p)
		}
	})
	b.Run("Field.Of", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = seq.Of(id)
		}
	})
}
