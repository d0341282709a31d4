package firn_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/firn-id/firn"
)

// A worker that is read as the values of its fields, and put together again, is the same one.
func TestWorkerFields(t *testing.T) {
	odd := firn.MustLayout("region:3,time:41@1ms,machine:7,seq:8,lane:2;epoch=2025-01-01T00:00:00Z")
	for _, tt := range []struct {
		layout firn.Layout
		n      int64
		fields map[string]int64
		text   string
	}{
		{firn.MustLayout("twitter"), 103, map[string]int64{"datacenter": 3, "worker": 7}, "3/7"},
		{firn.MustLayout("classic"), 1023, map[string]int64{"datacenter": 31, "worker": 31}, "31/31"},
		{firn.MustLayout("discord"), 37, map[string]int64{"worker": 1, "process": 5}, "1/5"},
		{firn.MustLayout("sonyflake"), 37, map[string]int64{"machine": 37}, "37"},
		{firn.MustLayout("instagram"), 0, map[string]int64{}, "0"},
		{firn.Default(), 103, map[string]int64{"worker": 103}, "103"},
		{odd, 5<<9 | 9<<2 | 3, map[string]int64{"region": 5, "machine": 9, "lane": 3}, "5/9/3"},
	} {
		if got := maps.Collect(tt.layout.WorkerFields(tt.n)); !maps.Equal(got, tt.fields) {
			t.Errorf("%s: worker %d is %v, want %v", tt.layout, tt.n, got, tt.fields)
		}
		if got := tt.layout.WorkerText(tt.n); got != tt.text {
			t.Errorf("%s: worker %d is written %s, want %s", tt.layout, tt.n, got, tt.text)
		}
		var values []int64
		for _, v := range tt.layout.WorkerFields(tt.n) {
			values = append(values, v)
		}
		if len(values) == 0 {
			values = []int64{tt.n}
		}
		if got, err := tt.layout.JoinWorker(values...); err != nil || got != tt.n {
			t.Errorf("%s: %v is worker %d, %v, want %d", tt.layout, values, got, err, tt.n)
		}
	}
	if got := firn.MustLayout("twitter").NameWorker(103) + " " + firn.Default().NameWorker(103); got != "103 (3/7) 103" {
		t.Errorf("named %s", got)
	}
	// What a layout has no room for is written as the number that it is.
	if got := firn.MustLayout("twitter").WorkerText(1024); got != "1024" {
		t.Errorf("worker 1024 is written %s", got)
	}
}

// Each way to say a worker that the layout does not have is refused with its own reason.
func TestJoinWorkerRefuses(t *testing.T) {
	for _, tt := range []struct {
		layout string
		values []int64
		want   string
	}{
		{"twitter", []int64{32, 7}, "firn: worker 32/7: the datacenter of layout twitter is 0 to 31, not 32"},
		{"twitter", []int64{3, 32}, "firn: worker 3/32: the worker of layout twitter is 0 to 31, not 32"},
		{"twitter", []int64{-1, 7}, "firn: worker -1/7: the datacenter of layout twitter is 0 to 31, not -1"},
		{"twitter", []int64{1, 2, 3}, "firn: worker 1/2/3: a worker of layout twitter is datacenter/worker"},
		{"twitter", []int64{1024}, "firn: worker 1024: layout twitter has 0 to 1023"},
		{"firn", []int64{3, 7}, "firn: worker 3/7: a worker of layout firn is one number, 0 to 1023"},
		{"instagram", []int64{0, 7}, "firn: worker 0/7: a worker of layout instagram is one number, 0 to 0"},
	} {
		if n, err := firn.MustLayout(tt.layout).JoinWorker(tt.values...); fmt.Sprint(err) != tt.want {
			t.Errorf("%s, %v: %d, %v, want %s", tt.layout, tt.values, n, err, tt.want)
		}
	}
	if _, err := (firn.Layout{}).JoinWorker(0); err == nil {
		t.Error("the zero Layout has a worker")
	}
}
