package config

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
)

// ServerOptions are the settings of the server, but for its series.
type ServerOptions struct {
	RESP, HTTP, Admin Address
	Strings           bool     // for every client, see resp.Options
	Foreign           bool     // the routes of Leaf and tinyid
	Hosts             []string // that the server is called, see httpapi.Options

	Cert, Key, ClientCA string

	Batch, Ranges, Names, Connections int
	Idle                              time.Duration

	Tokens []server.Token
}

// ServerKeys are the settings of a server.
var ServerKeys = []Key[ServerOptions]{
	{
		section: "listen", Name: "resp", Value: "string", Standard: "127.0.0.1:6380",
		Usage: "where to listen for the Redis protocol: HOST:PORT, unix:PATH or off",
		Set:   listenAt(func(o *ServerOptions) *Address { return &o.RESP }),
	},
	{
		section: "listen", Name: "http", Value: "string", Standard: "127.0.0.1:6381",
		Usage: "where to listen for HTTP: HOST:PORT, unix:PATH or off",
		Set:   listenAt(func(o *ServerOptions) *Address { return &o.HTTP }),
	},
	{
		section: "listen", Name: "admin", Value: "string", Standard: "off",
		Usage: "where the console, the metrics and the probes are, instead of with HTTP: HOST:PORT or unix:PATH",
		Set:   listenAt(func(o *ServerOptions) *Address { return &o.Admin }),
	},
	{
		section: "listen", Name: "names", Value: "string", Standard: "none", list: true,
		Usage: "names that clients and proxies call this server by, with commas between them: only these, localhost and IP addresses are answered where no token guards HTTP",
		Set:   func(o *ServerOptions, text string) (err error) { o.Hosts, err = parseHosts(text); return err },
	},
	{
		section: "listen", Name: "strings", Standard: "false",
		Set: truth(func(o *ServerOptions) *bool { return &o.Strings }),
	},
	{
		section: "listen", Name: "foreign", Standard: "false",
		Set: truth(func(o *ServerOptions) *bool { return &o.Foreign }),
	},
	{
		section: "tls", Name: "cert", Standard: "none", path: true,
		Set: func(o *ServerOptions, text string) error { o.Cert = text; return nil },
	},
	{
		section: "tls", Name: "key", Standard: "none", path: true,
		Set: func(o *ServerOptions, text string) error { o.Key = text; return nil },
	},
	{
		section: "tls", Name: "client-ca", Standard: "none", path: true,
		Set: func(o *ServerOptions, text string) error { o.ClientCA = text; return nil },
	},
	{
		section: "limits", Name: "batch", Standard: strconv.Itoa(server.DefaultMaxBatch),
		Set: upTo(1_000_000, func(o *ServerOptions) *int { return &o.Batch }),
	},
	{
		section: "limits", Name: "range", Standard: strconv.Itoa(server.DefaultMaxRange),
		Set: upTo(1_000_000_000, func(o *ServerOptions) *int { return &o.Ranges }),
	},
	{
		section: "limits", Name: "names", Standard: strconv.Itoa(server.DefaultMaxNames),
		Set: upTo(10_000, func(o *ServerOptions) *int { return &o.Names }),
	},
	{
		section: "limits", Name: "connections", Standard: strconv.Itoa(resp.DefaultMaxConns),
		Set: upTo(1_000_000, func(o *ServerOptions) *int { return &o.Connections }),
	},
	{
		section: "limits", Name: "idle", Standard: phrase.Duration(resp.DefaultIdle),
		Set: func(o *ServerOptions, text string) (err error) {
			if o.Idle, err = parseDuration(text); err == nil && o.Idle < time.Second {
				return fmt.Errorf("%q: it is 1s at least", text)
			}
			return err
		},
	},
}

func listenAt(field func(*ServerOptions) *Address) func(*ServerOptions, string) error {
	return func(o *ServerOptions, text string) (err error) {
		*field(o), err = ParseAddress(text)
		return err
	}
}

// serveDefaults are the settings of a server of which nobody says anything.
func serveDefaults() ServerOptions {
	var o ServerOptions
	for _, k := range ServerKeys {
		if k.Standard != "none" {
			if err := k.Set(&o, k.Standard); err != nil {
				panic(err) // it is a constant
			}
		}
	}
	return o
}

// A Serve is what a firn.yaml says of the server.
type Serve struct {
	keys    map[string]Entry // what was said, by the key's whole name
	at      map[string]Place // of the sections
	options ServerOptions    // what was said, on top of what is where nobody says
	tokens  []token          // in the order of the file
}

// Listeners are those that are on.
func (o *ServerOptions) Listeners() []Listening {
	all := []Listening{{"resp", o.RESP}, {"http", o.HTTP}, {"admin", o.Admin}}
	return slices.DeleteFunc(all, func(l Listening) bool { return l.At.Off() })
}

// Plain reports whether tokens travel where others may read them.
func (o *ServerOptions) Plain() bool {
	return o.Cert == "" && slices.ContainsFunc(o.Listeners(), func(l Listening) bool { return l.At.Beyond() })
}
