package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/firn-id/firn/server"
)

// A problem is a failure as RFC 9457 writes it. Its type is a place in the OpenAPI
// document, where the title is explained.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Hint   string `json:"hint,omitempty"` // what to do about it

	kind  kind
	allow string // of a method that is not allowed
}

// A kind is a sort of problem: its place in the document.
type kind struct {
	name   string
	status int
	title  string
	retry  string // Retry-After, in seconds: the same request may succeed later
}

// The kinds. The document has an entry for each, under x-problems.
var (
	badRequest    = kind{"bad-request", http.StatusBadRequest, "The request is not right", ""}
	overLimit     = kind{"over-limit", http.StatusBadRequest, "More than one request may ask for", ""}
	noToken       = kind{"no-token", http.StatusUnauthorized, "A token is needed", ""}
	wrongToken    = kind{"wrong-token", http.StatusUnauthorized, "The token is not known", ""}
	denied        = kind{"denied", http.StatusForbidden, "The token has no right to that", ""}
	crossOrigin   = kind{"cross-origin", http.StatusForbidden, "Pages of other sites may not draw ids", ""}
	noRoute       = kind{"no-route", http.StatusNotFound, "There is nothing here", ""}
	noSeries      = kind{"no-series", http.StatusNotFound, "There is no such series", ""}
	notAllowed    = kind{"method-not-allowed", http.StatusMethodNotAllowed, "The method is not for this path", ""}
	notAcceptable = kind{"not-acceptable", http.StatusNotAcceptable, "The answer has no such form", ""}
	noRange       = kind{"no-range", http.StatusConflict, "The series gives no ranges", ""}
	noNumber      = kind{"no-number", http.StatusConflict, "The series does not answer with numbers", ""}
	unreadable    = kind{"unreadable", http.StatusUnprocessableEntity, "The text makes no sense as an id", ""}
	stopped       = kind{"stopped", http.StatusInternalServerError, "The series cannot issue", ""}
	unavailable   = kind{"unavailable", http.StatusServiceUnavailable, "No ids at the moment", "1"}
	notReady      = kind{"not-ready", http.StatusServiceUnavailable, "Not ready", "1"}
)

func (k kind) problem(format string, args ...any) *problem {
	return &problem{
		Type: problemBase + k.name, Title: k.title, Status: k.status,
		Detail: fmt.Sprintf(format, args...), kind: k,
	}
}
