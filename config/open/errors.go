package open

import (
	"github.com/firn-id/firn/internal/cause"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/leaseoptions"
	"github.com/firn-id/firn/internal/whichstore"
)

// A DefaultStoreError says why there is no store where none is named.
type DefaultStoreError = whichstore.DefaultStoreError

// A PlacedError is the error of one of the stores of a series that has several. It has the URL.
type PlacedError = whichstore.PlacedError

// A LostPoolError says that the store has records of workers of a pool that it does not have:
// the pool was lost. It is a [*lease.MissingPoolError] too.
type LostPoolError = cause.LostPoolError

// A RangeError says that a pool has other workers than the settings say.
type RangeError = leaseoptions.RangeError

// A HostNameError says that the host's name has no number for a worker.
type HostNameError = leaseoptions.HostNameError

// A HostError says that the host's name asks for a worker that the pool does not have. It is a
// [*lease.WorkerError] too.
type HostError = leaseoptions.HostError

// A KindError says that the store has a counter of another kind, or a sequence that is spread over
// several stores where the series is in one, or the other way round.
type KindError = countername.KindError

// A NearNameError says that a counter is not created in a file, because the file has a counter
// of nearly that name, which firn.yaml does not list.
type NearNameError = countername.NearNameError
