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
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/server"
)

// Options: nil, or any zero field, takes the default.
type Options struct {
	// Foreign adds the routes of Leaf and tinyid.
	Foreign bool
	// NoMetrics leaves /metrics out, where [Admin] serves it elsewhere.
	NoMetrics bool
	// Version of the program, for firn_build_info; that of the main module.
	Version string
	// Stats counts, if not nil, for the /metrics of all handlers that share it. Nil:
	// each has its own answers alone.
	Stats *Stats
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
	origin   *http.CrossOriginProtection
	stats    *Stats
	document []byte
}

// A route is a method and a path with what answers them.
type route struct {
	method string
	path   string // as http.ServeMux reads it
	handle func(*api, http.ResponseWriter, *http.Request) *problem
}

var routes = []route{
	{http.MethodPost, "/v1/series/{name}/next", (*api).next},
	{http.MethodPost, "/v1/series/{name}/range", (*api).reserve},
	{http.MethodGet, "/v1/series", (*api).listSeries},
	{http.MethodGet, "/v1/series/{name}", (*api).showSeries},
	{http.MethodGet, "/v1/decode/{id}", (*api).decode},
	{http.MethodGet, "/v1/layouts", (*api).layouts},
	{http.MethodGet, "/v1/openapi.json", (*api).openAPI},
}

var healthRoutes = []route{
	{http.MethodGet, "/healthz", (*api).healthy},
	{http.MethodGet, "/readyz", (*api).ready},
}

// Handler returns the routes of a server. Where the server has tokens, each request
// brings one, as Authorization: Bearer TOKEN, but those for /healthz, /readyz,
// /v1/layouts and the document; /metrics needs the right admin on "*".
func Handler(srv *server.Server, o *Options) (http.Handler, error) {
	options := o.orDefaults()
	all := slices.Concat(routes, healthRoutes)
	if options.Foreign {
		all = append(all, foreignRoutes...)
	}
	a, err := newAPI(srv, options.Stats)
	if err != nil {
		return nil, err
	}
	if !options.NoMetrics {
		all = append(all, metricsRoute(a.newMetrics(options.Version)))
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
	a, err := newAPI(srv, options.Stats)
	if err != nil {
		return nil, err
	}
	a.open = true
	return a.mux(append(slices.Clone(healthRoutes), metricsRoute(a.newMetrics(options.Version)))), nil
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

func newAPI(srv *server.Server, stats *Stats) (*api, error) {
	anybody, err := srv.Enter("")
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	return &api{server: srv, anybody: anybody, origin: http.NewCrossOriginProtection(), stats: stats}, nil
}

// mux puts the routes together, with an answer for every other method and path.
func (a *api) mux(all []route) http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range all {
		mux.HandleFunc(r.method+" "+r.path, a.serve(r.handle))
		if methods[r.path] = append(methods[r.path], r.method); r.method == http.MethodGet {
			methods[r.path] = append(methods[r.path], http.MethodHead)
		}
	}
	for path, allowed := range methods {
		allow := strings.Join(allowed, ", ")
		mux.HandleFunc(path, a.serve(func(_ *api, _ http.ResponseWriter, r *http.Request) *problem {
			p := notAllowed.problem("%.20s is not for this path", r.Method).hint("use %s", allow)
			p.allow = allow
			return p
		}))
	}
	mux.HandleFunc("/", a.serve(func(*api, http.ResponseWriter, *http.Request) *problem {
		return noRoute.problem("there is nothing at this path").hint("GET /v1/openapi.json has all paths")
	}))
	return a.front(mux)
}

// front answers the one request that most are, and leaves the others to the mux,
// which takes longer to find a route than a series to issue an id.
func (a *api) front(rest http.Handler) http.Handler {
	if a.open {
		return rest
	}
	next := a.serve((*api).next)
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

// serve makes a handler of what answers a route.
func (a *api) serve(handle func(*api, http.ResponseWriter, *http.Request) *problem) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Cache-Control"] = noStore
		status := http.StatusOK
		if p := handle(a, w, r); p != nil {
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
