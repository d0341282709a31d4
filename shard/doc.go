// Package shard is logical shards in PostgreSQL: ids made inside the database
// that name their shard, and transactions that find it.
//
// A database gives ids after the SQL of [WriteGenerator] and, for each shard in
// it, [WriteShard] was run there. No extension is needed, and no superuser.
//
// What the servers say of their shards is a [View] each; a [Map] is made of those. A
// program opens a [Cluster], which keeps one, and runs transactions on a [Shard] with
// [Shard.InTx], wherever it is and when it moves. [Gather] asks many shards, and [Feed]
// merges what they have by id.
package shard
