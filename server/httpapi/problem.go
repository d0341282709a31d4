package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/firn-id/firn"
	documents "github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/server"
)

// A problem is a failure as RFC 9457 writes it.
type problem struct {
	Type   string `json:"type"` // a place in the OpenAPI document
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Hint   string `json:"hint,omitempty"` // what to do about it

	kind   *kind
	allow  string    // the methods, where it is the method that is wrong
	tinyid bool      // it is written as tinyid does
	at     time.Time // when to come again; zero: a moment later
	sent   bool      // it is written already
}

// A kind is a sort of problem. The document has an entry for each, under x-problems.
type kind struct {
	name   string
	status int
	title  string
	hint   string // where there is none that is better
}

// problemBase is where the document explains the kinds.
const problemBase = "/v1/openapi.json#/x-problems/"

var (
	badRequest    = &kind{"bad-request", http.StatusBadRequest, "The request is not right", ""}
	overLimit     = &kind{"over-limit", http.StatusBadRequest, "That is not within a limit", ""}
	noToken       = &kind{"no-token", http.StatusUnauthorized, "A token is needed", ""}
	wrongToken    = &kind{"wrong-token", http.StatusUnauthorized, "The token is not known", ""}
	denied        = &kind{"denied", http.StatusForbidden, "The token has no right to that", ""}
	crossOrigin   = &kind{"cross-origin", http.StatusForbidden, "Pages of other sites are not answered", ""}
	noRoute       = &kind{"no-route", http.StatusNotFound, "There is nothing here", ""}
	noSeries      = &kind{"no-series", http.StatusNotFound, "There is no such series", "GET /v1/series lists those there are"}
	notAllowed    = &kind{"method-not-allowed", http.StatusMethodNotAllowed, "The method is not for this path", ""}
	notAcceptable = &kind{"not-acceptable", http.StatusNotAcceptable, "The answer has no such form", ""}
	noRange       = &kind{"no-range", http.StatusConflict, "The series gives no ranges", ""}
	namesFull     = &kind{"names-full", http.StatusConflict, "The template has as many names as it may have", ""}
	noNumber      = &kind{"no-number", http.StatusConflict, "The series does not answer with numbers", ""}
	unreadable    = &kind{"unreadable", http.StatusUnprocessableEntity, "The text makes no sense as an id", "send the text as it was given out, whole and unchanged"}
	stopped       = &kind{"stopped", http.StatusInternalServerError, "The series cannot issue", ""}
	unavailable   = &kind{"unavailable", http.StatusServiceUnavailable, "There are no ids at the moment", ""}
	notReady      = &kind{"not-ready", http.StatusServiceUnavailable, "The server is not ready", ""}

	kinds = []*kind{
		badRequest, overLimit, noToken, wrongToken, denied, crossOrigin, noRoute, noSeries,
		notAllowed, notAcceptable, noRange, namesFull, noNumber, unreadable, stopped, unavailable, notReady,
	}
)

func (k *kind) problem(format string, args ...any) *problem {
	return &problem{
		Type: problemBase + k.name, Title: k.title, Status: k.status,
		Detail: fmt.Sprintf(format, args...), kind: k,
	}
}

func (p *problem) hint(format string, args ...any) *problem {
	p.Hint = fmt.Sprintf(format, args...)
	return p
}

// again reports whether the same request may do better a moment later.
func (k *kind) again() bool { return k.status == http.StatusServiceUnavailable }

// problemOf turns an error of package server into a problem.
func problemOf(err error) *problem { return newProblem(err, phrase.Reason(err), server.Hint(err)) }

// problemFor is problemOf with what the session may know of causes.
func problemFor(session *server.Session, err error) *problem {
	return drawProblem(session, err, fewer)
}

// drawProblem is problemFor of a route with its own way to ask for n values, which fewer says.
func drawProblem(session *server.Session, err error, fewer func(series string, n int64) string) *problem {
	text, hint := session.Explain(err, fewer)
	return newProblem(err, text, hint)
}

// fewer says how to ask a series for the n values that it has left.
func fewer(series string, n int64) string {
	return fmt.Sprintf("POST /v1/series/%s/next?n=%d gives what is left", series, n)
}

func newProblem(err error, text, hint string) *problem {
	k := kindOf(err)
	p := k.problem("%s", text)
	p.Hint, p.at = cmp.Or(hint, k.hint), server.RetryAt(err)
	return p
}

func kindOf(err error) *kind {
	var (
		name    *server.NameError
		unknown *server.NoSeriesError
		limit   *server.LimitError
	)
	switch {
	case errors.As(err, &name), errors.As(err, &unknown):
		return noSeries
	case errors.As(err, &limit):
		return overLimit
	case errors.Is(err, server.ErrNoToken):
		return noToken
	case errors.Is(err, server.ErrToken):
		return wrongToken
	case errors.Is(err, server.ErrDenied):
		return denied
	case errors.Is(err, server.ErrNoRange):
		return noRange
	case errors.As(err, new(*documents.FullError)):
		return namesFull
	case server.Retry(err):
		return unavailable
	}
	return stopped
}

// write sends the problem.
func (p *problem) write(w http.ResponseWriter) {
	if p.sent {
		return
	}
	h := w.Header()
	p.advise(h)
	var body []byte
	if p.tinyid {
		h["Content-Type"], body = jsonType, appendTinyid(nil, p)
	} else {
		var err error
		h["Content-Type"] = problemType
		if body, err = json.Marshal(p); err != nil { // texts and numbers
			panic(err)
		}
		body = append(body, '\n')
	}
	w.WriteHeader(p.Status)
	w.Write(body)
}

// advise sets the headers that go with the status.
func (p *problem) advise(h http.Header) {
	switch {
	case p.allow != "":
		h.Set("Allow", p.allow)
	case p.kind == noToken:
		h.Set("WWW-Authenticate", `Bearer realm="firn"`)
	case p.kind == wrongToken:
		h.Set("WWW-Authenticate", `Bearer realm="firn", error="invalid_token"`)
	case p.kind.again():
		wait := math.Ceil(time.Until(p.at).Seconds())
		h.Set("Retry-After", strconv.Itoa(max(int(wait), 1)))
	}
}

// noID turns an error of decoding into a problem.
func noID(err error) *problem {
	var (
		syntax *firn.SyntaxError
		key    *public.KeyError
	)
	if errors.As(err, &syntax) || errors.As(err, &key) || errors.Is(err, public.ErrForged) {
		return unreadable.problem("%s", phrase.Reason(err))
	}
	return problemOf(err)
}
