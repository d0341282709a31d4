package term

import (
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// An Action is the one thing to do next. A driver goes by Op; the machine reads the
// answer by For.
type Action struct {
	For   Purpose
	Op    Op
	Key   string // of Get and Put; prefix of List
	Value []byte
	Cond  store.Condition
	Until time.Duration // of Sleep, on the boot clock; it may be ended early
}

// An Op is a kind of action.
type Op uint8

const (
	None Op = iota // the term is over
	Get
	List
	Put
	Ask // what the store promises
	Sleep
)

// A Purpose says what an action is for.
type Purpose uint8

const (
	_                 Purpose = iota
	Pause                     // until something is due, or may be tried again
	AskDurability             // what the store promises, before the pool is joined
	WatchDurability           // the same, now and then while a worker is held
	ConfirmDurability         // the same, after a worker was taken
	JoinPool                  // the pool's record, before a worker is sought
	ConfirmPool               // again, after one was taken
	ConfirmStore              // the store's record, after that
	WatchPool                 // the pool's record, while a worker is held
	WritePool                 // what this member has to say in the pool's record
	ListWorkers               // the records of all workers of a pool
	ReadWorker                // the record of one, to see whether it is free
	ReadHint                  // where to look for a worker that nobody ever had
	WriteHint                 // where the next one may be
	TakeWorker                // our worker's record: it is ours
	ExtendWorker              // its horizon is further ahead
	ReleaseWorker             // it is free
	SettleWorker              // our worker's record, since a write of it is in doubt
)

// get, list and put make the action that serves a purpose. An Action without one is for
// the end of a term.
func get(p Purpose, key string) Action     { return Action{For: p, Op: Get, Key: key} }
func list(p Purpose, prefix string) Action { return Action{For: p, Op: List, Key: prefix} }
func ask(p Purpose) Action                 { return Action{For: p, Op: Ask} }
func sleep(until time.Duration) Action     { return Action{For: Pause, Op: Sleep, Until: until} }

func put[T record.Value](p Purpose, key string, value T, c store.Condition) Action {
	return Action{For: p, Op: Put, Key: key, Value: record.Encode(value), Cond: c}
}
