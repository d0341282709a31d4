// Package firn makes 64-bit ids that are unique, ordered by time, and say which
// shard or worker made them.
//
// A [Layout] says how the bits of an id divide. It encodes and decodes ids, its
// own and other people's: start with [ParseLayout] or a preset such as
// [Twitter]. A [Source] gives ids. Most programs get theirs from package
// [github.com/firn-id/firn/lease], which leases a worker number from a store so
// that nobody else has it; a [Generator] is what issues ids underneath.
//
// A number is unique because the range it came from was written down in a
// store, as granted, before anything in it was issued. That needs no clock. It
// needs a store that never forgets a write it acknowledged.
//
// The package imports the standard library only.
package firn
