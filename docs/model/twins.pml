/* Who a server is, as shard/install has it: firn.begin_reopen, firn.know and firn.check_incarnation.
 *
 * Server a has been lost, and two copies of it live: two standbys that were both promoted. They
 * have one system identifier and one timeline, and the rows of a. Its address leads now to one
 * of them and now to the other, at each statement anew. Server b lives, and has shard 1. Shard 0
 * was a's.
 *
 * An incarnation is 128 random bits, which are a number here: a had 1, and the copy i takes 2 + i
 * before it opens anything. b keeps the incarnation of a that it was told last, and refuses one
 * that does not come after it.
 *
 * OPERATORS reopen a, and MOVERS move shard 1 there, each once, at any moment and any speed.
 *
 * Not here: that an operator says that a copy is gone (--incomplete), and clusters of one server,
 * in which nobody knows another copy. Terms and attempts are those of move.pml.
 *
 * What must hold: never two servers that serve a shard (twice), and no shard on a copy that b does
 * not take for a (astray): the next reopening would open it a second time.
 */
#ifndef OPERATORS
#define OPERATORS 2
#endif
#ifndef MOVERS
#define MOVERS 1
#endif

typedef Copy {
	byte incarnation = 1;
	bool serves;                /* shard 0 */
	bool claimed, moved         /* shard 1: it is on its way here; it is served here */
};
Copy a[2];
byte known;                     /* to b, of a; 0: nothing */
bool b_serves = true;           /* shard 1 */
bool twice, astray;

/* KNOWS: b takes an incarnation for that of a. Each copy was 1 before. */
#ifdef MUT_KNOW                 /* b believes what it is told */
#define KNOWS(i) true
#else
#define KNOWS(i) (known == 0 || known == 1 || known == i)
#endif
#ifdef MUT_COPY                 /* a copy opens what comes without an incarnation of its own */
#define ITSELF(c) true
#else
#define ITSELF(c) (a[c].incarnation != 1)
#endif
#ifdef MUT_SEEN                 /* only system and timeline are compared, which both copies have */
#define SEEN(c, i) true
#else
#define SEEN(c, i) (a[c].incarnation == i)
#endif

inline look() {
	twice = (a[0].serves && a[1].serves) || (a[0].moved && a[1].moved) || (b_serves && (a[0].moved || a[1].moved));
	assert(!twice);
	astray = (a[0].moved && known != a[0].incarnation) || (a[1].moved && known != a[1].incarnation);
	assert(!astray)
}

inline address() { if :: c = 0 :: c = 1 fi }
/* tell: b is told an incarnation, or refuses it (firn.know). */
inline tell() { if :: KNOWS(i) -> known = i; look() :: else -> goto end fi }

/* firn shard reopen a. Its statements name the incarnation that it has seen, or that was taken. */
proctype Operator() {
	byte c, i;
	atomic { address(); i = a[c].incarnation; if :: KNOWS(i) || known == 0 :: else -> goto end fi }
	atomic {                                        /* begin_reopen */
		address();
		if
		:: a[c].incarnation == i -> if :: i == 1 -> a[c].incarnation = 2 + c :: else fi; i = a[c].incarnation
		:: else -> goto end
		fi
	}
	atomic { tell() }
	atomic {                                        /* reopen */
		address();
		if :: SEEN(c, i) -> a[c].serves = true; look() :: else fi
	}
end:	skip
}

/* firn shard move 1 --to a. */
proctype Mover() {
	byte c, i;
	atomic { address(); i = a[c].incarnation }
	atomic { tell() }
	atomic { address(); if :: ITSELF(c) && SEEN(c, i) -> a[c].claimed = true :: else -> goto end fi }
	atomic { b_serves = false }                     /* let_go: the mark comes to who has claimed it */
	atomic { address(); if :: a[c].claimed -> a[c].moved = true; look() :: else fi }
end:	skip
}

init {
	byte n;
	atomic {
		for (n : 1 .. OPERATORS) { run Operator() }
		for (n : 1 .. MOVERS) { run Mover() }
	}
}
