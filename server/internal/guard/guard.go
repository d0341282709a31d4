// Package guard keeps requests away that a browser sends for somebody else: for a page of
// another site, or for a page whose name was made to stand for this server's address (DNS
// rebinding). Programs on the same host or network send neither.
//
// Two things are looked at. The page: browsers say in Origin and Sec-Fetch-Site which
// page a request comes from. The name: a page of evil.example that is told that
// evil.example is now 127.0.0.1 is of the same origin as this server, and says nothing of
// the sort; but its Host is evil.example. Where no token is asked for, and on the
// loopback interface, only names are answered that nobody else can own. A name below
// localhost is not one of them: whether it is this host is for each resolver to say, and a
// program may serve a page of its own under it.
//
//	listener          tokens   names that are answered
//	loopback          any      IP addresses, localhost, Names
//	beyond the host   none     IP addresses, localhost, Names
//	beyond the host   asked    any: a page without a token learns nothing
//	TLS               any      any: the certificate has the names
//	unix socket       any      any: no browser comes there
package guard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/firn-id/firn/server"
)

// A Guard checks requests. Its methods may be called from many goroutines at once.
type Guard struct {
	server *server.Server
	open   bool
	names  map[string]bool
	origin *http.CrossOriginProtection
}

// New returns a guard of a server. Names are what this server is called besides localhost.
// Open says that the handler behind the guard asks for no token,
// whether the server has tokens or not.
func New(srv *server.Server, names []string, open bool) *Guard {
	g := &Guard{server: srv, open: open, names: map[string]bool{}, origin: http.NewCrossOriginProtection()}
	for _, name := range names {
		g.names[plainName(name)] = true
	}
	return g
}

// A ForeignError says why a request is refused.
type ForeignError struct{ Text, Hint string }

func (e *ForeignError) Error() string { return e.Text }

// Check returns nil, or a *ForeignError. Links says that the route changes nothing, so that
// a page of another site may have a link to it: the page does not see what comes of it.
func (g *Guard) Check(r *http.Request, links bool) error {
	if err := g.page(r, links); err != nil {
		return err
	}
	return g.name(r)
}

// page refuses what a page of another origin has a browser send.
func (g *Guard) page(r *http.Request, links bool) error {
	if r.Header["Origin"] == nil && r.Header["Sec-Fetch-Site"] == nil {
		return nil // no browser, or one that comes by a name that it does not trust
	}
	if links && isLink(r) {
		return nil
	}
	// As a POST: the package takes it that a GET changes nothing.
	sent := http.Request{Method: http.MethodPost, Header: r.Header, Host: r.Host, URL: r.URL}
	if g.origin.Check(&sent) == nil {
		return nil
	}
	return &ForeignError{
		Text: "the browser sends the request for a page of another site",
		Hint: "type the address into the browser, or send the request from a program",
	}
}

// isLink reports whether a person has followed a link, which opens a page of its own.
func isLink(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header["Origin"] == nil &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// name refuses a request that came by a name that may be somebody else's.
func (g *Guard) name(r *http.Request) error {
	at := listenerOf(r)
	if r.TLS != nil || at == nil || !at.IP.IsLoopback() && !g.open && g.server.Guarded() || g.knows(r.Host) {
		return nil
	}
	return &ForeignError{
		Text: fmt.Sprintf("the request came by the name %.100q, which may be somebody else's", r.Host),
		Hint: "use localhost or the IP address; if the name is this server's own, add it to listen.names in firn.yaml",
	}
}

// knows reports whether nobody else can own the host of a request. Every browser sends
// one; programs that speak HTTP/1.0 need not.
func (g *Guard) knows(host string) bool {
	if host == "" {
		return true
	}
	host, ok := withoutPort(host)
	if !ok {
		return false
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		// 0.0.0.0 is this host, too, and browsers do not say there which page asks.
		return !ip.Unmap().WithZone("").IsUnspecified()
	}
	name := plainName(host)
	return name == "localhost" || g.names[name]
}

// withoutPort is a host without its port, if there is one; an IPv6 address in brackets.
func withoutPort(host string) (string, bool) {
	at := strings.LastIndexByte(host, ':')
	if at < 0 || strings.HasSuffix(host, "]") {
		return host, true
	}
	if _, err := strconv.ParseUint(host[at+1:], 10, 16); err != nil && host[at+1:] != "" {
		return "", false
	}
	return host[:at], !strings.Contains(host[:at], ":") || strings.HasPrefix(host, "[")
}

// plainName is a name as it is compared: in lower case, without the dot of the root.
func plainName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

type listenerKey struct{}

// Listening returns a context of the requests that come to a listener. A connection to a
// listener of all addresses may be one of the loopback interface, from a proxy beside
// the server; without the context it is taken for one that only this host can make.
func Listening(ctx context.Context, l net.Listener) context.Context {
	return context.WithValue(ctx, listenerKey{}, l.Addr())
}

// listenerOf is where a request came to; nil: not over TCP.
func listenerOf(r *http.Request) *net.TCPAddr {
	at := r.Context().Value(listenerKey{})
	if at == nil {
		at = r.Context().Value(http.LocalAddrContextKey)
	}
	tcp, _ := at.(*net.TCPAddr)
	return tcp
}
