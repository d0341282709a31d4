package console

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/firn-id/firn/server"
)

// mostSeries is how many series the page shows; the others are counted together.
const mostSeries = 200

// A picture is the server at one moment: all that the page shows. Times to come are
// seconds from now, so that the clock of whoever looks does not matter.
type picture struct {
	Began   int64        `json:"began_ms"` // another one: the process is a new one
	Up      float64      `json:"up_seconds"`
	Version string       `json:"version,omitempty"`
	Ready   bool         `json:"ready"`
	Problem []string     `json:"problems"` // why it is not, or will not be
	Refused uint64       `json:"refused"`
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
	Name     string `json:"name"` // the pool's, or that of the series
	Kind     string `json:"kind"`
	Series   int    `json:"series"` // that draw from it
	Store    string `json:"store,omitempty"`
	Ready    bool   `json:"ready"`
	Degraded bool   `json:"degraded"`
	Over     bool   `json:"over"` // it has given all there was
	Problem  string `json:"problem,omitempty"`

	Left   *float64 `json:"left_seconds"`   // it goes on so long without its store; null: not known
	Budget float64  `json:"budget_seconds"` // and so long at most
	Ends   string   `json:"ends,omitempty"` // when layout or numbers are used up

	Layout      string  `json:"layout,omitempty"`
	Pool        string  `json:"pool,omitempty"`
	Workers     []int64 `json:"workers,omitempty"`
	Term        uint64  `json:"term,omitempty"`
	Held        float64 `json:"held_seconds,omitempty"`
	Renewed     float64 `json:"renewed_seconds,omitempty"` // ago
	ClockOffset float64 `json:"clock_offset_seconds"`
	Borrowed    float64 `json:"borrowed_seconds"`
	Waits       int64   `json:"waits"`

	Next     string `json:"next,omitempty"`
	Last     string `json:"last,omitempty"`
	Reserved int64  `json:"reserved"`
	Ahead    int64  `json:"ahead"`
	Waste    int64  `json:"waste"`
}

type storeView struct {
	URL     string `json:"url"`
	Class   string `json:"class,omitempty"`
	Why     string `json:"why,omitempty"`
	Answers bool   `json:"answers"`
	Sources int    `json:"sources"`
}

// state answers with the picture of now.
func (c *console) state(*server.Session, *http.Request) (any, *refusal) {
	now := time.Now()
	d := drawing{now: now, sources: map[string]int{}, stores: map[string]int{}, picture: picture{
		Began: c.began.UnixMilli(), Up: time.Since(c.began).Seconds(), Version: c.version,
		Problem: []string{}, Refused: c.server.Refused(),
		Series: []seriesView{}, Sources: []sourceView{}, Stores: []storeView{},
	}}
	for i := range len(server.Counts{}.Latency) {
		d.picture.Bounds = append(d.picture.Bounds, server.LatencyBound(i).Seconds())
	}
	var all server.Counts
	for _, s := range c.server.All() {
		d.series(s, &all)
	}
	if rest := c.server.Rest(); rest != nil {
		if rest.Counts().Requests > 0 {
			d.series(rest, &all)
		} else {
			d.source(rest)
		}
	}
	d.picture.All = countsOf(all)
	err := c.server.Ready()
	d.picture.Ready = err == nil
	d.picture.Problem = append(d.picture.Problem, reasons(err)...)
	d.picture.Roster = c.roster.view(d.picture.Sources)
	d.picture.Shards = c.sharded() != nil
	return d.picture, nil
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

// A drawing is of one picture.
type drawing struct {
	picture picture
	now     time.Time
	sources map[string]int // by what makes them one
	stores  map[string]int // by URL
}

// series adds a series to the picture.
func (d *drawing) series(s *server.Series, all *server.Counts) {
	c := s.Counts()
	all.Requests += c.Requests
	all.Values += c.Values
	all.Errors += c.Errors
	for i := range c.Latency {
		all.Latency[i] += c.Latency[i]
	}
	at := d.source(s)
	d.picture.Sources[at].Series++
	if len(d.picture.Series) == mostSeries {
		d.picture.More++
		return
	}
	d.picture.Series = append(d.picture.Series, seriesView{Name: s.Name(), Source: at, countsView: countsOf(c)})
}

func countsOf(c server.Counts) countsView {
	n := len(c.Latency)
	for n > 0 && c.Latency[n-1] == 0 {
		n--
	}
	return countsView{Requests: c.Requests, Values: c.Values, Errors: c.Errors, Latency: append([]uint64{}, c.Latency[:n]...)}
}

// source returns which source a series draws from. Leases are the same one where
// pool, store, workers and term are.
func (d *drawing) source(s *server.Series) int {
	st := s.State()
	key := "series " + s.Name()
	if st.Pool != "" {
		key = fmt.Sprintf("pool %q %q %v %d", st.Pool, st.Store, st.Worker, st.Term)
	}
	at, ok := d.sources[key]
	if !ok {
		at = len(d.picture.Sources)
		d.sources[key] = at
		d.picture.Sources = append(d.picture.Sources, d.sourceOf(s, st))
		d.store(st)
	}
	return at
}

func (d *drawing) sourceOf(s *server.Series, st server.State) sourceView {
	v := sourceView{
		Name: s.Name(), Kind: st.Kind, Store: st.Store, Degraded: st.Degraded, Over: st.Over,
		Budget: st.Budget.Seconds(), Pool: st.Pool, Workers: st.Worker, Term: st.Term,
		Held: d.since(st.Since), Renewed: d.since(st.Renewed),
		ClockOffset: st.ClockOffset.Seconds(), Borrowed: st.Borrowed.Seconds(), Waits: st.Waits,
		Next: number(st.Next), Last: number(st.Last), Reserved: st.Left, Ahead: st.Ahead, Waste: st.Waste,
	}
	if st.Pool != "" {
		v.Name = st.Pool
	}
	if l := s.Layout(); l.IsValid() {
		v.Layout = l.String()
	}
	if !st.Until.IsZero() {
		left := max(st.Until.Sub(d.now), 0).Seconds()
		v.Left = &left
	}
	if !st.Ended.IsZero() {
		v.Ends = st.Ended.UTC().Format(time.RFC3339)
	}
	err := st.Ready(d.now)
	if v.Ready = err == nil; v.Ready {
		err = st.Err
	}
	v.Problem = reason(err)
	return v
}

// store adds the store of a source. It answers where it does so to all of them.
func (d *drawing) store(st server.State) {
	if st.Store == "" {
		return
	}
	at, ok := d.stores[st.Store]
	if !ok {
		at = len(d.picture.Stores)
		d.stores[st.Store] = at
		d.picture.Stores = append(d.picture.Stores, storeView{URL: st.Store, Answers: true})
	}
	v := &d.picture.Stores[at]
	v.Sources++
	v.Answers = v.Answers && !st.Degraded && (st.Err == nil || st.Over)
	if st.Class != "" && (v.Why == "" || st.Class == "lossy") { // not every source says why
		v.Class, v.Why = st.Class, st.Why
	}
}

// since is how many seconds ago it was; 0 where nobody knows.
func (d *drawing) since(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(d.now.Sub(t), 0).Seconds()
}

// number is a text, because it may be too large for JavaScript; "" where there is none.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
