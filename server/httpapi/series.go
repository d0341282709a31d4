package httpapi

import (
	"net/http"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/server"
)

// A seriesAnswer is what a series is, and how it is.
type seriesAnswer struct {
	Name      string        `json:"name"`
	Kind      string        `json:"kind,omitempty"`
	Layout    string        `json:"layout,omitempty"` // the spec
	Form      string        `json:"form,omitempty"`   // the public form of its answers
	Numeric   bool          `json:"numeric"`
	Ranges    bool          `json:"ranges"`
	Ready     bool          `json:"ready"`
	StoreAway bool          `json:"store_away"`
	Problem   string        `json:"problem,omitempty"`
	Counts    *countsAnswer `json:"counts,omitempty"` // for those who have the right admin, and so is State
	State     *server.State `json:"state,omitempty"`
}

// A countsAnswer is what was asked of a series since the process began.
type countsAnswer struct {
	Requests uint64 `json:"requests"`
	Values   uint64 `json:"values"`
	Errors   uint64 `json:"errors"`
}

// listSeries answers with the series that the session has any right to.
func (a *api) listSeries(w http.ResponseWriter, r *http.Request) *problem {
	session, p := a.enter(r)
	if p != nil {
		return p
	}
	if session == a.anybody && a.server.Guarded() {
		return problemOf(server.ErrNoToken)
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
		return problemOf(err)
	}
	for _, s := range a.server.All() {
		if s.Name() == name || template.Has(s.Name(), name) {
			return sendJSON(w, describe(session, s))
		}
	}
	if err := server.CheckName(name); err != nil {
		return problemOf(err)
	}
	return problemOf(&server.NoSeriesError{Name: name})
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
	st := s.State()
	answer := seriesAnswer{
		Name: s.Name(), Kind: st.Kind, Form: s.FormName(), Numeric: s.Numeric(), Ranges: s.Step() > 0,
		Ready: st.Ready(st.At) == nil, StoreAway: st.StoreAway, Problem: st.Trouble(st.At),
	}
	if l := s.Layout(); l.IsValid() {
		answer.Layout = l.String()
	}
	if session.Can(s.Name(), server.Admin) == nil {
		c := s.Counts()
		answer.Counts, answer.State = &countsAnswer{c.Requests, c.Values, c.Errors}, &st
		if st.Err != nil {
			answer.Problem += ": " + phrase.Reason(st.Err)
		}
	}
	return answer
}
