package firn

import (
	"testing"
	"time"
)

// What the presets are is a promise about ids that exist.
func TestPresets(t *testing.T) {
	want := []struct {
		name    string
		layout  Layout
		text    string
		epochMs int64 // as its owner writes it
	}{
		{"firn", Default(), "time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z", 1735689600000},
		{"twitter", MustLayout("twitter"), "time:41@1ms,datacenter:5,worker:5,seq:12;epoch=2010-11-04T01:42:54.657Z", 1288834974657},
		{"classic", MustLayout("classic"), "time:41@1ms,datacenter:5,worker:5,seq:12;epoch=2016-11-26T13:21:05.631Z", 1480166465631},
		{"instagram", MustLayout("instagram"), "time:41@1ms,shard:13,seq:10;epoch=2011-08-24T21:07:01.721Z", 1314220021721},
		{"sharded", Sharded(), "time:41@1ms,shard:13,seq:9;epoch=2025-01-01T00:00:00Z", 1735689600000},
		{"discord", MustLayout("discord"), "time:42@1ms,worker:5,process:5,seq:12;epoch=2015-01-01T00:00:00Z", 1420070400000},
		{"mastodon", MustLayout("mastodon"), "time:48@1ms,seq:16;epoch=1970-01-01T00:00:00Z", 0},
		{"leaf", MustLayout("leaf"), "time:41@1ms,worker:10,seq:12;epoch=2010-11-04T01:42:54.657Z", 1288834974657},
		{"sonyflake", MustLayout("sonyflake"), "time:39@10ms,seq:8,machine:16;epoch=2014-09-01T00:00:00Z", 1409529600000},
		{"uidgenerator", MustLayout("uidgenerator"), "time:28@1s,worker:22,seq:13;epoch=2016-05-19T16:00:00Z", 1463673600000},
		{"idgen", MustLayout("idgen"), "time:41@1ms,worker:10,seq:12;epoch=2015-01-01T00:00:00Z", 1420070400000},
		{"sid", MustLayout("sid"), "time:45@1ms,worker:6,seq:12;epoch=2019-12-01T00:00:00Z", 1575158400000},
		{"sid-single", MustLayout("sid-single"), "time:50@1ms,worker:1,seq:12;epoch=2019-12-01T00:00:00Z", 1575158400000},
		{"shardingsphere", MustLayout("shardingsphere"), "time:41@1ms,worker:10,seq:12;epoch=2016-11-01T00:00:00Z", 1477958400000},
		{"js53", JS53(), "time:41@1ms,worker:6,seq:6;epoch=2025-01-01T00:00:00Z", 1735689600000},
	}
	i := 0
	for name, l := range Presets() {
		if i == len(want) {
			t.Fatalf("preset %s has no line here", name)
		}
		w := want[i]
		i++
		if name != w.name || l != w.layout || l.String() != w.text || l.Name() != w.name || l.Epoch().UnixMilli() != w.epochMs {
			t.Errorf("%s: %s, named %q, epoch %d", name, l, l.Name(), l.Epoch().UnixMilli())
		}
		if parsed, err := ParseLayout(name); err != nil || parsed != l {
			t.Errorf("%s: %s, %v", name, parsed, err)
		}
		if again, err := ParseLayout(l.String()); err != nil || again.Name() != name {
			t.Errorf("%s: %s, %v", name, again, err)
		}
	}
	if i != len(want) {
		t.Errorf("%d presets, want %d", i, len(want))
	}
	for range Presets() {
		break
	}
	varied := MustLayout("twitter;epoch=2020-01-01T00:00:00Z")
	if varied.Name() != "" || !varied.Epoch().Equal(time.Unix(1577836800, 0)) || varied.Last() != MustLayout("twitter").Last() {
		t.Errorf("%s, named %q", varied, varied.Name())
	}
}
