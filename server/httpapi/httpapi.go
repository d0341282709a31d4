// Package httpapi is a server of ids over HTTP: JSON, lines or bytes for programs,
// health for whoever restarts it, metrics for Prometheus, and the routes of Leaf and
// tinyid for those who move from them.
//
//	h, err := httpapi.Handler(srv, nil)
//	...
//	err = httpapi.NewServer(h).Serve(listener)
//
//	curl -X POST http://127.0.0.1:6381/v1/series/photo/next
//
// The OpenAPI document at /v1/openapi.json has all of it. No answer but 200 has an
// id in it, and no answer of 200 is without. Nothing is logged here: an id or a
// token in a log is one too many.
package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/internal/guard"
)

// Options: nil, or any zero field, takes the default.
type Options struct {
	// Foreign adds the routes of Leaf and tinyid.
	Foreign bool
	// NoMetrics leaves /metrics out, where [Admin] serves it elsewhere.
	NoMetrics bool
	// Version of the program, for firn_build_info; that of the main module.
	Version string
	// Names are what the server is called, besides localhost and its addresses. Requests
	// that come by another name are refused where no token is asked for, and on the
	// loopback interface: a browser may send them for a page of whoever owns the name.
	Names []string
	// Stats counts, if not nil, for the /metrics of all handlers that share it. Nil:
	// each has its own answers alone.
	Stats *Stats

	// Traffic says what the listeners of the process count, and Reloaded when its settings were
	// last read again, or first, and what came of that; both for /metrics. Nil: there is no metric of it.
	Traffic  func() []server.Traffic
	Reloaded func() (at time.Time, err error)
}

// Limits of [NewServer].
const (
	maxHeader   = 16 << 10         // bytes of a request's line and headers
	requestIn   = 10 * time.Second // to send them; no request has a body
	answerIn    = 30 * time.Second // to issue, and to take the answer
	idleFor     = 2 * time.Minute  // between the requests of a connection
	maxRequests = 250              // at once on a connection of HTTP/2
)

// NewServer returns a server with the limits that suit a Handler: slow senders and
// slow readers lose their connection. How many connections there are is for the
// listener to limit, and TLS is the listener's or TLSConfig's.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, MaxHeaderBytes: maxHeader,
		ReadTimeout: requestIn, WriteTimeout: answerIn, IdleTimeout: idleFor,
		BaseContext: func(l net.Listener) context.Context { return guard.Listening(context.Background(), l) },
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxRequests,
			WriteByteTimeout:     answerIn, // the other limits end a request, not a connection whose peer reads nothing
		},
	}
}

// An api answers requests.
type api struct {
	server   *server.Server
	anybody  *server.Session // of requests without a token
	open     bool            // whoever gets here may see everything
	guard    *guard.Guard
	stats    *Stats
	document []byte
}

// A route is a method and a path with what answers them.
type route struct {
	method string
	path   string // as http.ServeMux reads it
	handle func(*api, http.ResponseWriter, *http.Request) *problem
	draws  bool // it issues: no page of another site may have a link to it
	tinyid bool // failures are written as tinyid does
}

var routes = []route{
	{method: http.MethodPost, path: "/v1/series/{name}/next", handle: (*api).next, draws: true},
	{method: http.MethodPost, path: "/v1/series/{name}/range", handle: (*api).reserve, draws: true},
	{method: http.MethodGet, path: "/v1/series", handle: (*api).listSeries},
	{method: http.MethodGet, path: "/v1/series/{name}", handle: (*api).showSeries},
	{method: http.MethodGet, path: "/v1/decode/{id}", handle: (*api).decode},
	{method: http.MethodGet, path: "/v1/layouts", handle: (*api).layouts},
	{method: http.MethodGet, path: "/v1/openapi.json", handle: (*api).openAPI},
}

var healthRoutes = []route{
	{method: http.MethodGet, path: "/healthz", handle: (*api).healthy},
	{method: http.MethodGet, path: "/readyz", handle: (*api).ready},
}

// Handler returns the routes of a server. Requests that a browser sends for a page of
// another site are refused, and those that come by a foreign name: see Options.Names. Where the server has tokens, each request
// brings one, as Authorization: Bearer TOKEN, but those for /healthz, /readyz,
// /v1/layouts and the document; /metrics needs the right admin on "*".
func Handler(srv *server.Server, o *Options) (http.Handler, error) {
	options := o.orDefaults()
	all := slices.Concat(routes, healthRoutes)
	if options.Foreign {
		all = append(all, foreignRoutes...)
	}
	a, err := newAPI(srv, &options, false)
	if err != nil {
		return nil, err
	}
	if !options.NoMetrics {
		all = append(all, metricsRoute(a.newMetrics(&options)))
	}
	if a.document, err = document(all); err != nil {
		return nil, err
	}
	return a.mux(all), nil
}

// Admin returns /metrics, /healthz and /readyz without asking for a token: they are
// for a listener that only operators reach.
func Admin(srv *server.Server, o *Options) (http.Handler, error) {
	options := o.orDefaults()
	a, err := newAPI(srv, &options, true)
	if err != nil {
		return nil, err
	}
	return a.mux(append(slices.Clone(healthRoutes), metricsRoute(a.newMetrics(&options)))), nil
}

func (o *Options) orDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Stats == nil {
		d.Stats = new(Stats)
	}
	return d
}

func newAPI(srv *server.Server, o *Options, open bool) (*api, error) {
	anybody, err := srv.Enter("")
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	return &api{server: srv, anybody: anybody, open: open, guard: guard.New(srv, o.Names, open), stats: o.Stats}, nil
}

// mux puts the routes together, with an answer for every other method and path.
func (a *api) mux(all []route) http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range all {
		mux.HandleFunc(r.method+" "+r.path, a.serve(r))
		if methods[r.path] = append(methods[r.path], r.method); r.method == http.MethodGet {
			methods[r.path] = append(methods[r.path], http.MethodHead)
		}
	}
	for path, allowed := range methods {
		allow := strings.Join(allowed, ", ")
		mux.HandleFunc(path, a.serve(route{handle: func(_ *api, _ http.ResponseWriter, r *http.Request) *problem {
			p := notAllowed.problem("%.20s is not for this path", r.Method).hint("use %s", allow)
			p.allow = allow
			return p
		}}))
	}
	mux.HandleFunc("/", a.serve(route{handle: func(*api, http.ResponseWriter, *http.Request) *problem {
		return noRoute.problem("there is nothing at this path").hint("GET /v1/openapi.json has all paths")
	}}))
	return a.front(mux)
}

// front answers the one request that most are, and leaves the others to the mux,
// which takes longer to find a route than a series to issue an id.
func (a *api) front(rest http.Handler) http.Handler {
	if a.open {
		return rest
	}
	next := a.serve(routes[0])
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.RawPath == "" && seriesOf(r.URL.Path) != "" {
			next(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

// seriesOf is the name in /v1/series/{name}/next, if it is one that needs no escapes.
func seriesOf(path string) string {
	rest, begins := strings.CutPrefix(path, "/v1/series/")
	name, ends := strings.CutSuffix(rest, "/next")
	if !begins || !ends || server.CheckName(name) != nil {
		return ""
	}
	return name
}

// serve makes a handler of a route. Whatever is answered is behind the guard.
func (a *api) serve(to route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Cache-Control"] = noStore
		status := http.StatusOK
		p := a.guarded(r, &to)
		if p == nil {
			p = to.handle(a, w, r)
		}
		if p != nil {
			p.write(w)
			status = p.Status
		}
		a.stats.count(status)
	}
}

// Values of headers, which are never changed.
var (
	noStore  = []string{"no-store"}
	jsonType = []string{"application/json"}
	textType = []string{"text/plain; charset=utf-8"}

	bytesType   = []string{"application/octet-stream"}
	problemType = []string{"application/problem+json"}
)
