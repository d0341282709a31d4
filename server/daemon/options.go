package daemon

import (
	"log/slog"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/server"
)

// Options say how a server runs. A nil *Options is all defaults.
type Options struct {
	// Logger is told what happens. Nil means that nobody is.
	Logger *slog.Logger
	// NoAuth lets other hosts come without a token or a client certificate.
	NoAuth bool
	// Hostname is the name of this host. Nil means [os.Hostname].
	Hostname func() (string, error)
	// Version is shown to clients and operators. Empty means that none is.
	Version string

	// Each value of Reload has the settings, certificates and keys read again, as SIGHUP does for
	// firn serve. Where anything is wrong everything stays as it was, and the log says why. Nil
	// means that nothing is read again.
	Reload <-chan struct{}
	// Load reads the settings for a reload. Nil means [config.Load] of the file that they are of.
	Load func() (*config.Config, error)

	// Started is called once, when the server listens. If it fails, the server stops and returns
	// that error.
	Started func(Running) error
	// Explain says an error as its reader wants it, where it ends a reload. Nil means that it is
	// said as it is.
	Explain func(error) error
	// Advise says what can be done about a problem, in one line for the log and for those who may
	// see the state of a series; "" is nothing. It is called by several goroutines. Nil means that
	// nothing is said.
	Advise func(Problem) string
}

// Running is what a server that has begun does.
type Running struct {
	Listen  []Listening
	TLS     bool
	Tokens  bool   // clients have to show one
	Config  string // the path of firn.yaml; "": there is none
	Ready   bool
	First   server.State // of the first series, or of any name
	Example string       // the name of a series
	Texts   bool         // that series gives texts

	Series    int  // how many are configured, where AnyName is false
	AnyName   bool // every name gives something
	MayBeLost bool // the store may have lost counters: only their names give anything
	Default   bool // a series is kept in the default file of this user
}

// A Listening is where a server listens.
type Listening struct {
	Name string // resp, http or admin
	At   config.Address
}

// running says what the server does.
func (o *service) running(bound []boundListener) Running {
	p := o.plan
	r := Running{
		TLS: o.keys.on(), Tokens: len(p.options.Tokens) > 0, Config: p.config, Ready: o.server.Ready() == nil,
		First: o.supplies[p.drawings()[0].Key()].state(), Example: p.example(),
		Series: len(p.series), AnyName: p.others != nil, MayBeLost: p.names != nil && p.names.mayBeLost(),
		Default: p.storeAt.Text == "" && p.usesStore(),
	}
	for _, s := range o.server.All() {
		r.Texts = r.Texts || s.Name() == r.Example && !s.Numeric()
	}
	if template.Is(r.Example) {
		r.Example = template.Prefix(r.Example) + "42"
	}
	for _, b := range bound {
		r.Listen = append(r.Listen, Listening{b.flag, b.at})
	}
	return r
}
