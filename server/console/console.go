// Package console is a page for people who run a server of ids: what issues, how
// fast, for how long without its store, who else has a worker, and what is in an id.
//
//	page := console.Handler(srv, nil)
//	mux.Handle("/{$}", page)
//	mux.Handle("/console/", page)
//
// The page is a few files inside the program. It loads nothing from elsewhere, and
// asks the server once a second for as long as somebody looks at it. Where the server
// has tokens, it asks for one that has the right admin on "*"; that one is sent as a
// header, and forgotten with the page.
package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/internal/guard"
)

// Options: nil, or any zero field, takes the default.
type Options struct {
	// Workers lists the workers of the pools that the server draws from, its own
	// and those of others. It may wait for the store. Nil: they are not shown.
	Workers func(ctx context.Context) ([]Worker, error)
	// Shards returns what measures the shards of a cluster, nil where there is none just
	// now. Nil: there is none.
	Shards func() func(ctx context.Context) (*Shards, error)
	// Every is how often Workers and Shards are asked at most, while somebody looks at
	// them. The default is 5 s.
	Every time.Duration
	// Names are what the server is called, as in httpapi.Options.
	Names []string
	// Version of the program, for people.
	Version string

	// Traffic says what the listeners of the process count, and Reloaded when its settings were
	// last read again, or first, and what came of that. Nil: it is not shown.
	Traffic  func() []server.Traffic
	Reloaded func() (at time.Time, err error)
}

// A Worker is one of a pool, held or not.
type Worker struct {
	Store   string // as server.State has it
	Pool    string
	Worker  int64
	Text    string // Worker as people read it, such as 3/7
	State   string // held, free, unusable until its horizon, or unknown: the store has no clock, so it does not say
	Name    string // of its holder, or of its last
	Term    uint64
	Free    time.Duration // until it falls free, if its holder does not write again
	Horizon time.Time     // last instant that may have been issued
}

//go:embed page
var files embed.FS

// A console answers the requests of its page.
type console struct {
	server  *server.Server
	version string
	began   time.Time
	roster  roster
	sharded func() func(context.Context) (*Shards, error)
	shards  news[*Shards]

	traffic  func() []server.Traffic
	reloaded func() (time.Time, error)
}

// Serves reports whether a path is one of the console's.
func Serves(path string) bool { return path == "/" || strings.HasPrefix(path, "/console/") }

// Handler returns the page of a server at / and what belongs to it below /console/.
func Handler(srv *server.Server, o *Options) http.Handler {
	if o == nil {
		o = &Options{}
	}
	every := cmp.Or(o.Every, 5*time.Second)
	c := &console{
		server: srv, version: o.Version, began: time.Now(), sharded: o.Shards, traffic: o.Traffic, reloaded: o.Reloaded,
		roster: roster{news[[]Worker]{ask: o.Workers, every: every}},
	}
	if c.sharded == nil {
		c.sharded = func() func(context.Context) (*Shards, error) { return nil }
	}
	c.shards = news[*Shards]{every: every, ask: func(ctx context.Context) (*Shards, error) {
		if look := c.sharded(); look != nil {
			return look(ctx)
		}
		return nil, nil // they have just gone
	}}
	mux := http.NewServeMux()
	for name, file := range pageFiles() {
		mux.Handle("GET "+name, file)
	}
	mux.HandleFunc("GET /console/state", c.guarded(c.state))
	mux.HandleFunc("GET /console/shards", c.guarded(c.cluster))
	mux.HandleFunc("GET /console/decode/{id}", c.guarded(c.decode))
	keeper := guard.New(srv, o.Names, false)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, h := range headers {
			w.Header().Set(h.name, h.value)
		}
		if err := keeper.Check(r, true); err != nil {
			refuse(err).write(w)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Nothing from elsewhere runs in the page, nothing goes elsewhere, and no other
// page has it in a frame.
var headers = []struct{ name, value string }{
	{"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Referrer-Policy", "no-referrer"},
	{"X-Content-Type-Options", "nosniff"},
}

// A pageFile is a file of the page. A browser asks whether it has the newest.
type pageFile struct {
	body      []byte
	tag, kind string
}

var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// pageFiles returns the files by path, the page itself at /.
func pageFiles() map[string]pageFile {
	all := map[string]pageFile{}
	err := fs.WalkDir(files, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := files.ReadFile(name)
		sum := sha256.Sum256(body)
		at := "/console/" + path.Base(name)
		if path.Base(name) == "index.html" {
			at = "/{$}"
		}
		all[at] = pageFile{body, `"` + hex.EncodeToString(sum[:8]) + `"`, kinds[path.Ext(name)]}
		return err
	})
	if err != nil {
		panic(err) // the files are in the program
	}
	return all
}

func (f pageFile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", f.kind)
	w.Write(f.body)
}

// guarded lets those pass who may see everything.
func (c *console) guarded(answer func(*server.Session, *http.Request) (any, *refusal)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			token = ""
		}
		session, err := c.server.Enter(strings.TrimSpace(token))
		if err == nil {
			err = session.Can("*", server.Admin)
		}
		if err != nil {
			refuse(err).write(w)
			return
		}
		body, refused := answer(session, r)
		if refused != nil {
			refused.write(w)
			return
		}
		send(w, http.StatusOK, body)
	}
}

// send writes an answer. Whether it arrives is for the page to notice.
func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}
