package record

import (
	"context"

	"github.com/firn-id/firn/store"
)

// An Op is a kind of request that a machine makes.
type Op uint8

const (
	None  Op = iota // nothing: the machine has its answer
	Get             // reads the record under Key
	Put             // writes it
	Ask             // hears what the store promises
	Sleep           // waits, and asks nobody
)

// A Request is what a machine that decides about a record asks for. It is a value: a
// driver sends it by [Request.Send], and a simulator does what it likes with it.
type Request struct {
	Op    Op
	Key   string // of Get and Put
	Value []byte // of Put
	Cond  store.Condition
}

// An Answer is what came of a Request: Record of Get and Put, Durability of Ask. After an
// error of a Put, Record.Version is what the write would have, or zero where nothing was
// sent.
type Answer struct {
	Record     store.Record
	Durability store.Durability
	Err        error
}

// Send asks the store and waits for the answer. It is for Get, Put and Ask; a driver
// sleeps on its own clock.
func (q Request) Send(ctx context.Context, st store.Store) (a Answer) {
	switch q.Op {
	case Get:
		a.Record, a.Err = st.Get(ctx, q.Key)
	case Put:
		a.Record, a.Err = st.Put(ctx, q.Key, q.Value, q.Cond)
	case Ask:
		a.Durability, a.Err = st.Durability(ctx)
	}
	return a
}
