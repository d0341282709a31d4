package etcd

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/store/internal/advice"
)

// A cause is an error of a member or of the way to it.
type cause struct {
	err     error  // as gRPC has it; or nil
	text    string // in the error, where err is nil
	refused bool   // a member says it of a write that it does not carry out
	advice  string
}

var causes = []cause{
	{rpctypes.ErrGRPCAuthFailed, "", true, "etcd refuses the user or the password"},
	{rpctypes.ErrGRPCUserEmpty, "", true, "etcd wants a user and a password, and none was given"},
	{rpctypes.ErrGRPCInvalidAuthToken, "", true, "etcd no longer knows this login; it is renewed with the next call"},
	{rpctypes.ErrGRPCAuthOldRevision, "", true, "the users of etcd have changed meanwhile; try again"},
	{rpctypes.ErrGRPCPermissionDenied, "", true, "this user may not do that; grant it read and write on the prefix"},
	// The write that finds the database full is carried out nevertheless.
	{rpctypes.ErrGRPCNoSpace, "", false, "etcd's database is full; compact and defragment it or raise --quota-backend-bytes, then etcdctl alarm disarm"},
	{rpctypes.ErrGRPCCorrupt, "", true, "etcd says that its data is corrupt: members differ; see etcdctl alarm list"},
	{rpctypes.ErrGRPCNotSupportedForLearner, "", true, "this member is a learner, which does not answer; name the others"},
	{rpctypes.ErrGRPCRequestTooLarge, "", true, "etcd takes only smaller requests; raise --max-request-bytes"},
	{rpctypes.ErrGRPCRequestTooManyRequests, "", true, "etcd is overloaded: it applies slower than it is asked"},
	{rpctypes.ErrGRPCNoLeader, "", false, noLeader},
	{rpctypes.ErrGRPCLeaderChanged, "", false, "the cluster has changed its leader meanwhile; try again"},
	{rpctypes.ErrGRPCTimeoutDueToLeaderFail, "", false, noLeader},
	{rpctypes.ErrGRPCTimeoutDueToConnectionLost, "", false, noLeader},
	{rpctypes.ErrGRPCTimeout, "", false, "etcd has not answered in time; has the cluster a leader, and is its disk fast enough?"},
	{rpctypes.ErrGRPCStopped, "", false, "this member is stopping"},
	{nil, "raft proposal dropped", false, "the cluster has changed its leader meanwhile; try again"},
	{nil, handshakeFailed, false, "there is no secure connection; see the certificates, and whether etcd speaks TLS at all"},
	{nil, "transport: Error while dialing", false, "etcd cannot be reached; is it running, and are these its addresses?"},
	{nil, errAgain.Error(), false, "the first answer was none; whether it was written is not known"},
	{nil, "grpc: the client connection is closing", false, "the client is closed"},
	{nil, noGreeting, false, "what listens there did not greet as etcd does: is this the address of another service? Or does etcd want TLS, or just start?"},
}

// Errors of the way to etcd that may last until somebody changes an address or a certificate.
const (
	handshakeFailed = "authentication handshake failed"
	noGreeting      = "error reading server preface"
)

const noLeader = "the cluster has no leader: too few of its members can reach each other"

// find returns the cause of an error.
func find(err error) (cause, bool) {
	st, ok := status.FromError(err)
	if !ok {
		return cause{}, false
	}
	for _, c := range causes {
		if c.err != nil && st.Message() == status.Convert(c.err).Message() || c.err == nil && strings.Contains(st.Message(), c.text) {
			return c, true
		}
	}
	return cause{}, false
}

// refused says whether err is that of a member that does not carry out a write,
// neither now nor later.
func refused(err error) bool {
	c, ok := find(err)
	return ok && c.refused
}

// explain says what is wrong and, where it can be told, what to do.
func (s *Store) explain(ctx context.Context, err error) error {
	text := ""
	c, known := find(err)
	switch code := status.Code(err); {
	case known:
		text = c.advice
	case ctx.Err() != nil && (code == codes.Canceled || code == codes.DeadlineExceeded):
		err = ctx.Err()
	}
	// A member, or the client, may know the deadline, and give up before it.
	if errors.Is(err, context.DeadlineExceeded) || !known && strings.Contains(status.Convert(err).Message(), context.DeadlineExceeded.Error()) {
		text = "etcd has not answered in time: is it overloaded? Or is this the address of another service?"
	}
	e := &advice.Error{Where: "etcd: " + s.name, Advice: text, Err: err}
	e.Away = status.Code(err) == codes.Unavailable && c.text != handshakeFailed && c.text != noGreeting
	if st, ok := status.FromError(err); ok {
		e.Cause = st.Message()
	}
	return e
}
