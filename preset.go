package firn

import (
	"iter"
	"strings"

	"github.com/firn-id/firn/internal/nearest"
)

// Layouts known by name, firn's own and those of others. They are here to read
// ids that exist and to go on where another system stopped; for a new one take
// Default, JS53 if the ids have to be JavaScript numbers, or Sharded if shards of
// PostgreSQL make them.
var (
	// Default, "firn", is firn's own: 1,024 workers, 4,096 ids a millisecond
	// from each, until 2094. It never changes.
	Default = known("time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z")

	// Twitter, "twitter", is that of Twitter's Snowflake: IdWorker.scala in
	// twitter-archive/snowflake, release snowflake-2010, twepoch 1288834974657.
	Twitter = known("time:41@1ms,datacenter:5,worker:5,seq:12;epoch=2010-11-04T01:42:54.657Z")

	// Classic, "classic", is that of the generator in one class that tutorials
	// copy from each other, with a datacenter and a machine of 5 bits each and
	// START_STMP = 1480166465631. It is Twitter's but for the epoch.
	Classic = known("time:41@1ms,datacenter:5,worker:5,seq:12;epoch=2016-11-26T13:21:05.631Z")

	// Instagram, "instagram", is that of the PL/pgSQL function in Instagram
	// Engineering's post "Sharding & IDs at Instagram" (2011), our_epoch
	// 1314220021721. Its 64 bits meet the sign in 2046.
	Instagram = known("time:41@1ms,shard:13,seq:10;epoch=2011-08-24T21:07:01.721Z")

	// Sharded, "sharded", is firn's own for ids made in the shards of PostgreSQL:
	// 8,192 shards, 512 ids a millisecond from each, until 2094. It has a bit less
	// of sequence than Instagram, and no bit of time is lost to the sign. It never
	// changes.
	Sharded = known("time:41@1ms,shard:13,seq:9;epoch=2025-01-01T00:00:00Z")

	// Discord, "discord", is that of Discord's API reference, section
	// Snowflakes: milliseconds since the first second of 2015, internal worker,
	// internal process, increment. Its 64 bits meet the sign in 2084.
	Discord = known("time:42@1ms,worker:5,process:5,seq:12;epoch=2015-01-01T00:00:00Z")

	// Mastodon, "mastodon", is that of timestamp_id in Mastodon's
	// lib/mastodon/snowflake.rb: Unix milliseconds over 16 bits that are a
	// table's sequence added to a salted hash. They tell ids apart and count
	// nothing: do not make ids with it beside Mastodon.
	Mastodon = known("time:48@1ms,seq:16;epoch=1970-01-01T00:00:00Z")

	// Leaf, "leaf", is that of Meituan's Leaf in snowflake mode, as its
	// SnowflakeIDGenImpl.java has it: Twitter's epoch, 1288834974657, and one
	// worker of 10 bits.
	Leaf = known("time:41@1ms,worker:10,seq:12;epoch=2010-11-04T01:42:54.657Z")

	// Sonyflake, "sonyflake", is that of Sony's Sonyflake, version 1:
	// sonyflake.go in sony/sonyflake. The machine is below the sequence.
	// Version 2 has the same bits and begins in 2025, unless it is told
	// otherwise: sonyflake;epoch=2025-01-01T00:00:00Z.
	Sonyflake = known("time:39@10ms,seq:8,machine:16;epoch=2014-09-01T00:00:00Z")

	// UIDGenerator, "uidgenerator", is what Baidu's uid-generator has without
	// configuration: DefaultUidGenerator.java, epochSeconds 1463673600, which
	// is midnight of 2016-05-20 at UTC+8. It ended on 2024-11-20 at 13:24:16
	// UTC: its ids can be read, and no more can be made.
	UIDGenerator = known("time:28@1s,worker:22,seq:13;epoch=2016-05-19T16:00:00Z")

	// IdGen, "idgen", is what RobThree's IdGen for .NET has without
	// configuration: IdStructure.cs and IdGeneratorOptions.cs. Its worker is
	// called generator-id there.
	IdGen = known("time:41@1ms,worker:10,seq:12;epoch=2015-01-01T00:00:00Z")

	// SID, "sid", is IdGen's structure set to 45, 6 and 12 bits with the epoch
	// 2019-12-01, for up to 64 workers told apart by a heartbeat table.
	SID = known("time:45@1ms,worker:6,seq:12;epoch=2019-12-01T00:00:00Z")

	// SIDSingle, "sid-single", is SID for one worker, whose field keeps one bit:
	// 50, 1 and 12.
	SIDSingle = known("time:50@1ms,worker:1,seq:12;epoch=2019-12-01T00:00:00Z")

	// ShardingSphere, "shardingsphere", is that of Apache ShardingSphere's
	// SNOWFLAKE key generator: SnowflakeKeyGenerateAlgorithm.java. Its epoch is
	// midnight of 2016-11-01, in UTC since the middle of 2026. Older versions
	// took midnight in the time zone of their JVM, so ids made in China need
	// shardingsphere;epoch=2016-11-01T00:00:00+08:00.
	ShardingSphere = known("time:41@1ms,worker:10,seq:12;epoch=2016-11-01T00:00:00Z")

	// JS53, "js53", is firn's own for ids that stay exact as JavaScript
	// numbers, at most 2^53-1: 64 workers, 64 ids a millisecond from each,
	// until 2094.
	JS53 = known("time:41@1ms,worker:6,seq:6;epoch=2025-01-01T00:00:00Z")
)

// The table is made of the variables, and they of [parseFields], which does not
// know the table: otherwise each would have to be there before the other.
var presets = [...]struct {
	name   string
	layout Layout
}{
	{"firn", Default},
	{"twitter", Twitter},
	{"classic", Classic},
	{"instagram", Instagram},
	{"sharded", Sharded},
	{"discord", Discord},
	{"mastodon", Mastodon},
	{"leaf", Leaf},
	{"sonyflake", Sonyflake},
	{"uidgenerator", UIDGenerator},
	{"idgen", IdGen},
	{"sid", SID},
	{"sid-single", SIDSingle},
	{"shardingsphere", ShardingSphere},
	{"js53", JS53},
}

// Presets ranges over the layouts known by name, in a fixed order: firn's own
// first.
func Presets() iter.Seq2[string, Layout] {
	return func(yield func(string, Layout) bool) {
		for _, p := range presets {
			if !yield(p.name, p.layout) {
				return
			}
		}
	}
}

// Name returns the name of the preset that l is, or "".
func (l Layout) Name() string {
	for _, p := range presets {
		if p.layout == l {
			return p.name
		}
	}
	return ""
}

func known(s spec) Layout {
	l, err := parseFields(s)
	if err != nil {
		panic(err)
	}
	return l
}

func preset(name string) (Layout, bool) {
	for _, p := range presets {
		if p.name == name {
			return p.layout, true
		}
	}
	return Layout{}, false
}

// unknownPreset says so and offers the nearest name.
func unknownPreset(name string) string {
	var names []string
	for _, p := range presets {
		names = append(names, p.name)
	}
	if best := nearest.Name(strings.ToLower(name), names); best != "" {
		return "there is no such preset; is it " + best + "?"
	}
	return "this is neither a preset nor fields such as " + Default.String()
}
