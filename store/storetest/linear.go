package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/firn-id/firn/store"
)

const (
	rounds = 4  // of a Get and a Put, for each contender
	fields = 16 // records they contend for; half of all calls go to the first

	// undecided is when a history is given up. One that is right takes
	// milliseconds.
	undecided = 10 * time.Second
)

// An outcome is what a caller knows of its call.
type outcome uint8

const (
	done     outcome = iota
	conflict         // of a Put
	unknown          // of a Put: carried out later, once, or never
)

// A call is one of a history.
type call struct {
	key        string
	put        bool
	cond       store.Version // of a Put
	version    store.Version // that was read, written or tried
	value      string
	outcome    outcome
	start, end time.Duration // since the history began
}

func (k call) String() string {
	at := fmt.Sprintf("%v to %v", k.start, k.end)
	switch {
	case !k.put:
		return fmt.Sprintf("%s: Get is %.8q", at, k.version)
	case k.outcome == conflict:
		return fmt.Sprintf("%s: Put on %.8q conflicts", at, k.cond)
	case k.outcome == unknown:
		return fmt.Sprintf("%s: Put on %.8q tries %.8q, outcome unknown", at, k.cond, k.version)
	}
	return fmt.Sprintf("%s: Put on %.8q is %.8q", at, k.cond, k.version)
}

// linearizable lets everybody read and write a few records, on new and on old
// Versions, some with little time and some on a shaky handle. All calls on a
// record must be those of one record: each as if made at one instant between
// its start and its end, or, where the outcome is unknown, after its start.
func linearizable(c *check) {
	handles := c.handles()
	usual := c.usual(handles[0])
	var bad store.Store
	if c.backend.Shaky != nil {
		bad = c.backend.Shaky(c.TB)
	}
	h := &history{check: c, began: time.Now()}
	var wg sync.WaitGroup
	for i := range contenders {
		s, hurry := handles[i%shared], i%4 == 1
		if i%4 == 0 && bad != nil {
			s = bad
		}
		wg.Go(func() {
			for round := range rounds {
				timeout := time.Minute
				if hurry {
					timeout = rand.N(2*usual + 1)
				}
				h.round(s, s == bad, fmt.Sprintf(`{"by":%d,"round":%d}`, i, round), timeout)
			}
		})
	}
	wg.Wait()
	for i := range fields {
		h.get(handles[0], field(i), false)
	}
	h.judge()
}

func field(i int) string { return fmt.Sprintf("field/%d", i) }

// usual is how long a Put takes when nobody is in its way.
func (c *check) usual(s store.Store) time.Duration {
	start := time.Now()
	var r store.Record
	for i := range 5 {
		r = c.put(s, "usual", fmt.Sprint(i), store.Condition{Version: r.Version})
	}
	return time.Since(start) / 5
}

// A history is what all callers know.
type history struct {
	*check
	began time.Time

	mu    sync.Mutex // guards calls
	calls []call
}

func (h *history) now() time.Duration { return time.Since(h.began) }

// add completes a call with its end.
func (h *history) add(k call) {
	k.end = h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, k)
}

// get reads. What fails says nothing.
func (h *history) get(s store.Store, key string, mayFail bool) (v store.Version, ok bool) {
	k := call{key: key, start: h.now()}
	r, err := s.Get(h.Context(), key)
	if err != nil {
		if !mayFail {
			h.Errorf("Get: %v", err)
		}
		return "", false
	}
	k.version, k.value = r.Version, string(r.Value)
	h.add(k)
	return r.Version, true
}

// round reads some record and writes it: mostly on what was read, now and then
// on an older Version.
func (h *history) round(s store.Store, mayFail bool, value string, timeout time.Duration) {
	key := field(0)
	if rand.N(2) == 0 {
		key = field(rand.N(fields))
	}
	v, ok := h.get(s, key, mayFail)
	if !ok || rand.N(8) == 0 {
		v = h.older(key)
	}
	ctx, cancel := context.WithTimeout(h.Context(), timeout)
	defer cancel()
	k := call{key: key, put: true, cond: v, value: value, start: h.now()}
	r, err := s.Put(ctx, key, []byte(value), store.Condition{Version: v})
	k.version = r.Version
	switch {
	case err == nil:
		k.outcome = done
	case errors.Is(err, store.ErrConflict):
		k.outcome, k.version = conflict, ""
	case r.Version == "": // nothing was sent
		return
	default:
		k.outcome = unknown
		// A server that knows the deadline may give up just before it.
		if !mayFail && timeout == time.Minute {
			h.Errorf("Put: %v", err)
		}
	}
	h.add(k)
}

// older returns a Version that key has had.
func (h *history) older(key string) store.Version {
	h.mu.Lock()
	defer h.mu.Unlock()
	var had []store.Version
	for _, k := range h.calls {
		if k.key == key && k.outcome == done {
			had = append(had, k.version)
		}
	}
	if len(had) == 0 {
		return ""
	}
	return had[rand.N(len(had))]
}

// judge requires the calls to be those of records.
func (h *history) judge() {
	puts := make(map[store.Version]call) // by what was written or tried
	var count [3]int
	for _, k := range h.calls {
		if !k.put {
			continue
		}
		count[k.outcome]++
		if k.outcome == conflict {
			continue
		}
		if other, ok := puts[k.version]; ok {
			h.Errorf("two writes have one Version: %v; %v", k, other)
		}
		puts[k.version] = k
	}
	seen := make(map[store.Version]bool)
	for _, k := range h.calls {
		if k.put || k.version == "" {
			continue
		}
		seen[k.version] = true
		if w, ok := puts[k.version]; !ok || w.key != k.key || w.value != k.value {
			h.Errorf("nobody wrote %q %q, or it conflicted: %v", k.key, k.value, k)
		}
	}
	for i := range fields {
		if !h.Failed() { // the search for what is not there may take long
			h.judgeOne(field(i), seen)
		}
	}
	h.Logf("%d Puts were acknowledged, %d conflicted, %d had an unknown outcome", count[done], count[conflict], count[unknown])
}

// judgeOne requires the calls on one record to have an order. seen are the
// Versions that were read.
func (h *history) judgeOne(key string, seen map[store.Version]bool) {
	var calls []call
	for _, k := range h.calls {
		if k.outcome == unknown {
			// What nobody has read, not even when all was over, had not been
			// carried out by then: nobody could have written over it. What was
			// read was carried out, at any time after its start.
			if !seen[k.version] {
				continue
			}
			k.end = math.MaxInt64 / 8
		}
		if k.key == key {
			calls = append(calls, k)
		}
	}
	slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.start, b.start) })
	verdict := porcupine.Illegal
	if ops, ok := earliest(calls); ok {
		verdict = porcupine.CheckOperationsTimeout(record, ops, undecided)
	}
	switch verdict {
	case porcupine.Unknown:
		h.Errorf("no order that explains %d calls on one record was found within %v", len(calls), undecided)
	case porcupine.Illegal:
		var text strings.Builder
		for _, k := range calls {
			fmt.Fprintf(&text, "\n\t%v", k)
		}
		h.Errorf("no order explains these calls on one record:%s", text.String())
	}
}

// earliest returns the calls as operations, each with the earliest instant at
// which it can have been carried out for its start. That follows from what is
// known: a Put is the only one on its Version, it follows all that saw that, and
// is followed by the conflicts on it and by all that saw its own. Without this the
// search for an order tries all there are. It is not ok if a call had ended by
// then.
func earliest(calls []call) (ops []porcupine.Operation, ok bool) {
	type place struct{ saw, conflicts, puts []int } // calls, by the Version they are about
	places := make(map[store.Version]*place)
	at := func(v store.Version) *place {
		if places[v] == nil {
			places[v] = new(place)
		}
		return places[v]
	}
	for i, k := range calls {
		ops = append(ops, porcupine.Operation{Input: k, Call: int64(k.start), Return: int64(k.end)})
		switch {
		case !k.put:
			at(k.version).saw = append(at(k.version).saw, i)
		case k.outcome == conflict:
			at(k.cond).conflicts = append(at(k.cond).conflicts, i)
		default:
			at(k.cond).puts = append(at(k.cond).puts, i)
		}
	}
	var now int64
	after := func(indices []int) {
		for _, i := range indices {
			ops[i].Call = max(ops[i].Call, now)
		}
	}
	for v, steps := store.Version(""), 0; steps <= len(calls); steps++ {
		p := at(v)
		after(p.saw)
		if len(p.puts) > 1 {
			return nil, false
		}
		if len(p.puts) == 0 {
			break
		}
		for _, i := range p.saw {
			now = max(now, ops[i].Call)
		}
		after(p.puts)
		now = ops[p.puts[0]].Call
		after(p.conflicts)
		v = calls[p.puts[0]].version
	}
	for i, k := range calls {
		op := &ops[i]
		if op.Call > op.Return {
			return nil, false
		}
		// Of those that start at once, what saw a Version is tried before what
		// ends it, and the conflicts come last.
		op.Call, op.Return = 4*op.Call, 4*op.Return+3
		if k.put {
			op.Call++
		}
		if k.outcome == conflict {
			op.Call++
		}
	}
	return ops, true
}

// record is one record as the contract has it. Its state is the Version.
var record = porcupine.Model{
	Init: func() any { return store.Version("") },
	Step: func(state, input, _ any) (bool, any) {
		at, k := state.(store.Version), input.(call)
		switch {
		case !k.put:
			return k.version == at, at
		case k.outcome == conflict:
			return k.cond != at, at
		}
		return k.cond == at, k.version
	},
}
