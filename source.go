package firn

import "context"

// A Source gives ids: a generator, a lease, a series, a client of a server.
// Code written against Source can move from one to another.
//
// Both methods may be called from many goroutines at once. They look at ctx
// only when they have to wait: a cancelled ctx still gets an id that is there.
type Source interface {
	// Next returns one id.
	Next(ctx context.Context) (ID, error)

	// Append appends n ids to dst. On an error it returns dst with those it got.
	Append(ctx context.Context, dst []ID, n int) ([]ID, error)
}
