// Package migrate runs an application's numbered SQL files on every logical shard.
//
// [ReadDir] reads the files, [Look] reads which of them each shard has, [NewPlan] compares
// the two and refuses a file that does not fit, and [Plan.Run] runs each file on each
// shard in a transaction of its own, together with the record that the shard has it.
// You can interrupt it and run it again: it resumes. While it runs, hold the lock of
// package shard/install.
//
// The record is in the shard's own schema, in the table firn_applied, so that it goes
// wherever the shard goes.
package migrate
