package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store/internal/advice"
)

// explain says which store err is about and, where it can be told, what is wrong.
// What is already an error of this package or its contract comes back as it is.
func (s *Store) explain(err error) error {
	if err == nil || advice.Done(err) {
		return err
	}
	// The server that was tried last, and the root.
	e := &advice.Error{Where: "zookeeper: " + s.conn.Server() + s.root, Advice: s.advice(err), Err: err}
	e.Away = e.Advice == noServer || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved) ||
		strings.Contains(err.Error(), codeNotReadOnly) || strings.Contains(err.Error(), codeThrottled)
	if e.Advice == noServer && s.why != nil {
		if why := s.why(); why != nil {
			e.Cause = fmt.Sprintf("%v: %v", err, why)
		}
	}
	return e
}

const noServer = "no server answers; is it running, and is the address right?"

// Codes for which the client has no error of its own: it says "unknown error".
const (
	codeNotReadOnly = "unknown error: -119"
	codeQuota       = "unknown error: -125"
	codeThrottled   = "unknown error: -127"
)

func (s *Store) advice(err error) string {
	switch {
	case errors.Is(err, zk.ErrNoServer), errors.Is(err, context.DeadlineExceeded) && s.conn.State() != zk.StateHasSession:
		return noServer
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time; is the server there, and does the ensemble have a quorum?"
	case errors.Is(err, context.Canceled):
		return "given up before there was an answer"
	case errors.Is(err, zk.ErrConnectionClosed):
		return "the connection was lost or closed, and with it the answer"
	case errors.Is(err, zk.ErrSessionExpired), errors.Is(err, zk.ErrSessionMoved):
		return "the session has ended; the next request begins another"
	case errors.Is(err, zk.ErrClosing):
		return "the connection was closed"
	case errors.Is(err, zk.ErrNoAuth):
		return "no permission; the ACL of the root must let this user create and read, and records must have been made by the same user"
	case errors.Is(err, zk.ErrAuthFailed):
		return "the server refuses the credentials"
	case errors.Is(err, zk.ErrInvalidACL):
		return "the server refuses the ACL; one for the connection's own user needs credentials"
	case errors.Is(err, zk.ErrInvalidPath):
		return "the root is no path"
	case strings.Contains(err.Error(), codeNotReadOnly):
		return "the server is read-only, because it has lost the quorum"
	case strings.Contains(err.Error(), codeQuota):
		return "the quota of a node is used up"
	case strings.Contains(err.Error(), codeThrottled):
		return "the server has too much to do"
	}
	return ""
}
