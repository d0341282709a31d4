package main

import (
	"github.com/bwmarrin/snowflake"
	"github.com/rs/xid"

	"github.com/firn-id/firn"
)

// texts writes ids that were made one after the other, and reads them. A text
// that is kept goes to the heap, as it does in a program; one that is only
// looked at may stay on the stack.
func texts() []contender {
	const made = 1024
	b, g := bwmarrin(wide), generator(wide)
	var ids [made]firn.ID
	var flakes [made]snowflake.ID
	var xids [made]xid.ID
	var digits [made]string
	for i := range made {
		ids[i], _ = g.Next(ctx)
		flakes[i], xids[i], digits[i] = b.Generate(), xid.New(), ids[i].String()
	}
	buf := make([]byte, 0, 64)
	row := func(name string, do func(i int)) contender {
		return contender{name: name, make: func(n int) {
			for i := range n {
				do(i % made)
			}
		}}
	}
	all := in(text, []contender{
		row("bwmarrin String", func(i int) { sink.text = flakes[i].String() }),
		row("bwmarrin MarshalJSON", func(i int) { sink.bytes, _ = flakes[i].MarshalJSON() }),
		row("xid String", func(i int) { sink.text = xids[i].String() }),
		row("firn AppendText", func(i int) { buf, _ = ids[i].AppendText(buf[:0]) }),
		row("firn String", func(i int) { sink.text = ids[i].String() }),
		row("firn MarshalText", func(i int) { sink.bytes, _ = ids[i].MarshalText() }),
		row("firn MarshalJSON", func(i int) { sink.bytes, _ = ids[i].MarshalJSON() }),
		row("xid String, looked at", func(i int) { sink.number += int64(len(xids[i].String())) }),
		row("firn String, looked at", func(i int) { sink.number += int64(len(ids[i].String())) }),
		row("firn MarshalJSON, looked at", func(i int) { b, _ := ids[i].MarshalJSON(); sink.number += int64(b[len(b)-2]) }),
		row("bwmarrin ParseString", func(i int) { id, _ := snowflake.ParseString(digits[i]); sink.number = int64(id) }),
		row("firn ParseID", func(i int) { id, _ := firn.ParseID(digits[i]); sink.number = int64(id) }),
	})
	all[0].role = peer
	return all
}
