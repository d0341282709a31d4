package open

import "github.com/firn-id/firn/internal/whichstore"

// A DefaultStoreError says why there is no store where none is named.
type DefaultStoreError = whichstore.DefaultStoreError

// A PlacedError is the error of one of the stores of a series that has several. It has the URL.
type PlacedError = whichstore.PlacedError
