package block

import "github.com/firn-id/firn/store"

// Doubt is the Version that is looked for after a write whose outcome is unknown.
func (s State) Doubt() (store.Version, bool) { return s.tried, s.doubt }
