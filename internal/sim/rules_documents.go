package sim

import (
	"cmp"
	"math/rand/v2"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// The rules that documents rest on beside those of the machine, which package mutants breaks in its
// code.
var documentRules = []rule{
	{"a count is granted by a write that compares the counter of its date", []mutant{
		{name: "a Put of a document's counter ignores the version", in: documents, blind: func(_ *memory, _ *process, key string, _ []byte, _ store.Condition) bool {
			_, ok := periodOf(key)
			return ok
		}},
	}},
	{"the counter of a date is never removed or made anew", []mutant{
		{name: "a date's counter is removed when another one's is written", in: documentsDated, blind: func(s *memory, _ *process, key string, _ []byte, _ store.Condition) bool {
			if _, ok := periodOf(key); ok {
				for _, other := range s.keys {
					if _, ok := periodOf(other); ok && other != key {
						s.remove(other)
						break
					}
				}
			}
			return false
		}},
	}},
	{"a store that can forget is asked for its instance after a count was granted, and before that is used", []mutant{
		{name: "a document goes by the instance that it has asked for first", kind: lossy, in: documents, told: func(k *clerk, do dated.Action, a record.Answer) record.Answer {
			if do.Op == record.Ask && a.Err == nil {
				k.first = cmp.Or(k.first, a.Durability.Instance)
				a.Durability.Instance = k.first
			}
			return a
		}},
	}},
	{"documents belong to one store: a copy of that is refused", []mutant{
		{
			name: "a copy of the documents' store is not told from it", in: documentsTwinning,
			told: func(_ *clerk, do dated.Action, a record.Answer) record.Answer {
				if do.Op == record.Ask {
					a.Durability.Identity = "store"
				}
				return a
			},
			errand: func(e *errand, rq *request) (reply, bool) {
				p := e.by.store.promise(e.by)
				p.Identity = "store"
				return reply{promise: p}, rq.kind == promise
			},
		},
	}},
	{"a recovery raises the counters above what was granted and forgotten", []mutant{
		{name: "a recovery of documents raises too little", kind: lossy, in: documents, unraised: true},
		{name: "a recovery of documents raises too little on a store that does not forget", in: documentsRestored, unraised: true},
	}},
}

func documents(s *setup) {
	s.documenting(rand.New(rand.NewPCG(3, uint64(s.lasts)^uint64(s.every)^uint64(s.procs))))
	s.lives = false
}

// documentsDated schedules have a store's clock that is set.
func documentsDated(s *setup) {
	documents(s)
	s.faults.dates, s.calendar = true, 0
}

func documentsRestored(s *setup) {
	documents(s)
	s.faults.restore, s.faults.dates, s.faults.undefine = true, false, false
	s.calendar = 0
}

// documentsTwinning schedules have a store that is copied, and processes that use the copy.
func documentsTwinning(s *setup) {
	documents(s)
	s.faults = faults{twins: true, kills: true}
	s.named = true
}
