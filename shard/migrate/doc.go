// Package migrate runs an application's numbered SQL files on every logical shard.
//
// [ReadDir] reads the files, [Look] what each shard has had, [NewPlan] compares the
// two and refuses what does not fit, and [Plan.Run] does the rest: each file on each
// shard in a transaction of its own, together with the record that it was applied.
// What is broken off, by an error or by the end of the process, goes on where it was
// when it is run again.
//
// The record is in the shard's own schema, in the table firn_applied, so that it goes
// wherever the shard goes.
package migrate
