package open

import "github.com/firn-id/firn/store"

// Unwrap returns the adapter's store, for what not every store can do: see
// [store.AsUpdater].
func (s *Store) Unwrap() store.Store   { return s.Store }
func (b *bounded) Unwrap() store.Store { return b.Store }
func (v *vouched) Unwrap() store.Store { return v.Store }
