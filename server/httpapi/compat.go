package httpapi

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/firn-id/firn/server"
)

// The routes of other services. They issue on GET, which ours never do.
//
// Where those answer a failure with the status 200 and no id, or with the error's
// number in the place of one, these say so in the status.
var foreignRoutes = []route{
	{method: http.MethodGet, path: "/api/segment/get/{key}", handle: (*api).leaf, draws: true},
	{method: http.MethodGet, path: "/api/snowflake/get/{key}", handle: (*api).leafSnowflake, draws: true},
	{method: http.MethodGet, path: "/tinyid/id/nextId", handle: (*api).tinyid, draws: true, tinyid: true},
	{method: http.MethodPost, path: "/tinyid/id/nextId", handle: (*api).tinyid, draws: true, tinyid: true},
	{method: http.MethodGet, path: "/tinyid/id/nextIdSimple", handle: (*api).tinyidSimple, draws: true},
	{method: http.MethodPost, path: "/tinyid/id/nextIdSimple", handle: (*api).tinyidSimple, draws: true},
}

// leaf answers as Meituan's Leaf: the bare number.
func (a *api) leaf(w http.ResponseWriter, r *http.Request) *problem {
	session, p := a.enter(r)
	if p != nil {
		return p
	}
	d := drafts.Get().(*draft)
	defer drafts.Put(d)
	if p := a.drawForeign(d, r, session, r.PathValue("key"), 1); p != nil {
		return p
	}
	d.body = appendNumber(d.body[:0], d.values[0])
	d.send(w, textType)
	return nil
}

// leafSnowflake answers as Leaf's other route, whose ids have a time. The number of a counter in their
// place may be that of another row.
func (a *api) leafSnowflake(w http.ResponseWriter, r *http.Request) *problem {
	session, p := a.enter(r)
	if p != nil {
		return p
	}
	name := r.PathValue("key")
	s, err := session.Series(r.Context(), name, server.Issue, 1)
	if err != nil {
		return problemFor(session, err)
	}
	if s.State().Kind == "sequence" {
		return noNumber.problem("series %s is a sequence, and this route gives ids with a time", name).
			hint("GET /api/segment/get/%s", name)
	}
	return a.leaf(w, r)
}

// drawForeign draws n numbers for a client that knows nothing else.
func (a *api) drawForeign(d *draft, r *http.Request, session *server.Session, name string, n int) *problem {
	if r.Method == http.MethodHead {
		p := notAllowed.problem("HEAD would use up an id that nobody sees")
		p.allow = http.MethodGet
		return p
	}
	if p := a.numeric(r, session, name, noNumber); p != nil {
		return p
	}
	var err error
	if d.values, err = session.Next(r.Context(), name, d.values[:0], n); err != nil {
		return drawProblem(session, err, fewerTinyid)
	}
	return nil
}

// fewerTinyid is fewer for tinyid. Leaf has no way to ask for more than one.
func fewerTinyid(_ string, n int64) string { return fmt.Sprintf("batchSize=%d gives what is left", n) }

// tinyid answers as DiDi's tinyid: numbers in its JSON.
func (a *api) tinyid(w http.ResponseWriter, r *http.Request) *problem {
	d := drafts.Get().(*draft)
	defer drafts.Put(d)
	if p := a.drawTinyid(d, r); p != nil {
		p.tinyid = true
		return p
	}
	d.body = append(d.body[:0], `{"data":[`...)
	d.body = append(appendCommas(d.body, d.values), `],"code":200,"message":""}`...)
	d.send(w, jsonType)
	return nil
}

// tinyidSimple answers as tinyid's other route: numbers with commas between them.
func (a *api) tinyidSimple(w http.ResponseWriter, r *http.Request) *problem {
	d := drafts.Get().(*draft)
	defer drafts.Put(d)
	if p := a.drawTinyid(d, r); p != nil {
		return p
	}
	d.body = appendCommas(d.body[:0], d.values)
	d.send(w, textType)
	return nil
}

// drawTinyid reads tinyid's parameters, whose token may be in the query, and draws.
func (a *api) drawTinyid(d *draft, r *http.Request) *problem {
	query, p := parameters(r, "bizType", "batchSize", "token")
	if p != nil {
		return p
	}
	n, p := count(query, "batchSize")
	if p != nil {
		return p
	}
	session, p := a.enter(r)
	if token := query.Get("token"); token != "" && r.Header["Authorization"] == nil && a.server.Guarded() {
		session, p = a.enterWith(token)
	}
	if p != nil {
		return p
	}
	return a.drawForeign(d, r, session, query.Get("bizType"), n)
}

func appendCommas(dst []byte, values []server.Value) []byte {
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendNumber(dst, v)
	}
	return dst
}

// Codes of tinyid's failures.
const (
	tinyidToken  = 5
	tinyidSystem = 6
)

// appendTinyid writes a problem as tinyid does.
func appendTinyid(dst []byte, p *problem) []byte {
	code := tinyidSystem
	switch p.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		code = tinyidToken
	}
	dst = append(dst, `{"data":null,"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	message := p.Title + ": " + p.Detail
	if p.Hint != "" {
		message += "; hint: " + p.Hint
	}
	return append(appendText(dst, message), '}')
}
