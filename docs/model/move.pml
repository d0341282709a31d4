/* A shard moves from one server to another, and perhaps back, as shard/move has it.
 *
 * Two servers, each with its row for the shard (firn.shard), with a row that names the
 * batch (firn.move), with a copy of the shard's data and the mark in it, with a fence and
 * a generator. A stream in each direction: publication and slot here, subscription there.
 *
 * A mover has no memory. It looks at both servers at one moment, decides on one statement,
 * and that is carried out at any later moment, or never. So a mover that pauses, dies, is
 * started again elsewhere, is one of several or wakes when all is over, a server that
 * restarts, and an acknowledgement that is lost are all the same. A statement checks what
 * its step says here, under the lock of the row, and nothing else. Streams are made
 * where firn.move has a row of their batch, and dropped by the batch's name.
 *
 * A stream delivers at any moment what was committed while the tables were published. To a
 * subscription that does not know the tables it is lost. A writer looks at the row
 * (firn.enter), and writes at any later moment, if there is no fence.
 *
 *	FAIL=n   server n fails once, and comes back as it was at an earlier moment: a standby
 *	         that lagged, or a backup. What it had sent may still arrive. Operators reopen.
 *
 * The steps are the functions of shard/owner.sql and shard/stream.sql: begin is
 * firn.begin_move, back and subscribe are firn.listen, start is firn.go_on, dismiss is
 * firn.end_move, leave is firn.discard, drop is firn.deafen and firn.sweep; the others
 * have their names. Operators plan as shard/setup/reopen.go does.
 *
 * Not here: more servers or shards than these, several failures, schemas that differ,
 * sequences of the application, locks and waiting. An owner that fails lags less than the
 * move: what no server has any more nothing can bring back. A target that is lost after
 * the other server was claimed for the way back leaves a shard that no step opens.
 *
 * What must hold: never two servers that take writes (owners); who opens has all that was
 * acknowledged (lost); an id is above all before it, wherever it is drawn (repeated); and
 * as long as nobody is open some step leads on (stuck).
 */
#ifndef MOVERS
#define MOVERS 2
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 3       /* of movers and operators together */
#endif
#ifndef WRITES
#define WRITES 2
#endif
#ifndef IDS
#define IDS 2
#endif
#define NONE 9           /* no server */

mtype = { none, open, closed, moved };

typedef Mark { byte term; byte attempt; byte to; byte floor };
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
	bool published;             /* the tables are in the publication */
	bool knows;                 /* the subscription knows them */
	byte sent; bool marked; Mark mark   /* what is on the way */
};

Server at[2];
Stream from[2];
byte made_on[ATTEMPTS + 1];       /* the server on which a batch was begun */
byte attempts, written, acknowledged, drawn, highest;
byte since;                     /* the term at which the server that fails was opened last */
bool forgiven;                  /* a server that failed took writes with it */
bool owners, lost, repeated, stuck;

#define max(a, b) (a > b -> a : b)
#define OPEN(s) (at[s].state == open && at[s].here)
#define NOW(s, t, k) (at[s].term == t && at[s].attempt == k)

/* The rules, and what each is without. */
#ifdef MUT_TERM           /* servers do not compare terms and attempts */
#define NEWER(s, t) true
#define SAME(s, t, k) true
#else
#define NEWER(s, t) (at[s].term < t)
#define SAME(s, t, k) NOW(s, t, k)   /* the attempt too: servers that fail can have two of one term */
#endif
#ifdef MUT_ANYMARK        /* any mark that names this server will do */
#define WORD(s) (at[s].mark.to == s)
#else
#ifdef MUT_NOWORD         /* the target opens because the source says moved, not by the mark in its own copy */
#define WORD(s) (at[1 - s].state == moved && at[1 - s].to == s)
#else
#define WORD(s) (at[s].mark.to == s && at[s].mark.term == at[s].term && at[s].mark.attempt == at[s].attempt)
#endif
#endif
#ifdef MUT_BATCH          /* nobody looks at firn.move: abort and finish only drop what there is */
#define BATCH(s, b) true
#else
#define BATCH(s, b) (at[s].batch == b)
#endif
/* Only where a batch was to go is a copy begun. */
#define COPY_OF(x, b) (at[x].batch == b || at[x].batch == 0 && made_on[b] != x)
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

#define copy_mark(m, n) m.term = n.term; m.attempt = n.attempt; m.to = n.to; m.floor = n.floor
#define no_mark(m) m.term = 0; m.attempt = 0; m.to = 0; m.floor = 0

/* opens: the row says open, the generator starts above a floor, the fence goes. */
inline opens(s, t, k, floor_) {
	at[s].state = open; at[s].term = t; at[s].attempt = k; at[s].to = NONE; at[s].here = true;
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
	at[s].loaded = 0; at[s].has = 0; no_mark(at[s].mark); at[s].draws = false; at[s].counter = 0; at[s].fence = false;
	from[1 - s].knows = false; from[s].published = false
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
				if :: from[s].published && from[s].batch == at[s].batch && !from[s].cut -> from[s].sent = from[s].sent | (1 << written) :: else fi;
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
		:: from[s].batch != 0 && (from[s].sent != 0 || from[s].marked) ->
			if
			:: from[s].knows ->
				at[1 - s].has = at[1 - s].has | from[s].sent;
				if
				:: from[s].marked -> copy_mark(at[1 - s].mark, from[s].mark); printf("the mark of server %d arrives\n", s)
				:: else
				fi
			:: else
			fi;
			from[s].sent = 0; from[s].marked = false; no_mark(from[s].mark)
		:: else
		fi;
		s = 0
	}
	od
}

/* What a mover sees. CLAIMED: x waits to be filled, and opened, by the attempt that s is at. */
#define CLAIMED(s, x) (at[x].batch != 0 && at[x].state == moved && at[x].to == s && at[x].batch == at[s].batch && NOW(x, at[s].term, at[s].attempt))
#define STREAM(s, b) (from[s].batch == b && from[s].knows && !from[s].cut)

#define done s = 0; x = 0; t = 0; k = 0; b = 0; goto look

proctype Mover() {
	byte s, x, t, k, b;     /* source, target, term, attempt, batch */
look:
	atomic {
		if
		:: s = 0; x = 1
		:: s = 1; x = 0
		fi;
		if
		/* A first move, a takeover of what another mover began, or the way back. */
		:: OPEN(s) && attempts < ATTEMPTS -> attempts++; k = attempts; t = max(at[s].term, at[x].term) + 1; b = at[s].batch; goto begin
		:: OPEN(s) && at[s].attempt != 0 && !CLAIMED(s, x) -> t = at[s].term; k = at[s].attempt; b = at[s].batch; goto claim
		:: OPEN(s) && CLAIMED(s, x) -> t = at[s].term; k = at[s].attempt; b = at[s].batch;
			if
			:: at[x].loaded != b -> goto load
			:: at[x].loaded == b && from[s].batch != b -> goto subscribe
			:: at[x].loaded == b && STREAM(s, b) && from[x].batch != b -> goto back
			:: at[x].loaded == b && STREAM(s, b) && STREAM(x, b) -> goto let_go
			:: else -> done
			fi
		:: OPEN(s) && !at[s].draws -> t = at[s].term; k = at[s].attempt; goto start
		:: at[x].state != open && at[x].batch != 0 -> t = at[x].term; k = at[x].attempt; goto take
		/* Abort or finish. */
		:: OPEN(s) && at[s].batch != 0 -> t = at[s].term; k = at[s].attempt; b = at[s].batch; goto dismiss
#ifdef MUT_BATCH
		:: OPEN(s) && at[x].state == moved -> t = at[x].term; k = at[x].attempt; b = at[x].batch; goto leave
		:: OPEN(s) && from[s].batch != 0 -> b = from[s].batch; x = s; goto drop
		:: OPEN(s) && from[x].batch != 0 -> b = from[x].batch; goto drop
#else
		:: OPEN(s) && at[x].batch != 0 && at[x].batch != at[s].batch -> t = at[x].term; k = at[x].attempt; b = at[x].batch; goto leave
		:: OPEN(s) && from[s].batch != 0 && from[s].batch != at[s].batch -> b = from[s].batch; x = s; goto drop
		:: OPEN(s) && from[x].batch != 0 && from[x].batch != at[s].batch -> b = from[x].batch; goto drop
#endif
		:: else -> done
		fi
	}
begin:
	atomic {
		if
		:: OPEN(s) && NEWER(s, t) && BATCH(s, b) ->
			at[s].term = t; at[s].attempt = k;
			if :: at[s].batch == 0 -> at[s].batch = k; at[s].loaded = k; made_on[k] = s; from[s].published = true :: else fi;
			printf("server %d: begin at term %d, attempt %d, batch %d\n", s, t, k, at[s].batch)
		:: else
		fi;
		done
	}
claim:
	atomic {
		if
		:: !OPEN(x) && HERE(x) && (NEWER(x, t) || SAME(x, t, k)) && COPY_OF(x, b) ->
#ifndef MUT_OLDCOPY       /* what is there is taken for a copy of a batch that has no row here any more */
			if :: at[x].batch == 0 -> at[x].loaded = 0 :: else fi;
#endif
			at[x].state = moved; at[x].to = s; at[x].term = t; at[x].attempt = k; at[x].batch = b; at[x].here = true;
			printf("server %d: claimed at term %d, attempt %d, batch %d\n", x, t, k, b)
		:: else
		fi;
		done
	}
load:
	atomic {
		if
		:: !OPEN(x) && HERE(x) && SAME(x, t, k) && BATCH(x, b) && at[x].loaded != b ->
			wipe(x); at[x].loaded = b; at[x].fence = true;
			printf("server %d: schema loaded\n", x)
		:: else
		fi;
		done
	}
subscribe:
	atomic {
		if
		:: from[s].batch != b && COPIES(x, b) && at[x].loaded == b ->
			from[s].batch = b; from[s].cut = false; from[s].sent = 0; from[s].marked = false; no_mark(from[s].mark);
			from[s].knows = from[s].published;
			if
			:: from[s].published -> at[x].has = at[s].has; copy_mark(at[x].mark, at[s].mark)
			:: else
			fi;
			printf("server %d: subscribed to %d, copied\n", x, s)
		:: else
		fi;
		done
	}
back:            /* the subscription knows the tables; they are not published yet */
	atomic {
		if
		:: from[x].batch != b && BATCH(s, b) && at[x].batch == b ->
			from[x].batch = b; from[x].cut = false; from[x].sent = 0; from[x].marked = false; no_mark(from[x].mark);
			from[x].knows = true;
			printf("server %d: subscribed to %d, for the way back\n", s, x)
		:: else
		fi;
		done
	}
let_go:          /* the commit point */
	atomic {
		if
		:: OPEN(s) && SAME(s, t, k) && BATCH(s, b) && from[s].published ->
			at[s].draws = false;                                      /* a sequence is not rolled back */
			if
			:: true ->
				printf("server %d: lets go at term %d, attempt %d\n", s, t, k);
				at[s].fence = true; at[s].state = moved; at[s].to = x;
				at[s].mark.term = t; at[s].mark.attempt = k; at[s].mark.to = x; at[s].mark.floor = at[s].counter;
				if
				:: from[s].batch == b && !from[s].cut -> from[s].marked = true; copy_mark(from[s].mark, at[s].mark)
				:: else
				fi;
				from[s].published = false
			:: true                                                   /* rolled back */
			fi
		:: else
		fi;
		done
	}
start:           /* after a let_go that was rolled back */
	atomic {
		if
		:: OPEN(s) && SAME(s, t, k) -> at[s].draws = true
		:: else
		fi;
		done
	}
take:
	atomic {
		if
		:: !OPEN(x) && HERE(x) && SAME(x, t, k) && WORD(x) && at[x].batch != 0 && at[x].loaded != 0 ->
			from[x].published = (from[x].batch == at[x].batch);
			opens(x, t + 1, 0, at[x].mark.floor)
		:: else
		fi;
		done
	}
dismiss:         /* abort and finish begin with this, on the owner */
	atomic {
		if
		:: OPEN(s) && SAME(s, t, k) && BATCH(s, b) ->
			at[s].batch = 0; from[s].published = false;
			printf("server %d: forgets batch %d\n", s, b)
		:: else
		fi;
		done
	}
leave:           /* the copy that is not needed goes */
	atomic {
		if
		:: at[x].state == moved && HERE(x) && SAME(x, t, k) && BATCH(x, b) ->
			at[x].batch = 0; wipe(x);
			printf("server %d: drops its copy\n", x)
		:: else
		fi;
		done
	}
drop:            /* slot and subscription, by their name */
	atomic {
		if
		:: from[x].batch == b ->
			from[x].batch = 0; from[x].cut = false; from[x].knows = false; from[x].sent = 0; from[x].marked = false; no_mark(from[x].mark);
			printf("stream from server %d: dropped\n", x)
		:: else
		fi;
		done
	}
}

/* LET_GO: s had it and let it go. What waits to be filled says moved, too, but not by its own mark. */
#define LET_GO(s) (at[s].state == moved && at[s].mark.to == 1 - s && NOW(s, at[s].mark.term, at[s].mark.attempt))
#ifdef MUT_BYWORD         /* a target that was promoted or restored is opened by the word that came to it */
#define TOLD(s) (!at[s].here && at[s].state == moved && WORD(s))
#define HEARD(s) WORD(s)
#else
#define TOLD(s) false
#define HEARD(s) (at[s].here && WORD(s))
#endif
/* KEPT: s was claimed for the way back, and the owner is no more. Nobody opens it by itself: an operator decides. */
#define KEPT(s) (at[s].state == moved && at[s].mark.term != 0 && at[s].mark.to == 1 - s && at[s].batch != 0 && at[s].loaded == at[s].batch && !LET_GO(1 - s))
#define MAY_REOPEN(r) (LET_GO(r) || TOLD(r) || !at[r].here && at[r].state == open)
/* PLANNED: the other server has not had it since. */
#ifdef MUT_LATER          /* unless it let it go to this one */
#define HAD(s) (at[s].state != moved)
#else
#define HAD(s) (at[s].state != moved || LET_GO(s))
#endif
#define PLANNED(r) (!OPEN(1 - r) && (!HAD(1 - r) || at[1 - r].term <= at[r].term))
#ifdef MUT_REVOKE         /* also where the word is there already */
#define REVOKABLE(o) true
#else
#define REVOKABLE(o) (!HEARD(o))
#endif
/* What was planned is opened only if it is still as it was seen: others may have opened it, or moved it on. */
#define AS_SEEN(r, t) (MAY_REOPEN(r) && at[r].term == t)
#define finished r = 0; o = 0; t = 0; k = 0; was = 0; goto look
#define COPY_SERVER(a, b) a.state = b.state; a.term = b.term; a.attempt = b.attempt; a.to = b.to; a.here = b.here; \
	a.batch = b.batch; a.loaded = b.loaded; a.has = b.has; copy_mark(a.mark, b.mark); a.fence = b.fence; \
	a.draws = b.draws; a.counter = b.counter; a.entered = b.entered
Server nothing;
#define COMES(x) (from[1 - x].marked && from[1 - x].knows && from[1 - x].mark.to == x && NOW(x, from[1 - x].mark.term, from[1 - x].mark.attempt))
#define CAN_TAKE(x) (at[x].state != open && at[x].here && (WORD(x) || COMES(x)))
#ifdef FAIL
/* The server that fails, as it comes back: its rows, its data, its catalog. The slots that it had are gone. */
Server older;
bool published_older, knows_older; byte batch_older;
#define OTHER (1 - FAIL)

proctype Failure() {
	atomic {
		COPY_SERVER(older, at[FAIL]);
		published_older = from[FAIL].published; knows_older = from[OTHER].knows; batch_older = from[OTHER].batch
	}
	atomic {                                                      /* a copy older than the move itself is lost to everybody */
		!OPEN(FAIL) && !LET_GO(FAIL) || older.state == open && older.term >= since || at[OTHER].batch == at[FAIL].batch && LET_GO(OTHER) ->
		forgiven = OPEN(FAIL) || LET_GO(FAIL) && !OPEN(OTHER) && !(at[OTHER].here && WORD(OTHER));
		COPY_SERVER(at[FAIL], older);
#ifndef MUT_IDENTITY      /* what comes back does not see that it is a copy */
		at[FAIL].here = (older.term == 0);                            /* where there was no row, nothing can be seen */
#endif
		at[FAIL].entered = false;
		from[FAIL].published = published_older; from[OTHER].knows = knows_older; from[OTHER].batch = batch_older;
		if
		:: from[FAIL].batch != 0 -> from[FAIL].cut = true
		:: else
		fi;
		COPY_SERVER(older, nothing); published_older = false; knows_older = false; batch_older = 0;
		printf("server %d comes back: term %d, attempt %d\n", FAIL, at[FAIL].term, at[FAIL].attempt);
		owners = OPEN(0) && OPEN(1);
		assert(!owners)
	}
}

/* firn shards reopen r. */
proctype Operator() {
	byte r, o, t, k, was;
look:
	atomic {
		if
		:: r = 0; o = 1
		:: r = 1; o = 0
		fi;
		if
		:: MAY_REOPEN(r) && PLANNED(r) && attempts < ATTEMPTS ->
			attempts++; k = attempts; t = max(at[r].term, at[o].term) + 1; was = at[r].term; goto revoke
		:: !at[r].here && OPEN(o) -> t = at[o].term; goto learn
		:: else -> finished
		fi
	}
revoke:          /* the other server cannot open by what it was promised */
	atomic {
		if
		:: !OPEN(o) && NEWER(o, t) && !(REVOKABLE(o)) -> finished
		:: !OPEN(o) && NEWER(o, t) && REVOKABLE(o) ->
#ifndef MUT_REOPENLOOK    /* the other server is only looked at */
			at[o].state = moved; at[o].to = r; at[o].term = t; at[o].attempt = 0; at[o].batch = 0;
			printf("server %d: revoked at term %d\n", o, t);
#endif
			goto reopen
		:: else -> finished
		fi
	}
reopen:
	atomic {
		if
		:: AS_SEEN(r, was) ->
			at[r].batch = 0; from[r].published = false;
			opens(r, t, 0, highest)                                   /* the clock is above */
		:: else
		fi;
		finished
	}
learn:           /* r was told where the shard is */
	atomic {
		if
		:: !at[r].here && at[r].term <= t ->
			at[r].state = moved; at[r].to = o; at[r].term = t; at[r].attempt = 0; at[r].here = true; at[r].batch = 0; at[r].draws = false; printf("server %d: learns\n", r)
		:: else
		fi;
		finished
	}
}
#define CAN_REOPEN(r) ((MAY_REOPEN(r) || KEPT(r)) && PLANNED(r) && REVOKABLE(1 - r))
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
	byte i;
	atomic {
		at[0].state = open; at[0].term = 1; at[0].here = true; at[0].loaded = ATTEMPTS + 1; at[0].draws = true;
		at[1].here = true;
		for (i : 1 .. MOVERS) { run Mover() }
		run Writers(); run Network(); run Progress();
#ifdef FAIL
		run Failure(); run Operator();
#endif
		i = 0
	}
}
