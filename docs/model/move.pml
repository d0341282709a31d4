/* A shard moves from one server to another, and perhaps back, as shard/move has it.
 *
 * Two servers, each with its row for the shard (firn.shard), with a row that names the
 * batch (firn.move), with a copy of the shard's data and the mark in it, with a fence and
 * a generator. A stream in each direction: publication and slot here, subscription there.
 *
 * A mover has no memory. It looks at both servers at one moment, decides on one statement,
 * and that is carried out at any later moment, or never. So a mover that pauses, dies, is
 * started again elsewhere, is one of several or wakes when all is over, a server that
 * restarts, and an acknowledgement that is lost are all the same: statements are under
 * way, MOVERS at once. A statement checks what its step says here, under the lock of the
 * row, and nothing else. Streams are made where firn.move has a row of their batch, and
 * dropped by the batch's name.
 *
 * A stream delivers at any moment what was committed while the tables were published. To a
 * subscription that does not know the tables it is lost. A writer looks at the row
 * (firn.enter), and writes at any later moment, if there is no fence.
 *
 *	FAIL=n   server n fails once, and comes back as it was at an earlier moment: a standby
 *	         that lagged, or a backup. What it had sent may still arrive. Operators reopen.
 *	PAUSE    an operator pauses a move once, and resumes it later, as shard/move/paused.go does:
 *	         a comment on the subscription, begin, then the subscription is disabled. A mover
 *	         sees the comment when it looks, except before begin: there it may have looked at
 *	         the target earlier than at the source.
 *
 * The steps are the functions of shard/install/owner.sql and shard/install/stream.sql: begin is
 * firn.begin_move, back and subscribe are firn.subscribe, start is firn.cancel_cutover, dismiss is
 * firn.end_move, leave is firn.discard, drop is firn.unsubscribe and firn.drop_leftovers; the others
 * have their names. Operators plan as shard/setup/reopen.go does.
 *
 * Not here: more servers or shards than these, several failures, servers that are named as
 * gone, schemas that differ, sequences of the application, locks and waiting. An owner that
 * fails lags less than the move: what no server has any more nothing can bring back. A
 * target that is lost after the other server was claimed for the way back, or revoked for
 * it, leaves a shard that is opened as it is (reopen --incomplete), and by no step here.
 *
 * What must hold: never two servers that take writes (owners); who opens has all that was
 * acknowledged (lost); an id is above all before it, wherever it is drawn (repeated); as long
 * as nobody is open some step leads on (stuck); and a shard is not let go between the answer to
 * pause and resume (despite).
 */
#ifndef MOVERS
#define MOVERS 2         /* or 1 */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 3       /* of movers and operators together, at most 3 */
#endif
#ifndef WRITES
#define WRITES 2
#endif
#ifndef IDS
#define IDS 2
#endif
#define NONE 9           /* no server */

mtype = { none, open, moved };
mtype = { begin, claim, load, subscribe, back, let_go, start, take, dismiss, leave, drop };

typedef Mark { byte term; byte attempt; byte to = NONE; byte floor };
typedef Server {
	mtype state = none; byte term; byte attempt; byte to = NONE;   /* the row of firn.shard */
	bool here;                  /* and it was written on this server, not on one that this is a copy of */
	byte batch;                 /* in the row of firn.move; 0: there is none */
	byte loaded;                /* the batch that loaded the schema; 0: there is none */
	byte has; Mark mark;        /* the copy: writes, and the mark */
	bool fence;
	bool draws; byte counter;   /* the generator */
	bool entered                /* a writer has looked at the row, and found it open */
};
typedef Stream {                /* from the server of its number to the other */
	byte batch;                 /* of slot and subscription; 0: there are none */
	bool cut;                   /* the slot has gone with its server */
	byte published;             /* the batch in whose publication the tables are */
	bool knows;                 /* the subscription knows them */
	byte sent; bool marked; Mark mark   /* what is on the way */
};

Server at[2];
Stream from[2];
int under_way[MOVERS];          /* statements, in order; 0: there is none */
byte attempts, written, acknowledged, drawn, highest;
byte since;                     /* the term at which the server that fails was opened last */
bool forgiven;                  /* a server that failed took writes with it */
bool owners, lost, repeated, stuck, despite;

#define max(a, b) (a > b -> a : b)
#define OPEN(s) (at[s].state == open && at[s].here)
#define NOW(s, t, k) (at[s].term == t && at[s].attempt == k)
/* BATCH_OF, BEGUN_ON: the batch that an attempt begins on a server; that server. */
#define BATCH_OF(k, s) (2 * (k) + s)
#define BEGUN_ON(b) (b % 2)
/* SAID: the row of s says that the shard was let go to a server (firn.given_to). */
#define SAID(s, whom) (at[s].state == moved && at[s].mark.to == whom && NOW(s, at[s].mark.term, at[s].mark.attempt))

/* The rules, and what each is without. */
#ifdef MUT_TERM           /* servers do not compare terms and attempts */
#define NEWER(s, t) true
#define SAME(s, t, k) true
#else
#define NEWER(s, t) (at[s].term < t)
#define SAME(s, t, k) NOW(s, t, k)   /* the attempt too: servers that fail can have two of one term */
#endif
#ifdef MUT_ANYMARK        /* any mark that names this server will do: those of earlier moves are there, too */
byte named[2];
#define WORD(s) ((named[s] & (1 << s)) != 0)
#define names(s, which) named[s] = which
#else
#define names(s, which) skip
#ifdef MUT_NOWORD         /* the target opens because the source says moved, not by the mark in its own copy */
#define WORD(s) (at[1 - s].state == moved && at[1 - s].to == s)
#else
#define WORD(s) SAID(s, s)
#endif
#endif
#ifdef MUT_BATCH          /* nobody looks at firn.move: abort and finish only drop what there is */
#define BATCH(s, b) true
#else
#define BATCH(s, b) (at[s].batch == b)
#endif
#ifdef MUT_SUBSCRIBE      /* a subscription is made by its name, whatever the rows say */
#define COPIES(s, b) true
#else
#define COPIES(s, b) (!OPEN(s) && HERE(s) && BATCH(s, b))
#endif
#ifdef MUT_COPYOFCOPY     /* a target that was promoted or restored is gone on with */
#define HERE(s) true
#else
#define HERE(s) at[s].here
#endif

#ifdef PAUSE
bool comment[2], disabled[2];   /* of the subscription of the stream from this server */
bool said[2];                   /* pause has answered that the move from this server is paused */
#define FOLLOWS(s) (!disabled[s])
#define new_subscription(s) comment[s] = false; disabled[s] = false
#define ended(s) said[s] = false
#ifdef MUT_LOOKONCE       /* a mover does not look for the comment again after begin */
#define PAUSED(s) false
#else
#define PAUSED(s) (comment[s])
#endif
#else
#define FOLLOWS(s) true
#define new_subscription(s) skip
#define ended(s) skip
#define PAUSED(s) false
#endif

#define copy_mark(m, n) m.term = n.term; m.attempt = n.attempt; m.to = n.to; m.floor = n.floor
#define no_mark(m) m.term = 0; m.attempt = 0; m.to = NONE; m.floor = 0
#define nothing_sent(f) f.sent = 0; f.marked = false; no_mark(f.mark)

/* opens: the row says open, the generator starts above a floor, the fence goes. */
inline opens(s, t, floor_) {
	at[s].state = open; at[s].term = t; at[s].attempt = 0; at[s].to = NONE; at[s].here = true;
	at[s].fence = false; at[s].draws = true;
#ifndef MUT_FLOOR         /* the generator starts above its own state only */
	at[s].counter = max(at[s].counter, floor_);
#endif
	printf("%d is open at term %d\n", s, t);
#ifdef FAIL
	if :: s == FAIL -> since = t :: else fi;
#endif
	owners = OPEN(1 - s);
	assert(!owners);
	if
	:: forgiven -> acknowledged = acknowledged & at[s].has; forgiven = false
	:: else -> lost = (at[s].has & acknowledged) != acknowledged
	fi;
	assert(!lost)
}

/* wipe: s has no schema of the shard any more. Publications and subscriptions lose it too. */
inline wipe(s) {
	at[s].loaded = 0; at[s].has = 0; no_mark(at[s].mark); names(s, 0); at[s].draws = false; at[s].counter = 0; at[s].fence = false;
	from[1 - s].knows = false; from[s].published = 0
}

proctype Writers() {
	byte s;
	do
	:: atomic {
		select(s : 0 .. 1);
		if
		:: OPEN(s) && !at[s].entered && written < WRITES -> at[s].entered = true
		:: at[s].entered -> at[s].entered = false;
			if
			:: !at[s].fence && at[s].loaded != 0 && written < WRITES ->
				at[s].has = at[s].has | (1 << written); acknowledged = acknowledged | (1 << written);
				if :: from[s].batch != 0 && from[s].batch == from[s].published && !from[s].cut -> from[s].sent = from[s].sent | (1 << written) :: else fi;
				written++;
				printf("write %d on server %d\n", written, s)
			:: else
			fi
		:: at[s].draws && at[s].here && drawn < IDS ->
			drawn++; at[s].counter++;
			repeated = at[s].counter <= highest;
			assert(!repeated);
			highest = at[s].counter
		:: else
		fi;
		s = 0
	}
	od
}

proctype Network() {
	byte s;
	do
	:: atomic {
		select(s : 0 .. 1);
		if
		:: from[s].batch != 0 && FOLLOWS(s) && (from[s].sent != 0 || from[s].marked) ->
			if
			:: from[s].knows ->
				at[1 - s].has = at[1 - s].has | from[s].sent;
				if
				:: from[s].marked -> names(1 - s, named[1 - s] | (1 << from[s].mark.to)); copy_mark(at[1 - s].mark, from[s].mark); printf("the mark of server %d arrives\n", s)
				:: else
				fi
			:: else
			fi;
			nothing_sent(from[s])
		:: else
		fi;
		s = 0
	}
	od
}

/* What a mover sees. CLAIMED: x waits to be filled, and opened, by the attempt that s is at. */
#define CLAIMED(s, x) (at[x].batch != 0 && at[x].state == moved && at[x].to == s && at[x].batch == at[s].batch && NOW(x, at[s].term, at[s].attempt))
#define STREAM(s, b) (from[s].batch == b && from[s].knows && !from[s].cut)

/* A statement: what is to be done on a server, and the term, attempt and batch that it names. */
#define send(what, s, t, k, b) under_way[0] = (((what * 2 + s) * 16 + t) * 8 + k) * 16 + b
#define unpack(c) what = c / 4096; s = c / 2048 % 2; t = c / 128 % 16; k = c / 16 % 8; b = c % 16; x = 1 - s
#define in_order if :: under_way[0] > under_way[MOVERS - 1] -> c = under_way[0]; under_way[0] = under_way[MOVERS - 1]; under_way[MOVERS - 1] = c :: else fi
#define done in_order; what = 0; s = 0; x = 0; t = 0; k = 0; b = 0; c = 0

/* decide: one of the statements that a mover may send that sees the shard on s. */
inline decide() {
	t = at[s].term; k = at[s].attempt; b = at[s].batch;
	if
	/* A first move, a takeover of what another mover began, or the way back. */
	:: OPEN(s) && attempts < ATTEMPTS -> attempts++; t = max(t, at[x].term) + 1; send(begin, s, t, attempts, b)
	:: OPEN(s) && k != 0 && !CLAIMED(s, x) && !PAUSED(s) -> send(claim, x, t, k, b)
	:: OPEN(s) && CLAIMED(s, x) && !PAUSED(s) ->
		if
		:: at[x].loaded != b -> send(load, x, t, k, b)
		:: at[x].loaded == b && from[s].batch != b -> send(subscribe, x, t, k, b)
		:: at[x].loaded == b && STREAM(s, b) && from[x].batch != b -> send(back, s, t, k, b)
		:: at[x].loaded == b && STREAM(s, b) && STREAM(x, b) -> send(let_go, s, t, k, b)
		:: else
		fi
	:: OPEN(s) && !at[s].draws -> send(start, s, t, k, b)
	:: at[x].state != open && at[x].batch != 0 -> t = at[x].term; k = at[x].attempt; send(take, x, t, k, 0)
	/* Abort or finish. */
	:: OPEN(s) && b != 0 -> send(dismiss, s, t, k, b)
#ifdef MUT_BATCH
	:: OPEN(s) && at[x].state == moved -> t = at[x].term; k = at[x].attempt; b = at[x].batch; send(leave, x, t, k, b)
	:: OPEN(s) && from[s].batch != 0 -> b = from[s].batch; send(drop, s, 0, 0, b)
	:: OPEN(s) && from[x].batch != 0 -> b = from[x].batch; send(drop, x, 0, 0, b)
#else
	:: OPEN(s) && at[x].batch != 0 && at[x].batch != b -> t = at[x].term; k = at[x].attempt; b = at[x].batch; send(leave, x, t, k, b)
	:: OPEN(s) && from[s].batch != 0 && from[s].batch != b -> b = from[s].batch; send(drop, s, 0, 0, b)
	:: OPEN(s) && from[x].batch != 0 && from[x].batch != b -> b = from[x].batch; send(drop, x, 0, 0, b)
#endif
	:: else
	fi
}

/* carry_out: a statement arrives at s, and does what it says, or is refused. */
inline carry_out() {
	if
	:: what == begin && OPEN(s) && NEWER(s, t) && BATCH(s, b) ->
		at[s].term = t; at[s].attempt = k; at[s].draws = true;
		if :: at[s].batch == 0 -> at[s].batch = BATCH_OF(k, s); at[s].loaded = at[s].batch; from[s].published = at[s].batch :: else fi;
		printf("server %d: begin at term %d, attempt %d, batch %d\n", s, t, k, at[s].batch)

	:: what == claim && !OPEN(s) && HERE(s) && NEWER(s, t) && (at[s].batch == b || at[s].batch == 0 && BEGUN_ON(b) != s) ->
#ifndef MUT_OLDCOPY       /* what is there is taken for a copy of a batch that has no row here any more */
		if :: at[s].batch == 0 -> at[s].loaded = 0 :: else fi;
#endif
		at[s].state = moved; at[s].to = x; at[s].term = t; at[s].attempt = k; at[s].batch = b; at[s].here = true;
		printf("server %d: claimed at term %d, attempt %d, batch %d\n", s, t, k, b)

	:: what == load && !OPEN(s) && HERE(s) && SAME(s, t, k) && BATCH(s, b) && at[s].loaded != b ->
		wipe(s); at[s].loaded = b; at[s].fence = true;
		printf("server %d: schema loaded\n", s)

	:: what == subscribe && from[x].batch != b && COPIES(s, b) && at[s].loaded == b ->
		from[x].batch = b; from[x].cut = false; nothing_sent(from[x]); new_subscription(x);
		from[x].knows = (from[x].published == b);
		if :: from[x].knows -> at[s].has = at[x].has; copy_mark(at[s].mark, at[x].mark); names(s, named[x]) :: else fi;
		printf("server %d: subscribed to %d, copied\n", s, x)

	/* The subscription knows the tables; they are not published yet. */
	:: what == back && from[x].batch != b && BATCH(s, b) && at[x].batch == b ->
		from[x].batch = b; from[x].cut = false; nothing_sent(from[x]); new_subscription(x);
		from[x].knows = true;
		printf("server %d: subscribed to %d, for the way back\n", s, x)

	/* The commit point. A sequence is not rolled back. */
	:: what == let_go && OPEN(s) && SAME(s, t, k) && BATCH(s, b) && from[s].published == b ->
		at[s].draws = false;
		if
		:: true ->
			printf("server %d: lets go at term %d, attempt %d\n", s, t, k);
#ifdef PAUSE
			despite = said[s];
			assert(!despite);
#endif
			at[s].fence = true; at[s].state = moved; at[s].to = x;
			at[s].mark.term = t; at[s].mark.attempt = k; at[s].mark.to = x; at[s].mark.floor = at[s].counter; names(s, named[s] | (1 << x));
			if :: from[s].batch == b && !from[s].cut -> from[s].marked = true; copy_mark(from[s].mark, at[s].mark) :: else fi;
			from[s].published = 0
		:: true                                                   /* rolled back */
		fi

	/* After a let_go that was rolled back. */
	:: what == start && OPEN(s) && SAME(s, t, k) -> at[s].draws = true

	:: what == take && !OPEN(s) && HERE(s) && SAME(s, t, k) && WORD(s) && at[s].batch != 0 && at[s].loaded != 0 ->
		from[s].published = at[s].batch;
		opens(s, t + 1, at[s].mark.floor)

	/* Abort and finish begin with this, on the owner. */
	:: what == dismiss && OPEN(s) && SAME(s, t, k) && BATCH(s, b) ->
		at[s].batch = 0; no_mark(at[s].mark); names(s, 0); from[s].published = 0; ended(s);
		printf("server %d: forgets batch %d\n", s, b)

	/* The copy that is not needed goes. */
	:: what == leave && at[s].state == moved && HERE(s) && SAME(s, t, k) && BATCH(s, b) ->
		at[s].batch = 0; wipe(s);
		printf("server %d: drops its copy\n", s)

	/* Slot and subscription, by their name. */
	:: what == drop && from[s].batch == b ->
		from[s].batch = 0; from[s].cut = false; from[s].knows = false; nothing_sent(from[s]); new_subscription(s);
		printf("stream from server %d: dropped\n", s)

	:: else
	fi
}

proctype Movers() {
	byte what, s, x, t, k, b;     /* of a statement: server, the other one, term, attempt, batch */
	int c;
	do
	:: atomic { under_way[0] == 0 -> select(s : 0 .. 1); x = 1 - s; decide(); done }
	:: atomic { under_way[MOVERS - 1] != 0 ->
		if
		:: under_way[0] != 0 -> c = under_way[0]; under_way[0] = 0
		:: c = under_way[MOVERS - 1]; under_way[MOVERS - 1] = 0
		fi;
		unpack(c); carry_out(); done
	}
	od
}

#ifdef PAUSE
/* firn shard pause of the move from s, then firn shard resume. Each step is one statement. */
#define COPIED(s, b) (from[s].batch == b)
#define begin_pause(then) \
	if \
	:: OPEN(s) && NEWER(s, t) && BATCH(s, b) -> at[s].term = t; at[s].attempt = k; at[s].draws = true; then \
	:: else -> if :: COPIED(s, b) -> comment[s] = false :: else fi; goto over \
	fi
#define disable if :: COPIED(s, b) -> disabled[s] = true :: else goto over fi
proctype Pausing() {
	byte s, t, k, b;
	atomic {
		if
		:: s = 0
		:: s = 1
		fi;
		OPEN(s) && at[s].batch != 0 && COPIED(s, at[s].batch) && attempts < ATTEMPTS ->
		attempts++; k = attempts; t = max(at[s].term, at[1 - s].term) + 1; b = at[s].batch
	}
	atomic { if :: COPIED(s, b) -> comment[s] = true; printf("pause: comment\n") :: else -> goto over fi }
#ifdef MUT_DISABLEFIRST   /* the subscription is disabled before begin has refused the movers that looked earlier */
	atomic { disable }
	atomic { begin_pause(said[s] = true) }
#else
#ifdef MUT_COMMENTONLY    /* no begin: only movers that look later stop */
	atomic { disable; said[s] = OPEN(s) && BATCH(s, b) }
#else
	atomic { begin_pause(skip) }
	atomic { disable; said[s] = BATCH(s, b); printf("pause: the move from server %d is paused\n", s) }
#endif
#endif
	atomic {
		said[s] = false;
		if :: COPIED(s, b) -> disabled[s] = false; comment[s] = false; printf("resume\n") :: else fi
	}
over:
	skip
}
#endif

/* KEPT: s let the shard go once, and was claimed for the way back, or revoked; and the other one, for which that was done, was lost. An operator opens it as it is. */
#define KEPT(s) (at[s].state == moved && at[s].mark.to == 1 - s && at[s].loaded != 0 && !SAID(1 - s, s) && (at[s].batch != 0 && at[s].loaded == at[s].batch || at[s].attempt == 0 && at[1 - s].term < at[s].term))
#define CAN_TAKE(x) (at[x].state != open && at[x].here && (WORD(x) || COMES(x)))
#define COMES(x) (from[1 - x].marked && FOLLOWS(1 - x) && from[1 - x].knows && from[1 - x].mark.to == x && NOW(x, from[1 - x].mark.term, from[1 - x].mark.attempt))

/* What firn shard reopen r asks. PLANNED: the other server has not had it since. */
#define PLANNED(r, o) (at[r].state != none && !OPEN(o) && (at[o].state == moved && at[o].to == r || at[o].term <= at[r].term))
/* MAY_REOPEN: it is open here, or was here last, or has come. The word may have come to what this is a copy of, after rows that are not here. */
#ifdef MUT_BYWORD
#define MAY_REOPEN(r, o) (at[r].state == open || SAID(r, o) || SAID(r, r))
#else
#define MAY_REOPEN(r, o) (at[r].state == open || SAID(r, o) || SAID(r, r) && at[r].here)
#endif
#ifdef MUT_REVOKE         /* also where the word is there already */
#define COME(o) false
#else
#define COME(o) (at[o].here && SAID(o, o))
#endif
#ifdef MUT_LATER          /* also where the shard was since, and was let go to r */
#define LATER(o, r, was) false
#else
#define LATER(o, r, was) (SAID(o, r) && at[o].term > was)
#endif
#define MAY_REVOKE(o, r, was) (!OPEN(o) && !COME(o) && !LATER(o, r, was))

#ifdef FAIL
/* The server that fails, as it comes back: its rows, its data, its catalog. The slots that it had are gone. */
Server older, nothing;
byte published_older; bool knows_older; byte batch_older; bool failed;
#define OTHER (1 - FAIL)
#define COPY_SERVER(a, b) a.state = b.state; a.term = b.term; a.attempt = b.attempt; a.to = b.to; a.here = b.here; \
	a.batch = b.batch; a.loaded = b.loaded; a.has = b.has; copy_mark(a.mark, b.mark); a.fence = b.fence; \
	a.draws = b.draws; a.counter = b.counter; a.entered = b.entered

proctype Failure() {
	atomic {
		COPY_SERVER(older, at[FAIL]);
		published_older = from[FAIL].published; knows_older = from[OTHER].knows; batch_older = from[OTHER].batch
	}
	atomic {                                                      /* a copy older than the move itself is lost to everybody */
		!OPEN(FAIL) && !SAID(FAIL, OTHER) || older.state == open && older.term >= since || at[OTHER].batch == at[FAIL].batch && SAID(OTHER, FAIL) ->
		forgiven = OPEN(FAIL) || SAID(FAIL, OTHER) && !OPEN(OTHER) && !(at[OTHER].here && WORD(OTHER));
		COPY_SERVER(at[FAIL], older);
#ifndef MUT_IDENTITY      /* what comes back does not see that it is a copy */
		at[FAIL].here = (older.term == 0);                            /* where there was no row, nothing can be seen */
#endif
		at[FAIL].entered = false; failed = true;
		from[FAIL].published = published_older; from[OTHER].knows = knows_older; from[OTHER].batch = batch_older;
		if
		:: from[FAIL].batch != 0 -> from[FAIL].cut = true
		:: else
		fi;
		COPY_SERVER(older, nothing); published_older = 0; knows_older = false; batch_older = 0;
		printf("server %d comes back: term %d, attempt %d\n", FAIL, at[FAIL].term, at[FAIL].attempt);
		owners = OPEN(0) && OPEN(1);
		assert(!owners)
	}
}

#define finished r = 0; o = 0; t = 0; was = 0; was_open = false; seen = false; goto look

/* firn shard reopen r. Each step is one statement, on one server, and nobody may have worked on r since it was looked at, nor r have failed. */
proctype Operator() {
	byte r, o, t, was; bool was_open, seen;    /* seen: the server that fails is the one that came back */
look:
	atomic {
		if
		:: r = 0; o = 1
		:: r = 1; o = 0
		fi;
		if
		:: PLANNED(r, o) && attempts < ATTEMPTS -> attempts++; t = max(at[r].term, at[o].term) + 1; was = at[r].term; was_open = (at[r].state == open); seen = failed
		:: !at[r].here && OPEN(o) -> t = at[o].term; goto learn
		:: else -> finished
		fi
	}
#ifdef MUT_INPLACE        /* only the row is as it was seen, not the server */
#define SEEN true
#else
#define SEEN (r != FAIL || seen == failed)
#endif
#define AS_SEEN (SEEN && at[r].term == was && (at[r].state == open) == was_open && MAY_REOPEN(r, o))
	atomic {
		if
		:: AS_SEEN
		:: else -> finished
		fi
	}
	atomic {         /* the other server cannot open by what it was promised */
		if
		:: MAY_REVOKE(o, r, was) && NEWER(o, t) ->
#ifndef MUT_REOPENLOOK    /* the other server is only looked at */
			at[o].state = moved; at[o].to = r; at[o].term = t; at[o].attempt = 0; at[o].batch = 0;
			printf("server %d: revoked at term %d\n", o, t)
#endif
		:: else -> finished
		fi
	}
	atomic {
		if
		:: AS_SEEN -> at[r].batch = 0; opens(r, t, highest)   /* the clock is above */
		:: else
		fi;
		finished
	}
learn:           /* r is told where the shard is */
	atomic {
		if
		:: !at[r].here && at[r].term <= t ->
			at[r].state = moved; at[r].to = o; at[r].term = t; at[r].attempt = 0; at[r].here = true; at[r].batch = 0; at[r].draws = false; printf("server %d: learns\n", r)
		:: else
		fi;
		finished
	}
}
#define CAN_REOPEN(r) ((MAY_REOPEN(r, (1 - r)) || KEPT(r)) && PLANNED(r, (1 - r)) && MAY_REVOKE((1 - r), r, at[r].term))
#else
#define CAN_REOPEN(r) false
#endif

proctype Progress() {
	atomic {
		!(OPEN(0) || OPEN(1) || CAN_TAKE(0) || CAN_TAKE(1) || CAN_REOPEN(0) || CAN_REOPEN(1)) ->
		stuck = true;
		assert(!stuck)
	}
}

init {
	atomic {
		at[0].state = open; at[0].term = 1; at[0].here = true; at[0].loaded = 1; at[0].draws = true;
		at[1].here = true;
		run Movers(); run Writers(); run Network(); run Progress();
#ifdef FAIL
		run Failure(); run Operator()
#endif
#ifdef PAUSE
		run Pausing()
#endif
	}
}
