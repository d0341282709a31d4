package daemon

import (
	"fmt"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/whichstore"
)

// An outlet is a series that a server gives from.
type outlet struct {
	*config.Series
	advise   func(Problem) string
	hostname func() (string, error)
	forms    forms
}

// A Problem is an error that a running server logs, or answers with.
type Problem struct {
	Series *config.Series // nil: it is of none
	Store  string         // the URL of the store that it is about; "" where it is not about one
	Err    error
}

// hintOf is what can be done about an error of the series, in one line, or "".
func (d *outlet) hintOf(err error) string {
	return advice(d.advise, Problem{Series: d.Series, Err: err})
}

// advice is what can be done about a problem, in one line, or "".
func advice(advise func(Problem) string, p Problem) string {
	if advise == nil || p.Err == nil {
		return ""
	}
	return advise(p)
}

// withHint adds a hint to the attributes of a log line, if there is one.
func withHint(hint string, attrs ...any) []any {
	if hint == "" {
		return attrs
	}
	return append(attrs, "hint", hint)
}

// storeText is the URL of the stores of the series, without secrets.
func (d *outlet) storeText() string { return whichstore.Texts(d.Series) }

// source is the pool or the counter that the outlet is of, whatever store it is in.
func (d *outlet) source() string {
	if d.Kind == config.Flake {
		return "pool " + d.Leasing.Pool
	}
	return fmt.Sprintf("%s %s", d.Kind, d.Name)
}
