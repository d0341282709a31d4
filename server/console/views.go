package console

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/server"
)

// mostSeries is how many series the page shows; the others are counted together.
const mostSeries = 200

// A picture is the server at one moment: all that the page shows. Each state says when it was
// so, and the page counts from there: the clock of whoever looks does not matter.
type picture struct {
	Began   int64        `json:"began_ms"` // another one: the process is a new one
	Up      float64      `json:"up_seconds"`
	Version string       `json:"version,omitempty"`
	Ready   bool         `json:"ready"`
	Problem []string     `json:"problems"` // why it is not, or will not be
	Refused uint64       `json:"refused"`
	Front   frontView    `json:"front"`
	Bounds  []float64    `json:"bounds"` // of the latencies, in seconds; the last has none
	All     countsView   `json:"all"`
	Series  []seriesView `json:"series"`
	More    int          `json:"more"` // series that are only in All
	Sources []sourceView `json:"sources"`
	Stores  []storeView  `json:"stores"`
	Roster  *rosterView  `json:"roster,omitempty"`
	Shards  bool         `json:"shards"` // there is a cluster of them
}

type countsView struct {
	Requests uint64   `json:"requests"`
	Values   uint64   `json:"values"`
	Errors   uint64   `json:"errors"`
	Latency  []uint64 `json:"latency"` // without the zeros at the end
}

type seriesView struct {
	Name   string `json:"name"`
	Source int    `json:"source"` // in Sources
	countsView
}

// A sourceView is what one series draws from, or many: flakes of a pool share it.
type sourceView struct {
	Name    string       `json:"name"`   // the pool's, or that of the series
	Series  int          `json:"series"` // that draw from it
	Ready   bool         `json:"ready"`
	Problem string       `json:"problem,omitempty"`
	Layout  string       `json:"layout,omitempty"`
	Workers []string     `json:"workers,omitempty"` // those of the lease, as people read them
	State   server.State `json:"state"`
}

type storeView struct {
	URL     string `json:"url"`
	Durable *bool  `json:"durable,omitempty"` // left out: it has not been heard yet
	Why     string `json:"why,omitempty"`
	Answers bool   `json:"answers"`
	Sources int    `json:"sources"`
}

// state answers with the picture of now.
func (c *console) state(*server.Session, *http.Request) (any, *refusal) {
	p := picture{
		Began: c.began.UnixMilli(), Up: time.Since(c.began).Seconds(), Version: c.version,
		Problem: []string{}, Refused: c.server.Refused(), Front: c.front(), Shards: c.sharded() != nil,
		Series: []seriesView{}, Sources: []sourceView{}, Stores: []storeView{},
	}
	for i := range len(server.Counts{}.Latency) {
		p.Bounds = append(p.Bounds, server.LatencyBound(i).Seconds())
	}
	type place struct {
		series *server.Series
		source int
	}
	var series []place
	stores := map[string]int{}
	for at, source := range c.server.Sources() {
		p.Sources = append(p.Sources, viewOf(source))
		p.addStore(source.State, stores)
		for _, s := range source.Series {
			if s.Name() != server.OtherNames || s.Counts().Requests > 0 {
				series = append(series, place{s, at})
			}
		}
	}
	slices.SortFunc(series, func(a, b place) int { return phrase.CompareNames(rank(a.series), rank(b.series)) })
	var all server.Counts
	for _, one := range series {
		p.addSeries(one.series, one.source, &all)
	}
	p.All = countsOf(all)
	err := c.server.Ready()
	p.Ready = err == nil
	p.Problem = append(p.Problem, reasons(err)...)
	p.Roster = c.roster.view(p.Sources)
	return p, nil
}

// rank is what series are sorted by: their names, and all other names at the end.
func rank(s *server.Series) string {
	if s.Name() == server.OtherNames {
		return "~"
	}
	return s.Name()
}

// reasons are the errors that were joined into one.
func reasons(err error) []string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if err == nil {
			return nil
		}
		return []string{reason(err)}
	}
	var all []string
	for _, one := range joined.Unwrap() {
		all = append(all, reason(one))
	}
	return all
}

// addSeries adds a series that draws from the source at a place.
func (p *picture) addSeries(s *server.Series, at int, all *server.Counts) {
	c := s.Counts()
	all.Requests += c.Requests
	all.Values += c.Values
	all.Errors += c.Errors
	for i := range c.Latency {
		all.Latency[i] += c.Latency[i]
	}
	p.Sources[at].Series++
	if len(p.Series) == mostSeries {
		p.More++
		return
	}
	p.Series = append(p.Series, seriesView{Name: s.Name(), Source: at, countsView: countsOf(c)})
}

func countsOf(c server.Counts) countsView {
	n := len(c.Latency)
	for n > 0 && c.Latency[n-1] == 0 {
		n--
	}
	return countsView{Requests: c.Requests, Values: c.Values, Errors: c.Errors, Latency: append([]uint64{}, c.Latency[:n]...)}
}

// viewOf is a source of which no series is counted yet.
func viewOf(source server.SourceStatus) sourceView {
	st, first := source.State, source.Series[0]
	v := sourceView{Name: cmp.Or(st.Pool(), first.Name()), State: st}
	if l := first.Layout(); l.IsValid() {
		v.Layout = l.String()
	}
	if st.Lease != nil {
		for _, n := range st.Lease.Workers {
			v.Workers = append(v.Workers, st.Lease.Layout.WorkerText(n))
		}
	}
	err := st.Ready(st.At)
	if v.Ready = err == nil; v.Ready {
		err = st.Err
	}
	v.Problem = reason(err)
	return v
}

// addStore adds the store of a source. It answers where it does so to all of them. Stores has
// the place of each by its URL.
func (p *picture) addStore(st server.State, stores map[string]int) {
	if st.Store == "" {
		return
	}
	at, ok := stores[st.Store]
	if !ok {
		at = len(p.Stores)
		stores[st.Store] = at
		p.Stores = append(p.Stores, storeView{URL: st.Store, Answers: true})
	}
	v := &p.Stores[at]
	v.Sources++
	v.Answers = v.Answers && !st.StoreAway && (st.Err == nil || st.Exhausted)
	if st.Durable != nil && (v.Why == "" || !*st.Durable) { // not every source says why
		v.Durable, v.Why = st.Durable, st.Why
	}
}
