package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/firn-id/firn/server"
)

// A seriesAnswer is what a series is, and how it is.
type seriesAnswer struct {
	Name     string       `json:"name"`
	Kind     string       `json:"kind,omitempty"`
	Layout   string       `json:"layout,omitempty"` // the spec
	Numeric  bool         `json:"numeric"`
	Ranges   bool         `json:"ranges"`
	Ready    bool         `json:"ready"`
	Degraded bool         `json:"degraded"`
	Problem  string       `json:"problem,omitempty"`
	State    *stateAnswer `json:"state,omitempty"` // for those who have the right admin
}

// A stateAnswer is for operators. What does not apply is left out.
type stateAnswer struct {
	Requests uint64 `json:"requests"`
	Values   uint64 `json:"values"`
	Errors   uint64 `json:"errors"`

	Store  string    `json:"store,omitempty"`
	Class  string    `json:"class,omitempty"`
	Why    string    `json:"why,omitempty"`
	Until  time.Time `json:"until,omitzero"` // it goes on so long without its store
	Left   float64   `json:"left_seconds,omitempty"`
	Budget float64   `json:"budget_seconds,omitempty"`
	Ends   string    `json:"ends,omitempty"` // a text: it may be later than what time.Time has a JSON for

	Pool        string    `json:"pool,omitempty"`
	Workers     []int64   `json:"workers,omitempty"`
	Term        uint64    `json:"term,omitempty"`
	Since       time.Time `json:"since,omitzero"`
	Renewed     time.Time `json:"renewed,omitzero"`
	ClockOffset float64   `json:"clock_offset_seconds,omitempty"`
	Borrowed    float64   `json:"borrowed_seconds,omitempty"`
	Waits       int64     `json:"waits,omitempty"`

	Next       string `json:"next,omitempty"`
	Last       string `json:"last,omitempty"`
	Reserved   int64  `json:"reserved,omitempty"`
	Prefetched int64  `json:"prefetched,omitempty"`
	Wasted     int64  `json:"wasted,omitempty"`
}

// listSeries answers with the series that the session has any right to.
func (a *api) listSeries(w http.ResponseWriter, r *http.Request) *problem {
	session, p := a.enter(r)
	if p != nil {
		return p
	}
	if session == a.anybody && a.server.Guarded() {
		return explain(server.ErrNoToken)
	}
	answer := struct {
		Series []seriesAnswer `json:"series"`
	}{[]seriesAnswer{}}
	for _, s := range a.server.All() {
		if mayKnow(session, s.Name()) == nil {
			answer.Series = append(answer.Series, describe(session, s))
		}
	}
	return sendJSON(w, answer)
}

// showSeries answers with one series. It makes none that is not there yet.
func (a *api) showSeries(w http.ResponseWriter, r *http.Request) *problem {
	session, p := a.enter(r)
	if p != nil {
		return p
	}
	name := r.PathValue("name")
	if err := mayKnow(session, name); err != nil {
		return explain(err)
	}
	for _, s := range a.server.All() {
		if s.Name() == name {
			return sendJSON(w, describe(session, s))
		}
	}
	if err := server.CheckName(name); err != nil {
		return explain(err)
	}
	return explain(&server.NoSeriesError{Name: name})
}

// mayKnow returns nil where the session has any right to a series.
func mayKnow(session *server.Session, name string) (err error) {
	for _, r := range []server.Right{server.Issue, server.Decode, server.Admin} {
		if err = session.Can(name, r); err == nil {
			return nil
		}
	}
	return err
}

func describe(session *server.Session, s *server.Series) seriesAnswer {
	now := time.Now()
	st := s.State()
	answer := seriesAnswer{
		Name: s.Name(), Kind: st.Kind, Numeric: s.Numeric(), Ranges: s.Step() > 0,
		Degraded: st.Degraded,
	}
	if l := s.Layout(); l.IsValid() {
		answer.Layout = l.String()
	}
	answer.Ready, answer.Problem = st.Ready(now) == nil, st.Trouble(now)
	if session.Can(s.Name(), server.Admin) == nil {
		answer.State = stateOf(s, st, now)
		if st.Err != nil {
			answer.Problem += ": " + st.Err.Error()
		}
	}
	return answer
}

func stateOf(s *server.Series, st server.State, now time.Time) *stateAnswer {
	c := s.Counts()
	return &stateAnswer{
		Requests: c.Requests, Values: c.Values, Errors: c.Errors,
		Store: st.Store, Class: st.Class, Why: st.Why,
		Until: st.Until.UTC(), Left: left(st, now), Budget: st.Budget.Seconds(), Ends: instant(st.Ended),
		Pool: st.Pool, Workers: st.Worker, Term: st.Term, Since: st.Since.UTC(), Renewed: st.Renewed.UTC(),
		ClockOffset: st.ClockOffset.Seconds(), Borrowed: st.Borrowed.Seconds(), Waits: st.Waits,
		Next: numberText(st.Next), Last: numberText(st.Last),
		Reserved: st.Left, Prefetched: st.Ahead, Wasted: st.Waste,
	}
}

// left is how many seconds a series goes on without its store.
func left(st server.State, now time.Time) float64 {
	if st.Until.IsZero() {
		return 0
	}
	return max(st.Until.Sub(now), 0).Seconds()
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// numberText is a number that may be too large for JavaScript; "" where there is none.
func numberText(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
