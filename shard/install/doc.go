// Package install writes the SQL that firn installs in a PostgreSQL database: functions that make
// ids, the tables that say which shards the database owns, and the functions by which shards move.
// It also takes the lock under which firn changes any of that.
//
// Package shard/setup installs all of it on the servers of a cluster. Use this package where you
// want the SQL of one shard, for a migration of your own.
package install
