package inspect

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/firn-id/firn"
)

// An id does not say which layout it is of. Nearly every number can be read in
// all of them; most readings are absurd, with a time to come or before the
// system existed, and of the others some take more believing than others.
//
// A reading is as plausible as its description is short. cost counts the bits
// it takes to write the id down for somebody who knows the layout and how its
// systems number things: how long ago, in ticks, so that recent is cheap; small
// numbers are cheap where workers are numbered from 0 and sequences start at 0
// with each tick; fields that are even by design (a shard from a hash, a machine
// from an address, a sequence that runs on) cost their width, and neither help
// nor harm. Layouts that few people use cost a little more; firn's own less,
// because whoever has this command is likely to have its ids.

// A habit is what is known of the ids of a preset.
type habit struct {
	since time.Time // no id of it is older
	rare  float64   // bits it costs to name it
	even  string    // the field that is even by design, besides a shard
}

var habits = map[string]habit{
	"firn":           {since: date(2025), rare: -5, even: "seq"},
	"twitter":        {since: date(2010)},
	"classic":        {since: date(2016), rare: 2},
	"instagram":      {since: date(2011), rare: 1, even: "seq"},
	"sharded":        {since: date(2026), rare: 1, even: "seq"},
	"discord":        {since: date(2015)},
	"mastodon":       {since: date(2016), rare: 1, even: "seq"},
	"leaf":           {since: date(2014), rare: 1}, // bwmarrin/snowflake's too
	"sonyflake":      {since: date(2014), rare: 1, even: "machine"},
	"uidgenerator":   {since: date(2016), rare: 2},
	"idgen":          {since: date(2015), rare: 3},
	"sid":            {since: date(2019), rare: 3},
	"sid-single":     {since: date(2019), rare: 3},
	"shardingsphere": {since: date(2016), rare: 2},
	"js53":           {since: date(2025), rare: 2},
}

// variants are layouts that systems use which have the bits of a preset and another epoch.
var variants = []struct {
	spec string
	habit
}{
	// Instagram's, as the articles about it have it.
	{"instagram;epoch=2011-01-01T00:00:00Z", habit{since: date(2011), rare: 2, even: "seq"}},
}

func date(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }

// Bounds of a plausible time.
const (
	soonest = 24 * time.Hour // after the epoch: a small number is a small number, and no id
	latest  = 24 * time.Hour // after now: clocks differ
)

// Plausible reports whether an id can be of the layout and made by now: a day after the epoch
// at the soonest, and at most a day from now, since clocks differ.
func (d *Decoder) Plausible(id firn.ID, now time.Time) bool {
	p, err := d.layout.Decode(id)
	return err == nil && p.Time.Sub(d.layout.Epoch()) >= soonest && !p.Time.After(now.Add(latest))
}

// A candidate is a preset that an id may be of, with what follows from the time.
type candidate struct {
	*Decoder
	habit
	clock                 firn.Field
	now, earliest, newest firn.Tick // the ticks of a plausible id, and that of now
}

// A Guesser says which of the layouts known by name an id may have. It is safe for concurrent
// use.
type Guesser struct{ candidates []candidate }

// NewGuesser returns a guesser for ids that were made by now, of all presets but some, and of
// layouts with the bits of a preset and another epoch that is in use.
func NewGuesser(now time.Time, but ...firn.Layout) *Guesser {
	g := new(Guesser)
	add := func(l firn.Layout, name string, h habit) {
		if slices.Contains(but, l) {
			return
		}
		c := candidate{Decoder: NewDecoder(l), habit: h}
		c.name, c.same = name, sameBits(l)
		c.clock, _ = l.Field("time")
		c.now, c.newest = l.Tick(now), l.Tick(now.Add(latest))
		c.earliest = max(l.Tick(l.Epoch().Add(soonest)), l.Tick(c.since))
		g.candidates = append(g.candidates, c)
	}
	for name, l := range firn.Presets() {
		add(l, name, habits[name])
	}
	for _, v := range variants {
		add(firn.MustLayout(v.spec), v.spec, v.habit)
	}
	return g
}

// cost returns how many bits it takes to describe id as one of this preset, and
// whether that makes sense at all.
func (c *candidate) cost(id firn.ID) (bits float64, ok bool) {
	tick := firn.Tick(c.clock.Of(id))
	if uint64(id)>>c.layout.Bits() != 0 || tick < c.earliest || tick > c.newest {
		return 0, false
	}
	bits = c.rare + math.Log2(1+math.Abs(float64(c.now-tick)))
	for _, f := range c.fields {
		if f.Name == "shard" || f.Name == c.even {
			bits += float64(f.Width)
			continue
		}
		// A number of unknown size takes about twice its own length; one that
		// could be anything, its width and a bit to say so.
		bits += min(2*math.Log2(1+float64(f.Of(id)))+1, float64(f.Width)+1)
	}
	return bits, true
}

// A Guess is a layout known by name in which an id makes sense.
type Guess struct {
	*Decoder
	Bits float64 // how many bits describe the id as one of this layout; the fewer, the more plausible
}

// Append appends the presets in which an id makes sense, the most plausible first.
func (g *Guesser) Append(dst []Guess, id firn.ID) []Guess {
	for i := range g.candidates {
		if bits, ok := g.candidates[i].cost(id); ok {
			dst = append(dst, Guess{g.candidates[i].Decoder, bits})
		}
	}
	slices.SortStableFunc(dst, func(a, b Guess) int { return cmp.Compare(a.Bits, b.Bits) })
	return dst
}
