package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/internal/guard"
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
	if err != nil && !a.server.Guarded() {
		return nil, problemOf(err).hint("this server has no tokens: leave out the token")
	}
	if err != nil {
		return nil, problemOf(err)
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
		return problemOf(err)
	}
	return nil
}

// guarded refuses what a browser sends for somebody else.
func (a *api) guarded(r *http.Request, to *route) *problem {
	err := a.guard.Check(r, !to.draws)
	var foreign *guard.ForeignError
	if !errors.As(err, &foreign) {
		return nil
	}
	p := crossOrigin.problem("%s", foreign.Text).hint("%s", foreign.Hint)
	p.tinyid = to.tinyid
	return p
}
