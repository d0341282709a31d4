// Package firn makes 64-bit ids that are unique, ordered by time, and say which
// shard or worker made them.
//
// A [Layout] says how the bits of an id divide. It encodes and decodes ids, those of firn and
// those of other systems: start with [Default], with [ParseLayout], or with the name of a
// layout of another system, [MustLayout]("twitter").
//
// A [Source] gives ids. Most programs get theirs from package
// [github.com/firn-id/firn/lease], which leases a worker number from a store, so that no other
// process has the same number at the same time.
//
// [Generator] and [Grant] are what a lease is made of. A program needs them only if it writes
// down itself which ticks of which worker it may use.
//
// An id is unique because somebody wrote the range it comes from into a store, as granted,
// before the first id of the range was issued. That needs no clock. It needs a store that
// never loses a write that it acknowledged.
package firn
