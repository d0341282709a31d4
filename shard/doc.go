// Package shard is logical shards in PostgreSQL: ids made inside the database
// that name their shard.
//
// A database gives ids after the SQL of [WriteGenerator] and, for each shard in
// it, [WriteShard] was run there. No extension is needed, and no superuser.
package shard
