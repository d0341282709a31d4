package server

import "time"

// A Source is what one series or more draw from, as all flakes of a pool draw from its lease.
// Series share a source where they have the same *Source.
type Source struct {
	// State says how the source is. It is called often, and does not wait. The server sets
	// State.At.
	State func() State
}

// now is the state of the source; the zero State where nobody knows.
func (s *Source) now() (st State) {
	if s != nil && s.State != nil {
		st = s.State()
	}
	st.At = time.Now()
	return st
}

// A SourceStatus is a source as it is now, with the series that draw from it.
type SourceStatus struct {
	State  State
	Series []*Series // by name, and [Server.Rest] at the end
}

// Sources returns what the series of All and Rest draw from, each source once.
func (s *Server) Sources() []SourceStatus {
	w := s.now.Load()
	series := w.all()
	if w.others.rest != nil {
		series = append(series, w.others.rest)
	}
	var all []SourceStatus
	places := map[*Source]int{}
	for _, one := range series {
		source := one.options.Source
		at, ok := places[source]
		if !ok || source == nil { // of a series without one nobody knows what it shares
			at = len(all)
			places[source] = at
			all = append(all, SourceStatus{State: source.now()})
		}
		all[at].Series = append(all[at].Series, one)
	}
	return all
}
