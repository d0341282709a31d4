package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/firn-id/firn/server"
)

// A draft is what it takes to issue and to write an answer. They are used again.
type draft struct {
	values []server.Value
	answer issued
	body   []byte
}

// send sends the body, which is not used again where somebody may still read it.
func (d *draft) send(w http.ResponseWriter, kind []string) {
	if send(w, kind, d.body) != nil {
		d.body = nil
	}
}

var drafts = sync.Pool{New: func() any { return new(draft) }}

// next issues values.
func (a *api) next(w http.ResponseWriter, r *http.Request) *problem {
	session, n, p := a.asked(r)
	if p != nil {
		return p
	}
	form := choose(r.Header["Accept"])
	name := seriesOf(r.URL.Path)
	if name == "" {
		name = r.PathValue("name")
	}
	if form == nil {
		return notAcceptable.problem("none of the types in Accept").hint("application/json, text/plain or application/octet-stream")
	}
	if form.numbers {
		if p := a.numeric(r, session, name, notAcceptable); p != nil {
			return p
		}
	}
	d := drafts.Get().(*draft)
	defer drafts.Put(d)
	var err error
	if d.values, err = session.Next(r.Context(), name, d.values[:0], n); err != nil {
		return problemFor(session, err)
	}
	d.answer = issued{series: name, values: d.values}
	if s, err := session.Series(r.Context(), name, server.Issue, 1); err == nil && s.FormName() != "" {
		d.answer.form, d.answer.ids = s.FormName(), session.Can(name, server.Decode) == nil
	}
	d.body = form.appendTo(d.body[:0], &d.answer)
	d.send(w, form.header)
	return nil
}

// numeric refuses a series whose answers are no numbers, before anything is issued.
func (a *api) numeric(r *http.Request, session *server.Session, name string, k *kind) *problem {
	s, err := session.Series(r.Context(), name, server.Issue, 1)
	switch {
	case err != nil:
		return problemFor(session, err)
	case !s.Numeric():
		return k.problem("series %s answers with texts, not with numbers", name).
			hint("POST /v1/series/%s/next, with Accept: text/plain or application/json", name)
	}
	return nil
}

// A rangeAnswer is a range in JSON.
type rangeAnswer struct {
	Series string `json:"series"`
	First  string `json:"first"`
	Count  int    `json:"count"`
	Step   int64  `json:"step"`
}

// reserve answers with a range.
func (a *api) reserve(w http.ResponseWriter, r *http.Request) *problem {
	session, n, p := a.asked(r)
	if p != nil {
		return p
	}
	name := r.PathValue("name")
	got, err := session.Reserve(r.Context(), name, n)
	if err != nil {
		return problemFor(session, err)
	}
	return sendJSON(w, rangeAnswer{Series: name, First: got.First.String(), Count: got.Count, Step: got.Step})
}

// asked reads who asks to issue, and how many.
func (a *api) asked(r *http.Request) (*server.Session, int, *problem) {
	session, p := a.enter(r)
	if p != nil {
		return nil, 0, p
	}
	if r.ContentLength != 0 {
		return nil, 0, badRequest.problem("the request has a body").hint("how many is asked for in the query: ?n=10")
	}
	if r.URL.RawQuery == "" {
		return session, 1, nil
	}
	query, p := parameters(r, "n")
	if p != nil {
		return nil, 0, p
	}
	n, p := count(query, "n")
	return session, n, p
}

// parameters reads a query that has some parameters, each once at most, and no other.
// Those of a form are read with it.
func parameters(r *http.Request, known ...string) (url.Values, *problem) {
	r.Body = http.MaxBytesReader(nil, r.Body, maxHeader)
	if err := r.ParseForm(); err != nil {
		return nil, badRequest.problem("the query cannot be read: %.100s", err)
	}
	query := r.Form
	left := len(query)
	for _, name := range known {
		if len(query[name]) > 1 {
			return nil, badRequest.problem("parameter %s is given %d times", name, len(query[name]))
		}
		left -= len(query[name])
	}
	if left > 0 {
		return nil, badRequest.problem("the query has a parameter that is not known here").hint("there are: %s", list(known))
	}
	return query, nil
}

// count reads a parameter that says how many; 1 where it is left out.
func count(query url.Values, name string) (int, *problem) {
	text := query[name]
	if len(text) == 0 {
		return 1, nil
	}
	n, err := strconv.Atoi(text[0])
	if err != nil || strconv.Itoa(n) != text[0] {
		return 0, badRequest.problem("%s=%.40q is not a number", name, text[0]).hint("%s=10", name)
	}
	return n, nil
}
