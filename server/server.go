// Package server is what a server of ids is, without a protocol and without a
// network: named series, who may draw from them, limits, counts, and whether all
// is well. Packages server/resp and server/httpapi put it on the wire.
//
//	srv, err := server.New(nil, server.Numbers("photo", ids, nil))
//	...
//	session, err := srv.Enter("") // a token, where the server has tokens
//	values, err := session.Next(ctx, "photo", nil, 10)
//
// Rights, limits and the kinds of errors are decided here, once for all protocols.
// Where a series draws from, and what keeps its numbers unique, is the business
// of the source it was made with.
package server

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/template"
)

// Defaults of Options.
const (
	DefaultMaxBatch = 10_000
	DefaultMaxRange = 1_000_000
	DefaultMaxNames = 200
)

// Options: nil, or any zero field, takes the default.
type Options struct {
	// MaxBatch is how many values one request gets at most; 10,000.
	MaxBatch int
	// MaxRange is how many numbers one range has at most; 1,000,000.
	MaxRange int

	// Tokens say who may do what. Without any, everybody may do everything: then
	// only those who may do so should be able to connect.
	Tokens []Token

	// Others makes the series of a name that the server was not given; all that it makes
	// draw from one source, and differ in their names alone. Nil: such a name is a
	// *NoSeriesError. New and Replace ask it for OtherNames, so that its State is known
	// before there is any other. It is called when a name is first asked for, by many
	// goroutines at once. Only who asks for such a name waits for it. What it fails with
	// is told as an error of the series OtherNames, and the next to ask calls it again. A
	// *NoSeriesError is told as it is, without a Nearest that the session may not use.
	Others func(name string) (*Series, error)
	// MaxNames is how many of those names have a series of their own, and counts; 200.
	// All names that come after are served by the series OtherNames.
	MaxNames int

	// Layout is one that ids are decoded in besides those of the series.
	Layout firn.Layout

	// Logger is told why sources fail: at once, and then once a minute for each series.
	// Nil: nobody is.
	Logger *slog.Logger

	// Now is the clock; time.Now.
	Now func() time.Time
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	for _, f := range []struct {
		value *int
		least int
	}{{&d.MaxBatch, DefaultMaxBatch}, {&d.MaxRange, DefaultMaxRange}, {&d.MaxNames, DefaultMaxNames}} {
		if *f.value == 0 {
			*f.value = f.least
		}
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return d
}

// A Server has series and lets sessions draw from them. All methods may be called
// from many goroutines at once.
type Server struct {
	now      atomic.Pointer[world]
	stopping atomic.Bool
	refused  atomic.Uint64
	unknown  atomic.Uint64 // tokens

	replacing sync.Mutex // one Replace at a time
}

// A world is what Replace replaces: whoever has loaded it sees one configuration.
type world struct {
	options Options
	tokens  []Token
	series  map[string]*Series
	names   []string // of series, sorted
	others  *others
	decodes []decodable
}

// New returns a server with these series.
func New(o *Options, series ...*Series) (*Server, error) {
	s := &Server{}
	return s, s.Replace(o, series...)
}

// Replace gives the server other options and series. Sessions go on: what they may
// do is looked up again at their next request. A series goes on counting where one of
// its name has left off; what was counted of a name that is gone is forgotten. On an
// error nothing has changed.
//
// Close the sources that are no longer used after Replace has returned. A request
// that meets one of them is drawn again from the new series.
func (s *Server) Replace(o *Options, series ...*Series) error {
	s.replacing.Lock()
	defer s.replacing.Unlock()
	before := s.now.Load()
	w, err := newWorld(o, series, before)
	if err != nil {
		return err
	}
	if before != nil {
		for _, old := range before.all() {
			if one := w.series[old.name]; one != nil {
				one.follow(old)
			}
		}
	}
	s.now.Store(w)
	return nil
}

func newWorld(o *Options, series []*Series, before *world) (*world, error) {
	w := &world{options: o.withDefaults(), series: make(map[string]*Series, len(series))}
	for _, limit := range []int{w.options.MaxBatch, w.options.MaxRange, w.options.MaxNames} {
		if limit < 0 {
			return nil, fmt.Errorf("server: a limit of %d: it is positive, or 0 for the default", limit)
		}
	}
	for _, one := range series {
		if err := checkGiven(one); err != nil {
			return nil, err
		}
		if w.series[one.name] != nil {
			return nil, fmt.Errorf("server: there are two series %s", one.name)
		}
		w.series[one.name] = one
		w.names = append(w.names, one.name)
	}
	slices.Sort(w.names)
	for _, name := range w.names {
		if t := w.template(name); t != nil {
			return nil, fmt.Errorf("server: series %s and %s could have one name, and a name stands for one counter", name, t.name)
		}
	}
	var err error
	if w.tokens, err = checkTokens(w.options.Tokens); err != nil {
		return nil, err
	}
	w.tokens = counted(w.tokens, before)
	if w.others, err = newOthers(&w.options, before, w.series); err != nil {
		return nil, err
	}
	w.decodes = decodables(w)
	return w, nil
}

// checkGiven returns what is wrong with the name of a series that the server is given. A template has one
// that no client can ask for.
func checkGiven(s *Series) error {
	if s.options.Names == nil {
		return CheckName(s.name)
	}
	if !template.Is(s.name) || CheckName(template.Prefix(s.name)+"0") != nil {
		return &NameError{Name: s.name}
	}
	return nil
}

// all returns the series by name: those that were given, then other names.
func (w *world) all() []*Series {
	var all []*Series
	for _, name := range w.names {
		all = append(all, w.series[name])
	}
	return append(all, w.others.named()...)
}

// All returns the series by name: those that the server was given, then those of other
// names, of which the first Options.MaxNames are there once they were asked for.
func (s *Server) All() []*Series { return s.now.Load().all() }

// Rest returns the series of all names that have none of their own, whether there are any
// yet or not; nil where the server has the names that it was given and no others.
func (s *Server) Rest() *Series { return s.now.Load().others.rest }

// MaxBatch returns how many values one request gets at most.
func (s *Server) MaxBatch() int { return s.now.Load().options.MaxBatch }

// MaxRange returns how many numbers one range has at most.
func (s *Server) MaxRange() int { return s.now.Load().options.MaxRange }

// Guarded reports whether sessions need a token.
func (s *Server) Guarded() bool { return len(s.now.Load().tokens) > 0 }

// Refused returns how many requests were refused before they came to a series:
// there was none of the name, no right to it, or a limit.
func (s *Server) Refused() uint64 { return s.refused.Load() }

// Stop makes Ready say that the server is about to end, so that nobody sends new
// work. Whoever asks nevertheless is answered.
func (s *Server) Stop() { s.stopping.Store(true) }

// maxName is how long the name of a series may be.
const maxName = 64

// CheckName returns what is wrong with the name of a series: it has up to 64 of
// A-Z, a-z, 0-9, '_', '.', '-' and ':', and begins with a letter or digit.
func CheckName(name string) error {
	ok := name != "" && len(name) <= maxName && !strings.ContainsRune("_.-:", rune(name[0]))
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_.-:", c) >= 0
	}
	if !ok {
		return &NameError{Name: name}
	}
	return nil
}
