// Package move moves shards from one server to another while they are in use.
//
// The rows of the servers say who owns a shard. Only the functions of shard/install/owner.sql and
// shard/install/stream.sql change these rows, and each function refuses a mover that a later one has
// overtaken. A mover keeps nothing of its own: it looks at both servers, has a function of those
// facts say which step comes next, does the step, and looks again. So you may kill a mover at any
// instant, and run it again on any host.
//
// The shards that a [Mover] moves together are a batch: they share one publication, one slot and
// one subscription in each direction.
//
// # The protocol
//
// Server a has the shard, and server b is to get it. X stands for the name of the batch. These are
// the steps of a move, in order:
//
//	step              on    Go                SQL                                 it leaves                                     undone by
//	begin             a     begin             begin_move                          a higher term, a row in firn.move, firn_mark  end_move
//	claim             b     claim             claim                               the shard's row: moved to a; in firn.move     discard
//	load              b     load              begin_load end_load                 the schema, with fences and no rows           discard
//	publish           a     publish           publish                             publication firn_move_X                       drop_leftovers
//	makeSlot          a     makeSlot          pg_create_logical_replication_slot  slot firn_move_X                              drop_leftovers
//	subscribe         b     subscribe         subscribe                           subscription firn_move_X, which copies rows   unsubscribe
//	enable            b     enable            enable_subscription                 the subscription works, if it did not         unsubscribe
//	wait              b     wait              -                                   all rows, and each change that follows        discard
//	publishBack       b     publish           publish                             publication firn_back_X of all tables         drop_leftovers
//	guard             a     guard             guard                               triggers that refuse what a copy of a receives  drop_fences
//	subscribeBack     a     subscribe         subscribe                           subscription firn_back_X, disabled            drop_leftovers
//	emptyPublication  b     emptyPublication  empty_publication                   firn_back_X without tables                    drop_leftovers
//	makeSlotBack      b     makeSlot          pg_create_logical_replication_slot  slot firn_back_X                              drop_leftovers
//	enableBack        a     enable            enable_subscription                 the way back is open, and empty               drop_leftovers
//	cut               a, b  verifyAndCut      lock_tables take lock_tables let_go take  the shard on b                          revert
//	take              b     take              take                                the shard on b, if a mover died in cut        revert
//	recordOwner       a     recordOwner       record_owner                        a knows that b has it, if a was restored      -
//
// The step cut first compares all rows of both servers. Then it locks the copy on b (lock_tables, and
// take, which does nothing yet). Programs that come to b from then on wait in firn.enter until that transaction
// ends. In one transaction on a it locks the tables, fences them, ends
// the generators and writes into firn_mark that b gets the shard (lock_tables, let_go). That commit
// is the instant from which a does not have the shard. The mark comes to b behind all rows. When
// it is there, take opens the shard on b, in one transaction too. Between the two commits no server
// serves the shard, and whoever runs the move again opens it on b.
//
// To revert is begin, claim and cut in the other direction. To finish is end_move on b, which
// forgets the move, then unsubscribe and discard on a, which drop its copy, and then
// drop_leftovers on both, which drops publications and slots. To abort is begin and claim, so
// that no earlier mover goes on, and then the same with a and b exchanged.
//
// To pause a move is a comment on its subscription on b, for which each mover looks before it does a step; then begin, so
// that no mover that looked earlier lets a shard go; then ALTER SUBSCRIPTION DISABLE. To resume is the contrary. A
// shard that was let go is opened although its move is paused.
package move
