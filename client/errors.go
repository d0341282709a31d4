package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// An Error is what a server answered instead of ids.
type Error struct {
	Server string // host:port
	Code   string // its first word, in capitals, such as NOPERM
	Text   string // the others: what is wrong, and what to do
}

func (e *Error) Error() string {
	return fmt.Sprintf("client: %s answers: %s %s", e.Server, e.Code, e.Text)
}

// An AnswerError says that what a server sent is not an answer of firn: it is
// another server, or something between changes what it says. Nothing of such an
// answer is handed out.
type AnswerError struct {
	Server string // host:port
	Reason string
}

func (e *AnswerError) Error() string { return fmt.Sprintf("client: %s: %s", e.Server, e.Reason) }

// Retryable is false; see firn.Retryable.
func (*AnswerError) Retryable() bool { return false }

// An OutageError says that no id is in hand, and that no server has given one for
// as long as a call waits. They come again by themselves.
type OutageError struct {
	Series string
	Wait   time.Duration // how long no server has answered, or the call has waited
	Err    error         // what came of the last request; nil while it is under way
}

func (e *OutageError) Error() string {
	text := fmt.Sprintf("client: no id of %s in hand, and no server has given one for %s", e.Series, e.Wait.Round(time.Millisecond))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Retryable is true; see firn.Retryable.
func (*OutageError) Retryable() bool { return true }

func (e *OutageError) Unwrap() error { return e.Err }

// again are the codes with which a server says that the same request may do better
// a moment later. Those of Redis are among them, as what is between may send them.
var again = []string{"TRYAGAIN", "BUSY", "LOADING", "MASTERDOWN", "CLUSTERDOWN"}

// full is what a server says that has as many connections as it may, without a code
// of its own.
const full = "max number of clients reached"

// Retryable reports whether the server said that the same request may do better a moment
// later; see [firn.Retryable].
func (e *Error) Retryable() bool {
	return slices.Contains(again, e.Code) || strings.HasPrefix(e.Text, full)
}

// alerted reports whether a server said over TLS why it will have nothing to do with
// this client. Package tls has no type for that outside of QUIC.
func alerted(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// A downError says that a server could not be asked, or did not answer.
type downError struct {
	server string
	err    error
}

func (e *downError) Error() string {
	// Those of package net begin with the address, and say more of it than a reader needs.
	return fmt.Sprintf("client: %s: %s", e.server, strings.TrimPrefix(e.err.Error(), "dial tcp "+e.server+": "))
}

func (e *downError) Unwrap() error { return e.err }

// Retryable is false where the server is not the one its certificate should name, wants a
// certificate, or does not speak TLS.
func (e *downError) Retryable() bool {
	var stranger *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	return !errors.As(e.err, &stranger) && !errors.As(e.err, &plain) && !alerted(e.err)
}
