package firn

import "context"

// A Source gives ids. A [Generator], a lease, a series and a client of a server are sources,
// so code that takes a Source works with each of them.
//
// Both methods are safe for concurrent use. They check ctx only when they have to wait: with
// a cancelled ctx they still return an id that needs no waiting.
type Source interface {
	// Next returns one id.
	Next(ctx context.Context) (ID, error)

	// Append appends n ids to dst. On an error it returns dst with those it got.
	Append(ctx context.Context, dst []ID, n int) ([]ID, error)
}
