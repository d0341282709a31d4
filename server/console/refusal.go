package console

import (
	"errors"
	"net/http"

	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/internal/guard"
)

// A refusal is why there is no answer.
type refusal struct {
	status int
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"` // what to do about it
}

// refuse says what an error of a session means for a person.
func refuse(err error) *refusal {
	r := &refusal{status: http.StatusUnprocessableEntity, Detail: reason(err), Hint: server.Hint(err)}
	var foreign *guard.ForeignError
	switch {
	case errors.As(err, &foreign):
		r.status, r.Hint = http.StatusForbidden, foreign.Hint
	case errors.Is(err, server.ErrNoToken), errors.Is(err, server.ErrToken):
		r.status = http.StatusUnauthorized
	case errors.Is(err, server.ErrDenied):
		r.status = http.StatusForbidden
	}
	return r
}

func (r *refusal) write(w http.ResponseWriter) { send(w, r.status, r) }

// reason is an error with its cause. Whoever sees it has the right admin.
func reason(err error) string {
	if err == nil {
		return ""
	}
	return server.Details(err)
}
