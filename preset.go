package firn

import (
	"iter"
	"strings"
)

// Layouts known by name; see [Presets].
var (
	Default        = known("time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z")
	Twitter        = known("time:41@1ms,datacenter:5,worker:5,seq:12;epoch=2010-11-04T01:42:54.657Z")
	Classic        = known("time:41@1ms,datacenter:5,worker:5,seq:12;epoch=2016-11-26T13:21:05.631Z")
	Instagram      = known("time:41@1ms,shard:13,seq:10;epoch=2011-08-24T21:07:01.721Z")
	Discord        = known("time:42@1ms,worker:5,process:5,seq:12;epoch=2015-01-01T00:00:00Z")
	Mastodon       = known("time:48@1ms,seq:16;epoch=1970-01-01T00:00:00Z")
	Leaf           = known("time:41@1ms,worker:10,seq:12;epoch=2010-11-04T01:42:54.657Z")
	Sonyflake      = known("time:39@10ms,seq:8,machine:16;epoch=2014-09-01T00:00:00Z")
	UIDGenerator   = known("time:28@1s,worker:22,seq:13;epoch=2016-05-19T16:00:00Z")
	IdGen          = known("time:41@1ms,worker:10,seq:12;epoch=2015-01-01T00:00:00Z")
	SID            = known("time:45@1ms,worker:6,seq:12;epoch=2019-12-01T00:00:00Z")
	SIDSingle      = known("time:50@1ms,worker:1,seq:12;epoch=2019-12-01T00:00:00Z")
	ShardingSphere = known("time:41@1ms,worker:10,seq:12;epoch=2016-11-01T00:00:00Z")
	JS53           = known("time:41@1ms,worker:6,seq:6;epoch=2025-01-01T00:00:00Z")
)

var presets = [...]struct {
	name   string
	layout Layout
}{
	{"firn", Default},
	{"twitter", Twitter},
	{"classic", Classic},
	{"instagram", Instagram},
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
	const near = 2
	best, distance := "", near+1
	for _, p := range presets {
		if d := editDistance(strings.ToLower(name), p.name); d < distance {
			best, distance = p.name, d
		}
	}
	if best != "" {
		return "there is no preset " + quoted(name) + "; is it " + best + "?"
	}
	return "this is neither a preset nor fields such as " + Default.String()
}

// editDistance counts the letters to insert, remove or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
