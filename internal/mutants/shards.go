package mutants

import "slices"

// shards are the mutants of the SQL of shards.
func shards() []Mutant { return slices.Concat(owners, reopening, streams, others) }
