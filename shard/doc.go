// Package shard routes transactions to shards in PostgreSQL. A shard is one schema of a database;
// a cluster has thousands of them on a few servers, and an id says which shard it was made on.
//
// A program opens a [Cluster] with a pool for each server, and runs transactions with
// [Shard.InTx]: by the id of a row ([Cluster.ForID]), by a key such as a user's name
// ([Cluster.ForKey]), or on many shards ([Gather], [Feed]). A transaction begins with a check on
// the server, which refuses a shard that it does not own. So the program may be wrong about where
// a shard is: InTx then asks the servers, and runs the transaction where the shard is now.
//
// Package shard/setup makes a cluster, shard/migrate runs SQL files on its shards, shard/move and
// shard/rebalance move shards while they are in use, and shard/check says what is wrong.
// Package shard/topology has what these have in common: servers, what they say, and the map.
package shard
