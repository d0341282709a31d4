package inspect_test

import (
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/inspect"
)

func ExampleGuesser() {
	now := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	const id = firn.ID(175928847299117063)
	for _, g := range inspect.NewGuesser(now).Append(nil, id)[:3] {
		var r inspect.Reading
		if err := g.Decode(id, &r); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%-8s %s\n", g.Name(), r.AppendText(nil))
	}
	// Output:
	// discord  2016-04-30T11:18:25.796Z  worker=1 process=0 seq=7
	// twitter  2012-03-03T13:01:20.453Z  datacenter=1 worker=0 seq=7  same bits as leaf (bwmarrin/snowflake): worker=32
	// classic  2018-03-27T00:39:31.427Z  datacenter=1 worker=0 seq=7
}

func ExampleForeign() {
	var r inspect.Reading
	ok, err := inspect.Foreign("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", &r)
	fmt.Println(ok, err, r.Name, r.TimeText())
	// Output:
	// true <nil> uuidv7 2022-02-22T19:22:22.000Z
}
