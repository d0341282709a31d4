package firn

import (
	"iter"
	"strings"

	"github.com/firn-id/firn/internal/nearest"
)

// The layouts known by name. None of them ever changes: ids of it exist.
// The table is made by [parseFields], which does not know the table: otherwise each would
// have to be there before the other.
var presets = [...]struct {
	name   string
	layout Layout
}{
	// firn's own: 1,024 workers, 4,096 ids a millisecond from each, until 2094.
	{"firn", known("time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z")},

	// That of Twitter's Snowflake: IdWorker.scala in twitter-archive/snowflake, release
	// snowflake-2010, twepoch 1288834974657.
	{"twitter", known("time:41@1ms,datacenter:5,worker:5,seq:12;epoch=2010-11-04T01:42:54.657Z")},

	// That of the generator in one class that tutorials copy from each other, with a
	// datacenter and a machine of 5 bits each and START_STMP = 1480166465631. It is Twitter's
	// but for the epoch.
	{"classic", known("time:41@1ms,datacenter:5,worker:5,seq:12;epoch=2016-11-26T13:21:05.631Z")},

	// That of the PL/pgSQL function in Instagram Engineering's post "Sharding & IDs at
	// Instagram" (2011), our_epoch 1314220021721. Its 64 bits meet the sign in 2046.
	{"instagram", known("time:41@1ms,shard:13,seq:10;epoch=2011-08-24T21:07:01.721Z")},

	// firn's own for ids made in the shards of PostgreSQL.
	{"sharded", known("time:41@1ms,shard:13,seq:9;epoch=2025-01-01T00:00:00Z")},

	// That of Discord's API reference, section Snowflakes: milliseconds since the first
	// second of 2015, internal worker, internal process, increment. Its 64 bits meet the sign
	// in 2084.
	{"discord", known("time:42@1ms,worker:5,process:5,seq:12;epoch=2015-01-01T00:00:00Z")},

	// That of timestamp_id in Mastodon's lib/mastodon/snowflake.rb: Unix milliseconds over
	// 16 bits that are a table's sequence added to a salted hash. They tell ids apart and
	// count nothing: do not make ids with it beside Mastodon.
	{"mastodon", known("time:48@1ms,seq:16;epoch=1970-01-01T00:00:00Z")},

	// That of Meituan's Leaf in snowflake mode, as its SnowflakeIDGenImpl.java has it:
	// Twitter's epoch, 1288834974657, and one worker of 10 bits.
	{"leaf", known("time:41@1ms,worker:10,seq:12;epoch=2010-11-04T01:42:54.657Z")},

	// That of Sony's Sonyflake, version 1: sonyflake.go in sony/sonyflake. The machine is
	// below the sequence. Version 2 has the same bits and begins in 2025, unless it is told
	// otherwise: sonyflake;epoch=2025-01-01T00:00:00Z.
	{"sonyflake", known("time:39@10ms,seq:8,machine:16;epoch=2014-09-01T00:00:00Z")},

	// What Baidu's uid-generator has without configuration: DefaultUidGenerator.java,
	// epochSeconds 1463673600, which is midnight of 2016-05-20 at UTC+8. It ended on
	// 2024-11-20 at 13:24:16 UTC: its ids can be read, and no more can be made.
	{"uidgenerator", known("time:28@1s,worker:22,seq:13;epoch=2016-05-19T16:00:00Z")},

	// What RobThree's IdGen for .NET has without configuration: IdStructure.cs and
	// IdGeneratorOptions.cs. Its worker is called generator-id there.
	{"idgen", known("time:41@1ms,worker:10,seq:12;epoch=2015-01-01T00:00:00Z")},

	// IdGen's structure set to 45, 6 and 12 bits with the epoch 2019-12-01, for up to 64
	// workers told apart by a heartbeat table.
	{"sid", known("time:45@1ms,worker:6,seq:12;epoch=2019-12-01T00:00:00Z")},

	// SID for one worker, whose field keeps one bit: 50, 1 and 12.
	{"sid-single", known("time:50@1ms,worker:1,seq:12;epoch=2019-12-01T00:00:00Z")},

	// That of Apache ShardingSphere's SNOWFLAKE key generator:
	// SnowflakeKeyGenerateAlgorithm.java. Its epoch is midnight of 2016-11-01, in UTC since
	// the middle of 2026. Older versions took midnight in the time zone of their JVM, so ids
	// made in China need shardingsphere;epoch=2016-11-01T00:00:00+08:00.
	{"shardingsphere", known("time:41@1ms,worker:10,seq:12;epoch=2016-11-01T00:00:00Z")},

	// firn's own for ids that stay exact as JavaScript numbers.
	{"js53", known("time:41@1ms,worker:6,seq:6;epoch=2025-01-01T00:00:00Z")},
}

// Default returns firn's own layout, "firn": 1,024 workers, 4,096 ids a millisecond from
// each, until 2094. It never changes.
func Default() Layout { return presets[0].layout }

// Sharded returns firn's own layout for ids made in the shards of PostgreSQL, "sharded":
// 8,192 shards, 512 ids a millisecond from each, until 2094. It has a bit less of sequence
// than Instagram's layout, and no bit of time is lost to the sign. It never changes.
func Sharded() Layout { return MustLayout("sharded") }

// JS53 returns firn's own layout for ids that stay exact as JavaScript numbers, at most
// 2^53-1, "js53": 64 workers, 64 ids a millisecond from each, until 2094. It never changes.
func JS53() Layout { return MustLayout("js53") }

// Presets ranges over the layouts known by name, in a fixed order:
//
//	firn, sharded, js53        firn's own: [Default], [Sharded], [JS53]
//	twitter, classic           Twitter's Snowflake, and the generator of many tutorials
//	instagram                  Instagram's function in PostgreSQL
//	discord, mastodon          Discord's and Mastodon's ids
//	leaf, uidgenerator         Meituan's Leaf and Baidu's uid-generator
//	sonyflake, idgen           Sony's Sonyflake, version 1, and RobThree's IdGen for .NET
//	sid, sid-single            IdGen with a heartbeat table, and for one worker
//	shardingsphere             Apache ShardingSphere's key generator
//
// Those of other systems are for reading ids that exist, and for continuing where such a
// system stopped: [MustLayout]("twitter").
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
	return "this is neither a preset nor fields such as " + Default().String()
}
