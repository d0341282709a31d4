package httpapi

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/firn-id/firn/server"
)

// enter returns the session of the token that a request brings.
func (a *api) enter(r *http.Request) (*server.Session, *problem) {
	header := r.Header["Authorization"]
	if len(header) == 0 {
		return a.anybody, nil
	}
	scheme, token, _ := strings.Cut(header[0], " ")
	token = strings.TrimSpace(token)
	if len(header) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, wrongToken.problem("the header Authorization is not of the form Bearer TOKEN").hint("Authorization: Bearer TOKEN")
	}
	return a.enterWith(token)
}

// enterWith returns the session of a token.
func (a *api) enterWith(token string) (*server.Session, *problem) {
	if token == "" {
		return a.anybody, nil
	}
	session, err := a.server.Enter(token)
	if err != nil {
		return nil, explain(err)
	}
	return session, nil
}

// admin lets those pass who may see everything.
func (a *api) admin(r *http.Request) *problem {
	if a.open {
		return nil
	}
	session, p := a.enter(r)
	if p != nil {
		return p
	}
	if err := session.Can("*", server.Admin); err != nil {
		return explain(err)
	}
	return nil
}

// fromElsewhere refuses what a page of another site has a browser send: a server on
// the loopback interface has no other guard against it.
func (a *api) fromElsewhere(r *http.Request) *problem {
	if r.Header["Origin"] == nil && r.Header["Sec-Fetch-Site"] == nil {
		return nil // no browser
	}
	sent := http.Request{Method: http.MethodPost, Header: r.Header, Host: r.Host, URL: r.URL}
	if err := a.origin.Check(&sent); err != nil {
		return crossOrigin.problem("the request comes from a page of another origin")
	}
	if a.misnamed(r) {
		return crossOrigin.problem("a browser came to the loopback interface by the name %.100q", r.Host).
			hint("use localhost or the address; or give the server tokens")
	}
	return nil
}

// misnamed reports whether a browser may have been led here by a name whose owner has
// it stand for the loopback interface: pages of that name are of the same origin then.
// Nothing else guards a server without tokens; with TLS the certificate does.
func (a *api) misnamed(r *http.Request) bool {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if at == nil || !at.IP.IsLoopback() || r.TLS != nil || a.server.Guarded() {
		return false
	}
	name := (&url.URL{Host: r.Host}).Hostname()
	return net.ParseIP(name) == nil && name != "localhost" && !strings.HasSuffix(name, ".localhost")
}
