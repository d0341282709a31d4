/* A worker's lease on a lossy store: internal/term, Rules.Quarantine.
 *
 * As in lease.pml, and time passes: every process reads its own clock, and the store, which
 * may be on another host by then, its own. Each is off by up to SKEW at each reading. The
 * store goes back to an earlier state, once. Whether a record is its holder's no longer says
 * what others may have issued: clocks have to.
 *
 *	MARK   at first nobody knows that the store is lossy, and it does not: all go by the
 *	       rules of lease.pml, until the pool's record is marked, which is not forgotten
 *
 * What must hold: no tick is handed out twice, as long as clocks are right within SKEW.
 * Without one of these rules one is:
 *
 *	MUT_SHORT  a new holder issues nothing before its own clock has passed
 *	           Q = W + 2 SKEW (one tick less is too little)
 *	MUT_EARLY  and reads that clock after the acknowledgement
 *	MUT_LATE   an extension acknowledged later than TTL after the last one was sent is not used,
 *	MUT_WITHIN nor carried out later than TTL after the last one was. Either is enough here,
 *	           where processes and the store agree on how long TTL is, so both go
 *	MUT_EAGER  a worker is taken from its holder only when TTL has passed by the store's clock
 *	MUT_BEFORE the mark is read after the acknowledgement, too
 *	MUT_CHOSEN and who finds it only then lets go of the worker
 *	MUT_KNOWN  and after one that is late, before it is used
 */
#ifndef TIME
#define TIME 6
#endif
#ifndef W                 /* outage budget: how far ahead of its clock a holder asks */
#define W 1
#endif
#ifndef SKEW
#define SKEW 0
#endif
#ifndef TTL
#define TTL 1
#endif
#ifndef PUTS
#define PUTS 3
#endif
#define PROCESSES 2
#ifdef MUT_SHORT
#define Q (W + 2 * SKEW - 1)
#else
#define Q (W + 2 * SKEW)
#endif
#define TICKS (TIME + 2 * W + 3 * SKEW + 2)
#define max(a, b) (a > b -> a : b)

mtype = { idle, taking, holding, over };
mtype = { unsent, sent, done };

typedef Record { byte version; byte owner; byte horizon; byte until };   /* the holder lives, by the store's clock */
typedef Put { mtype is = unsent; byte on; byte owner; byte horizon };
typedef Process {
	mtype phase = idle;
	byte version; byte base; byte have; byte last; byte hand;
	byte out; byte sent_at;  /* the Put that is not settled */
	byte late;               /* an acknowledgement after this is not used */
	bool judged              /* by a record of the pool that was marked */
};

byte now = SKEW + 1;
Record record, before;
Put put[PUTS + 1];
byte puts;
Process p[PROCESSES + 1];
bool issued[TICKS + 1];
bool repeat;
#ifdef MARK
bool mark;
#else
#define mark true
#endif

#define send(v, h) puts++; put[puts].is = sent; put[puts].on = v; put[puts].owner = i; \
	put[puts].horizon = h; p[i].out = puts; p[i].sent_at = now
/* forget keeps states few: nobody asks for what is settled. */
#define forget(n) put[n].is = unsent; put[n].on = 0; put[n].owner = 0; put[n].horizon = 0
#define copy(a, b) a.version = b.version; a.owner = b.owner; a.horizon = b.horizon; a.until = b.until
#define none(a) a.version = 0; a.owner = 0; a.horizon = 0; a.until = 0
#define die() if :: put[p[i].out].is == done -> forget(p[i].out) :: else fi; p[i].phase = over; p[i].version = 0; p[i].base = 0; p[i].have = 0; p[i].last = 0; p[i].hand = 0; \
	p[i].out = 0; p[i].sent_at = 0; p[i].late = 0; p[i].judged = false
#define read_clock(x) select(x : now - SKEW .. now + SKEW)
#ifdef MUT_EAGER
#define FREE(wall) true
#else
#define FREE(wall) (!mark || record.owner == 0 || wall > record.until + 2 * SKEW)
#endif
#ifdef MUT_WITHIN
#define IN_TIME(n, wall) true
#else         /* who has the worker and writes it extends: nobody takes it twice */
#define IN_TIME(n, wall) (!mark || put[n].owner != record.owner || wall <= record.until)
#endif
#ifdef MUT_LATE
#define TOO_LATE false
#else
#ifdef MUT_KNOWN
#define TOO_LATE (p[i].judged && now > p[i].late)
#else
#define TOO_LATE (mark && now > p[i].late)
#endif
#endif
#ifdef MUT_BEFORE
#define MARKED p[i].judged
#else
#define MARKED mark
#endif
#ifdef MUT_CHOSEN
#define TOO_SOON false
#else
#define TOO_SOON (MARKED && !p[i].judged)
#endif

proctype Clock() {
	do
	:: atomic { now < TIME -> now++; printf("it is %d\n", now) }
	:: else -> break
	od
}

proctype Store() {
	byte n, wall;
	do
	:: atomic {
		select(n : 1 .. PUTS);
		read_clock(wall);
		if
		:: put[n].is == sent && record.version == put[n].on && IN_TIME(n, wall) ->
			record.version = n; record.owner = put[n].owner; record.horizon = put[n].horizon; record.until = wall + TTL;
			if :: p[record.owner].phase == over -> forget(n) :: else -> put[n].is = done fi;
			printf("Put %d is carried out: owner %d, horizon %d\n", n, record.owner, record.horizon)
		:: put[n].is == sent && !(record.version == put[n].on && IN_TIME(n, wall)) -> forget(n)
		:: else
		fi;
		n = 0; wall = 0
	}
#ifdef MARK
	:: atomic { !mark -> mark = true; printf("it is known that the store is lossy\n") }
#endif
	od
}

proctype Forget() {
	atomic { mark -> copy(before, record) }
	atomic { copy(record, before); none(before); printf("the store forgets: owner %d, horizon %d\n", record.owner, record.horizon) }
}

proctype Member(byte i) {
	byte x, n, wall;
	do
	:: atomic { p[i].phase == idle && (i == 1 || p[i - 1].phase != idle) && puts < PUTS ->   /* one is like the other */
		read_clock(wall);
		if
		:: FREE(wall) ->
			read_clock(wall);
			p[i].judged = mark; p[i].base = record.horizon;
#ifdef MUT_EARLY
			p[i].base = max(p[i].base, wall + Q);
#endif
			x = max(record.horizon, wall + W); send(record.version, x); p[i].phase = taking;
			printf("%d takes the worker above %d, by Put %d\n", i, p[i].base, puts)
		:: else
		fi;
		x = 0; wall = 0
	}
	:: atomic { p[i].phase == taking && put[p[i].out].is == done ->
		n = p[i].out; p[i].have = put[n].horizon; p[i].version = n; forget(n); n = 0;
		if
		:: TOO_SOON -> die()
		:: else ->
#ifndef MUT_EARLY
			read_clock(wall);
			if :: MARKED -> p[i].base = max(p[i].base, wall + Q) :: else fi;
			wall = 0;
#endif
			p[i].last = p[i].base; p[i].base = 0; p[i].late = p[i].sent_at + TTL; p[i].sent_at = 0; p[i].out = 0; p[i].phase = holding;
			printf("%d holds the worker, (%d, %d]\n", i, p[i].last, p[i].have)
		fi
	}
	:: atomic { p[i].phase == holding && p[i].out == 0 && p[i].version != 0 && puts < PUTS ->
		read_clock(wall);
		x = max(p[i].have, wall + W); send(p[i].version, x); x = 0; wall = 0
	}
	:: atomic { p[i].phase == holding && p[i].out != 0 && put[p[i].out].is == done ->
		n = p[i].out;
		if
		:: TOO_LATE -> p[i].version = 0                 /* lost; the grant in hand stays what it was */
		:: else -> p[i].have = put[n].horizon; p[i].version = n; p[i].late = p[i].sent_at + TTL;
			printf("%d extends to %d\n", i, p[i].have)
		fi;
		p[i].out = 0; p[i].sent_at = 0; forget(n); n = 0
	}
	:: atomic { p[i].phase == holding && p[i].hand == 0 && p[i].last < p[i].have ->
		select(x : p[i].last + 1 .. p[i].have);
		p[i].last = x; p[i].hand = x; x = 0
	}
	:: atomic { p[i].hand != 0 ->
		printf("%d issues tick %d\n", i, p[i].hand);
		repeat = issued[p[i].hand];
		assert(!repeat);
		issued[p[i].hand] = true; p[i].hand = 0
	}
	:: atomic { p[i].phase != idle && p[i].phase != over -> die() }
	od
}

init {
	byte i;
	atomic {
		for (i : 1 .. PROCESSES) { run Member(i) }
		run Store(); run Clock(); run Forget();
		i = 0
	}
}
