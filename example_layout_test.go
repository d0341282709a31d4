package firn_test

import (
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/firn-id/firn"
)

// Somebody else's id: when was it made, and where?
func ExampleLayout_Decode() {
	id := firn.ID(175928847299117063)
	parts, err := firn.MustLayout("discord").Decode(id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(parts.Time.Format(time.RFC3339Nano))
	for f := range firn.MustLayout("discord").Fields() {
		fmt.Println(f.Name, f.Of(id))
	}
	// Output:
	// 2016-04-30T11:18:25.796Z
	// time 41944705796
	// worker 1
	// process 0
	// seq 7
}

func ExampleLayout_Encode() {
	id, err := firn.MustLayout("instagram").Encode(firn.Parts{
		Time:  time.Date(2026, time.November, 21, 3, 0, 0, 0, time.UTC),
		Shard: 1341,
		Seq:   5,
	})
	fmt.Println(id, err)
	_, err = firn.MustLayout("instagram").Encode(firn.Parts{Tick: 1, Shard: 8192})
	fmt.Println(err)
	// Output:
	// 4035004151872418821 <nil>
	// firn: shard 8192: layout instagram has 0 to 8191
}

// A range scan over ids instead of an index over times:
// WHERE id BETWEEN $1 AND $2.
func ExampleLayout_Bounds() {
	day := time.Date(2026, time.November, 20, 0, 0, 0, 0, time.UTC)
	first, last, err := firn.Default().Bounds(day, day.AddDate(0, 0, 1))
	fmt.Println(first, last, err)
	// Output:
	// 249322851532800000 249685239398399999 <nil>
}

// Whether a layout can still make ids: this one of 28 bits of seconds cannot.
func ExampleLayout_Check() {
	err := firn.MustLayout("uidgenerator").Check(time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC))
	fmt.Println(err)
	// Output:
	// firn: layout uidgenerator ended on 2024-11-20: no id can carry a time from 2024-11-20T13:24:16Z on
}

func ExampleParseLayout() {
	for _, text := range []string{
		"sonyflake",
		"twitter;epoch=2020-01-01T00:00:00Z",
		"time:41,shard:13,seq:9;epoch=2026-01-01T00:00:00+07:00",
		"time:41@1ms,worker:12,seq:12;epoch=2026-01-01T00:00:00Z",
	} {
		l, err := firn.ParseLayout(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(l)
	}
	// Output:
	// time:39@10ms,seq:8,machine:16;epoch=2014-09-01T00:00:00Z
	// time:41@1ms,datacenter:5,worker:5,seq:12;epoch=2020-01-01T00:00:00Z
	// time:41@1ms,shard:13,seq:9;epoch=2025-12-31T17:00:00Z
	// firn: layout "time:41@1ms,worker:12,seq:12;epoch=2026-01-01T00:00:00Z", column 23: 65 bits are 1 too many: there are 64
}

func ExamplePresets() {
	for name, l := range firn.Presets() {
		if l.Ordered() && l.Workers() >= 1024 && l.Rate() >= 1e6 && l.End().Year() > 2085 {
			fmt.Println(name, l.End().Year())
		}
	}
	// Output:
	// firn 2094
	// classic 2086
	// shardingsphere 2086
}

// An ID is a string in JSON, because JavaScript rounds numbers above 2^53. It
// reads both.
func ExampleID_MarshalJSON() {
	type Photo struct {
		ID firn.ID `json:"id"`
	}
	b, _ := json.Marshal(Photo{ID: 844272577781444608})
	fmt.Println(string(b))
	var p Photo
	fmt.Println(json.Unmarshal([]byte(`{"id":844272577781444608}`), &p), p.ID)
	// Output:
	// {"id":"844272577781444608"}
	// <nil> 844272577781444608
}

func ExampleParseID() {
	for _, text := range []string{"844272577781444608", "844,272", "0"} {
		id, err := firn.ParseID(text)
		fmt.Println(id, err)
	}
	// Output:
	// 844272577781444608 <nil>
	// 0 firn: id "844,272", column 4: "," is not a digit
	// 0 firn: id "0", column 1: zero is never issued
}

func ExampleRange_All() {
	for id := range (firn.Range{First: 100, Count: 3, Step: 2}).All() {
		fmt.Println(id)
	}
	// Output:
	// 100
	// 102
	// 104
}
