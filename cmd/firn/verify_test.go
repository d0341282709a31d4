package main

import (
	"encoding/binary"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// tallied tallies some text.
func tallied(t testing.TB, l firn.Layout, format, text string) *tally {
	t.Helper()
	all := newTally(l, true)
	v := verifyInput{name: "x", in: strings.NewReader(text), format: format, column: "1", read: new(atomic.Int64)}
	if err := v.each(all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTally compares a tally of random ids, dense and sparse, of several makers, with
// what a map says.
func TestTally(t *testing.T) {
	for name, layout := range firn.Presets() {
		t.Run(name, func(t *testing.T) {
			all := newTally(layout, true)
			seen, perMaker := make(map[firn.ID]bool), make(map[string]int64)
			var repeats int64
			span := int64(1) << 20
			for range 50_000 {
				p := firn.Parts{
					Tick: firn.Tick(1 + rand.Int64N(3)*span + rand.Int64N(4)), Seq: rand.Int64N(4),
					Worker: rand.Int64N(min(layout.Workers(), 3)), Shard: rand.Int64N(min(layout.Shards(), 3)),
				}
				if rand.IntN(2) == 0 {
					p.Tick = firn.Tick(1 + rand.Int64N(int64(layout.Last())))
				}
				p.Time = layout.Time(p.Tick)
				id, err := layout.Encode(p)
				if err != nil {
					t.Fatal(err)
				}
				if seen[id] {
					repeats++
				}
				seen[id] = true
				all.add(id, func() string { return "" })
				perMaker[strconv.FormatInt(p.Shard, 10)+" "+strconv.FormatInt(p.Worker, 10)]++
			}
			if all.repeats != repeats || repeats == 0 || all.faults != 0 {
				t.Errorf("%d repeats and %d faults of %d repeats", all.repeats, all.faults, repeats)
			}
			for _, m := range all.end() {
				var minutes int64
				for _, in := range m.minutes {
					minutes += in.ids
				}
				if want := perMaker[strconv.FormatInt(m.parts.Shard, 10)+" "+strconv.FormatInt(m.parts.Worker, 10)]; m.ids != want || minutes != want {
					t.Errorf("%s made %d, by minutes %d; it was %d", all.name(m), m.ids, minutes, want)
				}
			}
		})
	}
}

// TestTallyMemory: ids of makers that are seldom busy take little each, also where
// these were busy once.
func TestTallyMemory(t *testing.T) {
	const ids, makers = 1 << 18, 64
	start := firn.Default.Tick(time.Date(2025, 2, 1, 0, 0, 0, 0, time.UTC))
	for name, tick := range map[string]func(i int) firn.Tick{
		"one an hour":          func(i int) firn.Tick { return firn.Tick(i/makers) * 3_600_000 },
		"in no order":          func(int) firn.Tick { return rand.N[firn.Tick](3_600_000 * ids / makers) },
		"busy, and then alone": func(i int) firn.Tick { return max(firn.Tick(i), firn.Tick(i-ids/4)*3_600_000/8) },
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			all := newTally(firn.Default, false)
			for i := range ids {
				id, err := firn.Default.Encode(firn.Parts{Time: firn.Default.Time(start + tick(i)), Worker: int64(i % makers)})
				if err != nil {
					t.Fatal(err)
				}
				all.add(id, func() string { return "" })
			}
			if each := float64(heap()-before) / ids; each > 20 {
				t.Errorf("%.1f bytes for each id", each)
			}
			all.end()
		})
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestVerifyMinutes: gaps and minutes are by the time in the ids, whichever they were read
// in. A gap is of the minute of the id before it, also where it ends in a later one.
func TestVerifyMinutes(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	all := newTally(firn.Default, true)
	for _, d := range []time.Duration{0, 10, 15, 75, 76, 30, 38, 58, 30} {
		id, err := firn.Default.Encode(firn.Parts{Time: start.Add(d * time.Second), Worker: 7})
		if err != nil {
			t.Fatal(err)
		}
		all.add(id, func() string { return "" })
	}
	m := all.end()[0]
	want := map[int64]minute{start.Unix() / 60: {7, 20_000}, start.Unix()/60 + 1: {2, 1000}}
	after := firn.Default.Tick(start.Add(38 * time.Second))
	if !maps.Equal(m.minutes, want) || m.gap != 20_000 || m.gapAfter != after || m.most != 7 {
		t.Errorf("%v, longest gap %d after %d, most %d", m.minutes, m.gap, m.gapAfter, m.most)
	}
}

func TestVerifyBinary(t *testing.T) {
	var b []byte
	for _, v := range []uint64{250041753275469782, 250041753275469783, 250041753275469782, 0, 1 << 63} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	all := tallied(t, firn.Default, formatBinary, string(b)+"abc")
	if all.ids != 3 || all.repeats != 1 || all.faults != 3 {
		t.Errorf("%d ids, %d repeats, %d faults", all.ids, all.repeats, all.faults)
	}
	if at := all.repeated[0].at; at != "x: id 3, at byte 16" {
		t.Errorf("the repeat is at %q", at)
	}
}

// FuzzVerify reads anything: each line is an id as ParseID reads it, or a fault.
func FuzzVerify(f *testing.F) {
	f.Add("1\n2\n2\n", formatLines)
	f.Add("9223372036854775807\n9223372036854775808\n00\n 7 \r\n\n-1", formatLines)
	f.Add("a,b\n\"1\",2\n,\n", formatCSV)
	f.Add("12345678abcdefgh\x80", formatBinary)
	f.Fuzz(func(t *testing.T, text, format string) {
		all := newTally(firn.Default, false)
		v := verifyInput{name: "x", in: strings.NewReader(text), format: format, column: "1", read: new(atomic.Int64)}
		err := v.each(all)
		if format != formatLines && format != formatCSV && format != formatBinary {
			return // read as lines too
		}
		if format == formatLines {
			var ids, faults int64
			for line := range strings.Lines(strings.TrimPrefix(text, mark)) {
				if line = strings.TrimSpace(line); line == "" {
					continue
				}
				if _, err := firn.ParseID(line); err != nil || len(line) > maxLine {
					faults++
				} else {
					ids++
				}
			}
			if all.ids != ids || all.faults != faults || err != nil {
				t.Errorf("%d ids and %d faults, not %d and %d; %v", all.ids, all.faults, ids, faults, err)
			}
		}
		all.end()
		if err := all.print(io.Discard, nil, nil); err != nil {
			t.Error(err)
		}
	})
}
