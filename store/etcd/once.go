package etcd

import (
	"context"
	"errors"
	"math"
	"sync"

	"google.golang.org/grpc"
)

// receive lets a List be of any size.
var receive = grpc.MaxCallRecvMsgSize(math.MaxInt32)

var errAgain = errors.New("the client was about to send a write a second time")

// once lets a request be carried out once. The client sends a write again when a
// server or a proxy has ended it with "canceled" or "deadline exceeded": the first
// may have been carried out by then, and the second would be answered as a
// conflict. It also does so when its login has expired; that may be, as a member
// has refused the first.
//
// gRPC asks a call's credentials for what to add to it, each time it is about to
// be sent; refusing is how a call is stopped that is already on its way through
// the client. It tells the end of each call before anything around it does, which
// may have an error of its own.
type once struct {
	mu    sync.Mutex // guards the rest
	sent  bool
	ended error // how the last that was sent has ended; nil if it has not, or well
	again bool  // one more was stopped
}

func (o *once) options() []grpc.CallOption {
	return []grpc.CallOption{grpc.PerRPCCredentials(o), grpc.OnFinish(o.end)}
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (o *once) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sent && !refused(o.ended) {
		o.again = true
		return nil, errAgain
	}
	o.sent, o.ended = true, nil
	return nil, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (o *once) RequireTransportSecurity() bool { return false }

func (o *once) end(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sent && !o.again {
		o.ended = err
	}
}

// nothing says whether nothing was written, and nothing will be: it was never
// sent, or it was refused.
func (o *once) nothing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.sent || refused(o.ended)
}
