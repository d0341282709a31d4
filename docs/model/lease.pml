/* One worker's lease, as internal/term has it: who may issue which ticks.
 *
 * The store has one record of the worker and the pool's floor. PROCESSES processes want
 * the worker, all alive at once, each for one term. Clocks do not count: a process may
 * propose any horizon and take any tick, and may take the worker from its holder at any
 * moment. A Put is a message that is carried out at any later moment, once, or never;
 * whoever sent it hears of it, or does not and reads the record. Every process may stop
 * between any two steps, for good or not. A tick stands for all ids of that tick.
 *
 *	RESTORE   the record goes back to an earlier state, once, and "firn store recover" runs
 *	FILE      processes of one host have a grant file, and go on with the grant in it
 *	OPERATOR  takes the worker away from its holder
 *
 * What must hold: no tick is handed out twice. Without one of the rules it is:
 */
#ifdef MUT_BLIND         /* a Put does not compare the version */
#define COMPARED(n) true
#else
#define COMPARED(n) (record.version == put[n].on)
#endif
#ifdef MUT_COUNT         /* versions are counts, and a restore brings them back */
#define VERSION(n) (put[n].on + 1)
#else
#define VERSION(n) n
#endif
#ifdef MUT_TOKEN         /* one owner for all attempts of a process */
#define OWNER i
#else
#define OWNER (puts + 1)
#endif
#ifdef MUT_FENCE         /* that something may be issued is tested, and then the clock is read */
#define GRANTED(x) (p[i].last < p[i].have)
#else
#define GRANTED(x) (x <= p[i].have)
#endif
#if defined(FILE) && !defined(MUT_LATEMARK)   /* the mark is written after the tick was issued */
#define MARKED(x) (lock != i || x <= file.mark)
#else
#define MARKED(x) true
#endif
#ifdef MUT_NOLOCK        /* two processes have one grant file */
#define UNLOCKED true
#else
#define UNLOCKED (lock == 0)
#endif
/* In the text below: MUT_UNACKED a horizon counts when it is sent; MUT_START ids start at
 * the clock; MUT_REL0 a release without an id says 0; MUT_RELEARLY a release is below a
 * tick that is in hand; MUT_RELOPEN and a generator goes on after it; MUT_CONFLICT a
 * conflict is taken for success; MUT_ADOPT whatever is read is one's own; MUT_KEEPOWNER,
 * MUT_LOWFLOOR, MUT_UNCUT a restore keeps owner and term, raises the floor to what the
 * record says, lets processes in before it has run; MUT_FLOORONCE the floor is read
 * before the Put only; MUT_STALEFILE the file is good after a release; MUT_OPERATOR what
 * an operator writes keeps the term and lowers the horizon.
 */
#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef TICKS
#define TICKS 3
#endif
#ifndef PUTS
#define PUTS 4
#endif
#define NOBODY 0
#define OTHER (PUTS + 1)   /* the version that a restore writes */
#define max(a, b) (a > b -> a : b)

mtype = { idle, taking, confirming, holding, releasing, over };
mtype = { unsent, sent, done, refused };

typedef Record { byte version; byte term; byte owner; byte horizon };
typedef Put { mtype is = unsent; byte on; byte term; byte owner; byte horizon };
typedef Process {
	mtype phase = idle;
	byte owner; byte term;  /* as written for this term */
	byte version;           /* of the record, as acknowledged */
	byte base; byte have;   /* issue above, and up to */
	byte want;              /* the horizon in out */
	byte out;               /* the Put that is not settled */
	byte last;              /* tick taken */
	byte hand; byte handed  /* tick taken and not handed out yet; the last one that was */
};
typedef File { byte owner; byte term; byte version; byte have; byte mark };   /* without owner it is void */

Record record, backup;
byte floor, top;             /* of the pool; and the highest horizon there ever was */
Put put[PUTS + 2];           /* a Put's number is the version that it writes */
byte puts;
Process p[PROCESSES + 1];
File file;
byte lock;                   /* who has it */
bool issued[TICKS + 1];
bool repeat;

#define send(v, t, o, h) puts++; put[puts].is = sent; \
	put[puts].on = v; put[puts].term = t; put[puts].owner = o; put[puts].horizon = h

/* forget keeps states few: nobody asks for what is settled. */
#ifndef MUT_COUNT
#define forget(n) put[n].is = unsent; put[n].on = 0; put[n].term = 0; put[n].owner = 0; put[n].horizon = 0
#else
#define forget(n) skip
#endif

proctype Store() {
	byte n;
	do
	:: atomic {
		select(n : 1 .. PUTS);
		if
		:: put[n].is == sent && COMPARED(n) ->
			record.version = VERSION(n); record.term = put[n].term;
			record.owner = put[n].owner; record.horizon = put[n].horizon;
			top = max(top, record.horizon);
			put[n].is = done;
			printf("Put %d is carried out: term %d, owner %d, horizon %d\n", n, record.term, record.owner, record.horizon)
		:: put[n].is == sent && !COMPARED(n) -> forget(n); put[n].is = refused
		:: else
		fi;
		n = 0
	}
#ifdef OPERATOR
	:: atomic { record.owner != NOBODY && puts < PUTS ->
#ifdef MUT_OPERATOR
		send(record.version, record.term, NOBODY, record.horizon - 1)
#else
		send(record.version, record.term + 1, NOBODY, record.horizon)
#endif
	}
#endif
	od
}

#ifdef RESTORE
proctype Restore() {
	atomic {
		backup.version = record.version; backup.term = record.term; backup.owner = record.owner; backup.horizon = record.horizon
	}
	atomic {
		record.version = backup.version; record.term = backup.term; record.owner = backup.owner; record.horizon = backup.horizon;
		backup.version = 0; backup.term = 0; backup.owner = 0; backup.horizon = 0;
		printf("the record goes back to term %d, owner %d, horizon %d\n", record.term, record.owner, record.horizon);
#ifdef MUT_UNCUT
	}
	atomic {
#endif
#ifdef MUT_LOWFLOOR
		floor = record.horizon;
#else
		floor = top;
#endif
		if
		:: record.version != 0 ->
#ifndef MUT_KEEPOWNER
			record.term++; record.owner = NOBODY;
#endif
			record.horizon = max(record.horizon, floor);
#ifdef MUT_COUNT
			record.version++
#else
			record.version = OTHER
#endif
		:: else
		fi;
		printf("restored: floor %d\n", floor)
	}
}
#endif

/* unheeded: whatever comes of the Put that is not settled. */
inline unheeded() {
	if
	:: put[p[i].out].is == done || put[p[i].out].is == refused -> forget(p[i].out)
	:: else
	fi;
	p[i].out = 0
}

inline give_up() {
	unheeded();
	p[i].phase = idle; p[i].want = 0; p[i].base = 0; p[i].owner = 0; p[i].term = 0
}

inline die() {
	unheeded();
	p[i].phase = over; p[i].owner = 0; p[i].term = 0; p[i].version = 0; p[i].base = 0; p[i].have = 0;
	p[i].want = 0; p[i].last = 0; p[i].hand = 0; p[i].handed = 0;
	if
	:: lock == i -> lock = 0
	:: else
	fi
}

/* granted: the horizon that was wanted is acknowledged, as this version. */
#define granted(v) p[i].version = v; p[i].have = p[i].want; p[i].want = 0; forget(p[i].out); p[i].out = 0
#define taken(v) granted(v); p[i].phase = confirming

/* release frees the worker, on a version: up to the last tick that was taken. */
#ifdef MUT_REL0           /* a release without an id says 0 */
#define LAST (p[i].last == p[i].base -> 0 : p[i].last)
#else
#ifdef MUT_RELEARLY       /* a release is below a tick that is in hand */
#define LAST max(p[i].base, p[i].handed)
#else
#define LAST max(p[i].base, p[i].last)
#endif
#endif
#ifdef MUT_RELOPEN        /* and the generator goes on */
#define closed p[i].out = 0; p[i].version = puts
#else
#define closed p[i].phase = releasing
#endif
#define release(v) x = LAST; send(v, p[i].term, NOBODY, x); p[i].out = puts; p[i].want = x; x = 0; closed
#ifdef FILE
#define void_()  file.owner = 0; file.term = 0; file.version = 0; file.have = 0; file.mark = 0
#define write_(m)  file.owner = p[i].owner; file.term = p[i].term; file.version = p[i].version; file.have = p[i].have; file.mark = m
#endif
#ifdef MUT_ADOPT
#define OURS true
#else
#define OURS (record.owner == p[i].owner && record.term == p[i].term)
#endif
#define CARRIED_OUT (OURS && record.horizon == p[i].want && record.version != put[p[i].out].on)
#define UNTOUCHED (record.version == p[i].version)

/* NEXT: one process that has not begun is like the other. */
#define NEXT (i == 1 || p[i - 1].phase != idle)

proctype Member(byte i) {
	byte x, n;
	do
	/* Taking the worker, whoever has it. */
	:: atomic { p[i].phase == idle && NEXT && puts < PUTS ->
		select(x : 1 .. TICKS);
		p[i].owner = OWNER; p[i].term = record.term + 1;
		p[i].base = max(record.horizon, floor); p[i].want = max(p[i].base, x); x = 0;
		send(record.version, p[i].term, p[i].owner, p[i].want);
		p[i].out = puts; p[i].phase = taking;
		printf("%d takes the worker above %d, by Put %d\n", i, p[i].base, puts)
	}
	:: atomic { p[i].phase == taking && put[p[i].out].is == done -> n = p[i].out; taken(VERSION(n)); n = 0 }
	:: atomic { p[i].phase == taking && put[p[i].out].is == refused ->
#ifdef MUT_CONFLICT
		taken(record.version)
#else
		give_up()
#endif
	}
	:: atomic { p[i].phase == taking ->          /* not heard of: read it */
		if
		:: OURS -> taken(record.version)
		:: else -> give_up()                                         /* and it may still be carried out */
		fi
	}
	:: atomic { p[i].phase == confirming ->
#ifndef MUT_FLOORONCE
		p[i].base = max(p[i].base, floor);
#endif
#ifndef MUT_START
		p[i].last = p[i].base;
#endif
		p[i].phase = holding;
#ifdef FILE
		if
		:: lock == 0 -> lock = i; write_(p[i].last)
		:: true
		fi;
#endif
		printf("%d holds the worker, (%d, %d]\n", i, p[i].base, p[i].have)
	}

	/* Holding it. */
	:: atomic { p[i].phase == holding && p[i].out == 0 && p[i].have < TICKS && puts < PUTS ->
		select(x : p[i].have + 1 .. TICKS);
		send(p[i].version, p[i].term, p[i].owner, x);
		p[i].out = puts; p[i].want = x; x = 0;
#ifdef MUT_UNACKED
		p[i].have = p[i].want;
#endif
		printf("%d extends to %d, by Put %d\n", i, p[i].want, puts)
	}
	:: atomic { p[i].phase == holding && p[i].out != 0 && put[p[i].out].is == done -> n = p[i].out; granted(VERSION(n)); n = 0 }
#ifdef MUT_CONFLICT
	:: atomic { p[i].phase == holding && p[i].out != 0 && put[p[i].out].is == refused -> granted(record.version) }
#endif
	:: atomic { p[i].phase == holding && p[i].out != 0 ->    /* not heard of, or refused: read it */
		if
		:: CARRIED_OUT -> granted(record.version)
		:: else -> if
			:: UNTOUCHED && put[p[i].out].is == sent && puts < PUTS ->    /* once more, word for word */
				send(p[i].version, p[i].term, p[i].owner, p[i].want); p[i].out = puts
			:: OURS && !UNTOUCHED && record.horizon >= p[i].have ->       /* of a process before this one */
				p[i].want = record.horizon; granted(record.version)
			:: else -> unheeded(); p[i].phase = over; p[i].want = 0      /* lost; what is in hand may come later */
			fi
		fi
	}
	:: atomic { p[i].phase == holding && p[i].hand == 0 && p[i].last < TICKS ->
		select(x : p[i].last + 1 .. TICKS);
		if
		:: GRANTED(x) && MARKED(x) -> p[i].last = x; p[i].hand = x
		:: else
		fi;
		x = 0
	}
	:: atomic { p[i].hand != 0 ->
		printf("%d issues tick %d\n", i, p[i].hand);
		repeat = issued[p[i].hand];
		assert(!repeat);
		issued[p[i].hand] = true; p[i].handed = p[i].hand; p[i].hand = 0
	}

	/* Giving it back: the generator is closed, but for what is in hand. */
	:: atomic { p[i].phase == holding && puts < PUTS ->
#if defined(FILE) && !defined(MUT_STALEFILE)
		if :: lock == i -> void_() :: else fi;
#endif
		if
		:: p[i].out == 0 || UNTOUCHED -> release(p[i].version)       /* never mind an extension */
		:: else -> if
			:: OURS -> release(record.version)                       /* it arrived after all */
			:: else -> unheeded(); p[i].phase = over; p[i].want = 0
			fi
		fi;
		printf("%d releases, by Put %d\n", i, puts)
	}
	:: atomic { p[i].phase == releasing && p[i].hand == 0 ->
		if
		:: put[p[i].out].is == done ->
#ifdef MUT_STALEFILE
			if :: lock == i -> void_() :: else fi;
#endif
			die()
		:: else -> if
			:: OURS && puts < PUTS -> release(record.version)        /* not yet, or an extension arrived: once more */
			:: else -> die()
			fi
		fi
	}

	/* A process dies at any moment; its lock ends with it, the file stays. */
	:: atomic { p[i].phase != idle && p[i].phase != over -> die() }
#ifdef FILE
	:: atomic { p[i].phase == holding && lock == i && file.owner != 0 && file.mark < p[i].have ->
		select(x : file.mark + 1 .. p[i].have);
#ifdef MUT_LATEMARK
		if :: x > p[i].handed -> x = max(p[i].handed, file.mark) :: else fi;
#endif
		write_(x); x = 0
	}
	:: atomic { p[i].phase == idle && NEXT && file.owner != 0 && UNLOCKED ->
		lock = i;
		p[i].phase = holding; p[i].owner = file.owner; p[i].term = file.term; p[i].version = file.version;
		p[i].have = file.have; p[i].base = file.mark; p[i].last = file.mark;
		printf("%d goes on with the grant file, (%d, %d]\n", i, file.mark, file.have)
	}
#endif
	od
}

init {
	byte i;
	atomic {
		for (i : 1 .. PROCESSES) { run Member(i) }
		run Store();
#ifdef RESTORE
		run Restore();
#endif
		i = 0
	}
}
