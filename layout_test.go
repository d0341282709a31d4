package firn

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// at reads an instant.
func at(t testing.TB, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// fails checks the message of an error.
func fails(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("error: %v\nwant:  %s", err, want)
	}
}

// randomLayout makes a valid layout of any shape: 1 to 8 fields in any order,
// any tick, any epoch.
func randomLayout(r *rand.Rand) Layout {
	for {
		names := []string{"time", "shard", "seq", "worker", "datacenter", "a", "b_2", "abcdefghijklmnop"}
		names = names[:1+r.IntN(len(names))]
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		if r.IntN(2) == 0 {
			for i, name := range names {
				if name == "time" {
					names[0], names[i] = names[i], names[0]
				}
			}
		}
		left := 63 + r.IntN(2)
		var fields []string
		for i, name := range names {
			others := len(names) - 1 - i
			if left-others < 1 {
				break
			}
			width := 1 + r.IntN(min(left-others, 63))
			left -= width
			field := fmt.Sprintf("%s:%d", name, width)
			if name == "time" {
				field += "@" + []string{"1us", "1500us", "1ms", "10ms", "1s", "90s", "1m", "1h"}[r.IntN(8)]
			}
			fields = append(fields, field)
		}
		epoch := time.Unix(0, r.Int64()).UTC()
		switch r.IntN(4) {
		case 0:
			epoch = time.Unix(0, 0).UTC()
		case 1:
			epoch = time.Unix(0, math.MaxInt64).UTC()
		}
		l, err := ParseLayout(strings.Join(fields, ",") + ";epoch=" + epoch.Format(time.RFC3339Nano))
		if err == nil {
			return l
		}
	}
}

func TestLayoutAccessors(t *testing.T) {
	for _, c := range []struct {
		spec            string
		bits            int
		last            Tick
		end             string
		workers, shards int64
		rate            float64
		ordered         bool
		safe53          string
	}{
		{"firn", 63, 1<<41 - 1, "2094-09-07T15:47:35.552Z", 1024, 1, 4_096_000, true, "2025-01-25T20:31:23.648Z"},
		{"twitter", 63, 1<<41 - 1, "2080-07-10T17:30:30.209Z", 1024, 1, 4_096_000, true, "2010-11-28T22:14:18.305Z"},
		// 64 bits: the time's own highest bit is the sign, so half of it is gone.
		{"instagram", 64, 1<<40 - 1, "2046-06-27T17:00:49.497Z", 1, 8192, 1_024_000, true, "2011-09-06T07:22:43.545Z"},
		{"sharded", 63, 1<<41 - 1, "2094-09-07T15:47:35.552Z", 1, 8192, 512_000, true, "2025-01-25T20:31:23.648Z"},
		{"discord", 64, 1<<41 - 1, "2084-09-06T15:47:35.552Z", 1024, 1, 4_096_000, true, "2015-01-25T20:31:23.648Z"},
		{"mastodon", 64, 1<<47 - 1, "6429-10-17T02:45:55.328Z", 1, 1, 65_536_000, true, "1974-05-10T17:29:13.472Z"},
		{"uidgenerator", 63, 1<<28 - 1, "2024-11-20T13:24:16Z", 1 << 22, 1, 8192, true, "2016-05-22T16:49:04Z"},
		{"sonyflake", 63, 1<<39 - 1, "2188-11-16T03:28:58.88Z", 1 << 16, 1, 25_600, true, "2014-11-02T03:18:29.12Z"},
		{"js53", 53, 1<<41 - 1, "2094-09-07T15:47:35.552Z", 64, 1, 64_000, true, "2094-09-07T15:47:35.552Z"},
		// One bit each, one tick each.
		{"time:1@1us;epoch=2020-01-01T00:00:00Z", 1, 1, "2020-01-01T00:00:00.000002Z", 1, 1, 1e6, true, "2020-01-01T00:00:00.000002Z"},
		{"time:1@1h,seq:1;epoch=2020-01-01T00:00:00Z", 2, 1, "2020-01-01T02:00:00Z", 1, 1, 2.0 / 3600, true, "2020-01-01T02:00:00Z"},
		{"time:2@1h,worker:62;epoch=2020-01-01T00:00:00Z", 64, 1, "2020-01-01T02:00:00Z", 1 << 62, 1, 1.0 / 3600, true, "2020-01-01T00:00:00Z"},
		// Exactly 53 bits below the time; and one bit fewer.
		{"time:10@1s,seq:53;epoch=2020-01-01T00:00:00Z", 63, 1023, "2020-01-01T00:17:04Z", 1, 1, 1 << 53, true, "2020-01-01T00:00:01Z"},
		{"time:10@1s,seq:52;epoch=2020-01-01T00:00:00Z", 62, 1023, "2020-01-01T00:17:04Z", 1, 1, 1 << 52, true, "2020-01-01T00:00:02Z"},
		{"time:10@1s,seq:44;epoch=2020-01-01T00:00:00Z", 54, 1023, "2020-01-01T00:17:04Z", 1, 1, 1 << 44, true, "2020-01-01T00:08:32Z"},
		// The time does not lead: any instant may have an id above 2^53-1.
		{"shard:13,time:41,seq:9;epoch=2020-01-01T00:00:00Z", 63, 1<<41 - 1, "2089-09-06T15:47:35.552Z", 1, 8192, 512_000, false, "2020-01-01T00:00:00Z"},
		{"shard:3,time:41,seq:10;epoch=2020-01-01T00:00:00Z", 54, 1<<41 - 1, "2089-09-06T15:47:35.552Z", 1, 8, 1_024_000, false, "2020-01-01T00:00:00Z"},
		{"shard:2,time:41,seq:10;epoch=2020-01-01T00:00:00Z", 53, 1<<41 - 1, "2089-09-06T15:47:35.552Z", 1, 4, 1_024_000, false, "2089-09-06T15:47:35.552Z"},
	} {
		l := MustLayout(c.spec)
		if l.Bits() != c.bits || l.Last() != c.last || l.Workers() != c.workers || l.Shards() != c.shards || l.Ordered() != c.ordered {
			t.Errorf("%s: %d bits, last %d, %d workers, %d shards, ordered %t", c.spec, l.Bits(), l.Last(), l.Workers(), l.Shards(), l.Ordered())
		}
		if math.Abs(l.Rate()/c.rate-1) > 1e-12 {
			t.Errorf("%s: rate %v, want %v", c.spec, l.Rate(), c.rate)
		}
		if !l.End().Equal(at(t, c.end)) || l.End().Location() != time.UTC {
			t.Errorf("%s: ends at %s, want %s", c.spec, l.End(), c.end)
		}
		if !l.Safe53().Equal(at(t, c.safe53)) {
			t.Errorf("%s: safe until %s, want %s", c.spec, l.Safe53(), c.safe53)
		}
	}
}

// Safe53 against the ids themselves: the last before it and the first from it
// on, of the workers and sequences that make them highest.
func TestSafe53(t *testing.T) {
	const exact = 1<<53 - 1
	r := rand.New(rand.NewPCG(53, 0))
	for range 5000 {
		l := randomLayout(r)
		if !l.Ordered() {
			continue
		}
		tick := l.Tick(l.Safe53())
		if tick > 0 {
			if _, last, err := l.Bounds(l.Epoch(), l.Time(tick)); err == nil && last > exact {
				t.Fatalf("%s: id %d comes before %s", l, last, l.Safe53())
			}
		}
		if tick <= l.Last() {
			if _, last, err := l.Bounds(l.Time(tick), l.Time(tick)); err != nil || last <= exact {
				t.Fatalf("%s: id %d is the last of tick %d", l, last, tick)
			}
		}
	}
}

func TestFields(t *testing.T) {
	var got []string
	for f := range MustLayout("discord").Fields() {
		got = append(got, fmt.Sprintf("%s %d<<%d max %d worker %t id %d", f.Name, f.Width, f.Shift, f.Max(), f.IsWorker(), f.Of(175928847299117063)))
	}
	want := []string{
		"time 42<<22 max 4398046511103 worker false id 41944705796",
		"worker 5<<17 max 31 worker true id 1",
		"process 5<<12 max 31 worker true id 0",
		"seq 12<<0 max 4095 worker false id 7",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q", got)
	}
	for range MustLayout("discord").Fields() {
		break
	}
	if f, ok := MustLayout("discord").Field("process"); !ok || f != (Field{"process", 5, 12}) {
		t.Errorf("process: %+v, %t", f, ok)
	}
	if f, ok := MustLayout("discord").Field("shard"); ok || f != (Field{}) || f.IsWorker() || f.Max() != 0 || f.Of(math.MaxInt64) != 0 {
		t.Errorf("shard: %+v, %t", f, ok)
	}
	if f, _ := MustLayout("time:63@1us;epoch=2020-01-01T00:00:00Z").Field("time"); f.Max() != math.MaxInt64 || f.Of(math.MaxInt64) != math.MaxInt64 {
		t.Errorf("63 bits: max %d", f.Max())
	}
}

func TestLayoutIsValue(t *testing.T) {
	a := MustLayout("worker:10,time:41@10ms;epoch=2020-01-01T00:00:00Z")
	b := MustLayout("worker:10,time:41@10000us;epoch=2020-01-01T07:00:00+07:00")
	if a != b || a == MustLayout("worker:10,time:41@10ms;epoch=2020-01-01T00:00:00.000000001Z") {
		t.Error("layouts do not compare by what they say")
	}
	// A parse that failed after some fields must not leave them in another.
	if map[Layout]int{a: 1}[b] != 1 {
		t.Error("layouts do not work as keys")
	}
}

// nanos is an instant as the count of nanoseconds since 1970.
func nanos(t time.Time) *big.Int {
	n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9))
	return n.Add(n, big.NewInt(int64(t.Nanosecond())))
}

// Time and Tick against arithmetic that cannot overflow.
func TestTimeAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	highest, lowest := big.NewInt(math.MaxInt64), big.NewInt(math.MinInt64)
	for range 20_000 {
		l := randomLayout(r)
		unit, epoch := big.NewInt(int64(l.Unit())), nanos(l.Epoch())
		tick := Tick(r.Uint64()) >> r.IntN(64)
		if r.IntN(8) == 0 {
			tick = []Tick{0, 1, -1, l.Last(), l.Last() + 1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1}[r.IntN(8)]
		}
		want := new(big.Int).Mul(big.NewInt(int64(tick)), unit)
		far := new(big.Int).Rsh(new(big.Int).Abs(want), 62).Cmp(big.NewInt(1e9)) >= 0
		want.Add(want, epoch)
		got := l.Time(tick)
		if !far && nanos(got).Cmp(want) != 0 {
			t.Fatalf("%s: Time(%d) = %s, %s ns off", l, tick, got, new(big.Int).Sub(nanos(got), want))
		}
		if far && got.Unix() != l.Epoch().Unix()+int64(1)<<62 && got.Unix() != l.Epoch().Unix()-int64(1)<<62 {
			t.Fatalf("%s: Time(%d) = %s, which is not brought back", l, tick, got)
		}

		when := time.Unix(int64(r.Uint64())>>r.IntN(64), r.Int64N(1e9))
		if r.IntN(2) == 0 && !far {
			when = got.Add(time.Duration(r.IntN(3) - 1)) // around where a tick begins
		}
		quotient := new(big.Int).Sub(nanos(when), epoch)
		quotient.Div(quotient, unit) // Euclidean: down, as unit is positive
		if quotient.Cmp(highest) > 0 {
			quotient = highest
		}
		if quotient.Cmp(lowest) < 0 {
			quotient = lowest
		}
		if got := l.Tick(when); big.NewInt(int64(got)).Cmp(quotient) != 0 {
			t.Fatalf("%s: Tick(%d s %d ns) = %d, want %s", l, when.Unix(), when.Nanosecond(), got, quotient)
		}
	}
}

// Every tick that an id can carry comes back from the instant it begins, the
// instant before belongs to the tick before, and the last ends at End.
func TestTickBoundaries(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for range 5000 {
		l := randomLayout(r)
		for _, tick := range []Tick{0, 1, l.Last() / 2, l.Last() - 1, l.Last()} {
			begin := l.Time(tick)
			if l.Tick(begin) != tick || l.Tick(begin.Add(l.Unit()-1)) != tick || l.Tick(begin.Add(-1)) != tick-1 {
				t.Fatalf("%s: tick %d begins at %s, which is in %d", l, tick, begin, l.Tick(begin))
			}
		}
		if end := l.Time(l.Last()).Add(l.Unit()); !end.Equal(l.End()) {
			t.Fatalf("%s: the last tick ends at %s, the layout at %s", l, end, l.End())
		}
		if !l.Time(0).Equal(l.Epoch()) {
			t.Fatalf("%s: tick 0 begins at %s", l, l.Time(0))
		}
	}
}

func TestCheck(t *testing.T) {
	end := MustLayout("uidgenerator").End()
	if err := MustLayout("uidgenerator").Check(end.Add(-1)); err != nil {
		t.Errorf("in its last instant: %v", err)
	}
	err := MustLayout("uidgenerator").Check(end)
	fails(t, err, "firn: layout uidgenerator ended on 2024-11-20: no id can carry a time from 2024-11-20T13:24:16Z on")
	if ended, ok := errors.AsType[*EndError](err); !ok || ended.Layout != MustLayout("uidgenerator") || !ended.End.Equal(end) {
		t.Errorf("%#v", err)
	}
	if err := Default().Check(Default().Epoch()); err != nil {
		t.Errorf("at its epoch: %v", err)
	}
	now := at(t, "2024-12-31T23:59:59.5+07:00")
	err = Default().Check(now)
	fails(t, err, "firn: layout firn begins at 2025-01-01T00:00:00Z, and the clock says 2024-12-31T16:59:59.5Z")
	if early, ok := errors.AsType[*EpochError](err); !ok || early.Layout != Default() || !early.Now.Equal(now) {
		t.Errorf("%#v", err)
	}
	// Far from the epoch, where a time.Duration has overflowed.
	if err := MustLayout("sid-single").Check(at(t, "9999-01-01T00:00:00Z")); err != nil {
		t.Error(err)
	}
	fails(t, MustLayout("mastodon").Check(at(t, "6429-10-17T02:45:55.328Z")), "firn: layout mastodon ended on 6429-10-17: no id can carry a time from 6429-10-17T02:45:55.328Z on")
	varied := MustLayout("uidgenerator;epoch=2026-05-19T16:00:00Z")
	fails(t, varied.Check(at(t, "2100-01-01T00:00:00Z")), "firn: layout time:28@1s,worker:22,seq:13;epoch=2026-05-19T16:00:00Z ended on 2034-11-20: no id can carry a time from 2034-11-20T13:24:16Z on")
}

// The zero Layout is refused where there is an error to refuse it with, and
// panics nowhere.
func TestZeroLayout(t *testing.T) {
	const want = "firn: the zero Layout is not valid"
	var l Layout
	if l.IsValid() || !Default().IsValid() {
		t.Error("IsValid")
	}
	_, err := l.Decode(1)
	fails(t, err, want)
	_, err = l.Encode(Parts{Tick: 1})
	fails(t, err, want)
	_, _, err = l.Bounds(time.Unix(0, 0), time.Unix(1, 0))
	fails(t, err, want)
	_, err = l.MarshalText()
	fails(t, err, want)
	fails(t, l.Check(time.Now()), want)
	if l.String() != "invalid layout" || l.Name() != "" {
		t.Errorf("%s, %q", l.String(), l.Name())
	}
	for range l.Fields() {
		t.Error("it has a field")
	}
	_ = fmt.Sprint(l.Bits(), l.Last(), l.End(), l.Workers(), l.Shards(), l.Rate(), l.Ordered(), l.Safe53(),
		l.Unit(), l.Epoch(), l.Time(1), l.Time(-1), l.Tick(time.Unix(5, 0)), l.Tick(time.Unix(-5, 0)))
}
