// Package move moves shards from one server to another while they are in use.
//
// Who owns a shard is said by the rows of the servers, and changed by the functions of
// shard/owner.sql and stream.sql only, each of which is refused to a mover that a later one has
// overtaken. A mover keeps nothing of its own: it looks at both servers ([facts]), has a
// function of those facts say what comes next ([next]), does that, and looks again. So
// it may be killed at any instant, and run again anywhere.
//
// What a [Mover] moves together is a batch: it shares one publication, one slot and one
// subscription in each direction.
package move
