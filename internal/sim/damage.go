package sim

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/firn-id/firn/internal/block"
)

// This file damages records, and puts them back.

// ours reports whether a record is that of the world's counter, and not of another series.
func ours(r block.Record) bool { return strings.HasPrefix(r.ID, "world") }

// damage makes a record unreadable for a while: torn, emptied, or of a newer firn. Nobody may take
// it for a missing one, and write over it.
func (w *world) damage() {
	s := w.store
	if len(s.keys) == 0 || w.cutOff {
		return
	}
	key := s.keys[w.rng.IntN(len(s.keys))]
	was := s.records[key]
	if was.whole != nil {
		return
	}
	w.total.Faults[damaged]++
	newer := bytes.Replace(was.value, []byte(`"v":1`), []byte(`"v":99`), 1)
	value := pick(w.rng, nil, []byte("{}"), was.value[:len(was.value)/2], newer)
	w.logf("%s is damaged: %s", key, value)
	broken := s.replace(key, was, value)
	broken.whole = was
	w.after(w.span(), func() { s.mend(key, broken) })
}

// mend puts a damaged record back as it was, in a write of its own: who knows the record may take
// that for a store that went back, and stop.
func (s *memory) mend(key string, broken *stored) {
	if s.records[key] == broken {
		s.w.logf("%s is put back", key)
		s.w.forgot = true
		s.replace(key, broken.whole, broken.whole.value)
	}
}

// mendAll puts back what is damaged.
func (s *memory) mendAll() {
	for _, key := range s.keys {
		if r := s.records[key]; r.whole != nil {
			s.mend(key, r)
		}
	}
}

// replace writes a record by hand. What the world knows of it is what it knows of r.
func (s *memory) replace(key string, r *stored, value []byte) *stored {
	now := *r
	now.value, now.version, now.written, now.at, now.whole = value, s.w.newVersion(), s.clock(), s.w.now, nil
	s.log = append(s.log, change{key, s.records[key], &now})
	s.set(key, &now)
	return &now
}

// intact is a record as it was before it was damaged.
func (r *stored) intact() *stored {
	if r != nil && r.whole != nil {
		return r.whole
	}
	return r
}

// uncount removes the counter's record, or puts another series' in its place. Some time after,
// an operator puts it back.
func (w *world) uncount() {
	s := w.store
	was := s.records[counters[0]]
	if was == nil || was.whole != nil || !ours(was.counter) || w.chance(0.5) {
		return
	}
	w.total.Faults[uncounted]++
	w.forgot = true
	if w.chance(0.5) {
		w.logf("the counter's record is removed")
		s.remove(counters[0])
	} else {
		w.logf("the counter's record is another series'")
		n := int64(w.total.Faults[uncounted]) // its numbers are its own
		other := block.Record{ID: fmt.Sprint("other", n), First: n * foreignSeries, Max: math.MaxInt64, Step: was.counter.Step, Store: s.identity}
		s.write(counters[0], other.New().Encode(), w.newVersion())
	}
	w.after(w.span(), func() { w.recount(was.counter) })
}

// recount is an operator who puts the counter's record back, above all that was granted.
func (w *world) recount(r block.Record) {
	s := w.store
	now := s.records[counters[0]]
	switch {
	case now == nil:
		w.write(s, counters[0], r.Raised(w.check.highest[0]).Encode(), "")
	case !ours(now.counter):
		w.write(s, counters[0], r.Raised(w.check.highest[0]).Encode(), now.version)
	}
}
