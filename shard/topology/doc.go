// Package topology says which servers a cluster of shards has, and which shard is on which server.
//
// A [Server] is the address of one database, as the packages beside this one take it. [Look] asks a
// server what it knows: its [View] has a [Row] for each shard. [NewMap] makes a [Map] of the views of
// all servers. A program that routes by [shard.Open] needs none of this: its Cluster looks and maps
// by itself. A router in another process or language reads the map as JSON.
//
// [Keys] say which shard a key belongs to.
//
// [shard.Open]: https://pkg.go.dev/github.com/firn-id/firn/shard#Open
package topology
