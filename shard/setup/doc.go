// Package setup makes clusters of shards: a new one, one more server, one less, and shards out of
// schemas that made ids before firn. It also lets a server serve again that was promoted, restored
// or copied.
//
// [Open] looks at all servers and locks them. A method of [Servers] then plans what is to be done,
// from what Open has seen, and the plan's Run does it. You can interrupt Run and start over: the
// next plan has what is left. [LookReopen] and [Reopening.Run] do the same for one server.
package setup
