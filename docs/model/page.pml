/* A shared page: who issues which numbers of one worker, docs/decisions/0054.
 *
 * An agent takes the worker, makes a page, extends its horizon, closes it and gives the worker back; it may die between
 * any two steps. A second agent follows in the same way, at any moment: clocks do not count. PROCESSES clients have the
 * page open that they found, and may be stopped between any two accesses to memory. A holder on another host takes
 * the worker at any moment, and issues the next number. Memory is sequentially consistent: that is argued in
 * clients/c/firn.h. A number stands for an id.
 *
 * What must hold: no number is issued twice. Without one of the rules it is:
 *
 *	MUT_BEFORE    a number is compared with the horizon after it was taken, and not a guess before
 *	MUT_FIELD     closed is a value of the word, and no other field
 *	MUT_LOW       a release says no less than what the exchange took out of the word
 *	MUT_TWOWORDS  tick and sequence are one word
 *	MUT_INODE     a file is for one term: the next one is another file
 *	MUT_UNACKED   the horizon is raised after the store has confirmed it
 *	MUT_EARLY     the page is closed before the worker is given back
 *	MUT_GRANTFILE no agent continues a grant beside the page of it
 *	MUT_FORK      a client holds no number between two calls
 *	MUT_BOOT      a page of another boot is refused: its word may be an old one
 */
#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef NUMBERS
#define NUMBERS 5
#endif
#define CLOSED 99
#define PAGES 3

typedef Page { byte word; byte horizon; bool shut; byte tick; byte seq };

Page page[PAGES];        /* 0: none */
byte path;               /* the page that the path names */
byte horizon;            /* in the store: of the worker */
byte owner;              /* term that has it */
byte terms;
bool issued[NUMBERS + 4];
bool repeat;
bool crashed;            /* the system, once */
byte batch;              /* MUT_FORK: a number that a process holds while it forks */

inline issue(x) {
	repeat = issued[x];
	printf("%d is issued\n", x);
	assert(!repeat);
	issued[x] = true
}

#define FREE(x) (x <= NUMBERS)

#ifdef MUT_FIELD
#define SHUT(x) page[x].shut
#else
#define SHUT(x) (page[x].word == CLOSED)
#endif
#define REFUSED(x) (SHUT(x) || page[x].word >= page[x].horizon || !FREE(page[x].word + 1))

/* A client takes numbers from the page that the path names. That somebody is stopped for good is that he takes no step. */
proctype Client() {
	byte at, v;
	do
	:: atomic { path != 0 && at != path && (at == 0 || REFUSED(at)) -> at = path }
	:: atomic { at != 0 && !REFUSED(at) -> v = page[at].word + 1 };         /* the look: nothing is written */
#ifdef MUT_TWOWORDS
		/* two words: the tick was read in the look, the sequence is taken now, of two a tick */
		atomic { v = page[at].tick };
		atomic {
			if
			:: page[at].word == CLOSED -> v = 0
			:: else ->
				v = 2 * v + page[at].seq + 1;
				page[at].tick = (page[at].seq == 1 -> page[at].tick + 1 : page[at].tick);
				page[at].seq = 1 - page[at].seq;
				page[at].word = (v > page[at].word -> v : page[at].word)
			fi
		};
#endif
#ifdef MUT_BEFORE
		/* what was looked at was a guess: the number is what the word says now, and is not compared */
		atomic {
			if
			:: page[at].word != CLOSED && FREE(page[at].word + 1) -> page[at].word++; v = page[at].word; issue(v)
			:: else
			fi;
			v = 0
		}
#else
#ifndef MUT_TWOWORDS
		atomic {
			if
			:: page[at].word != v - 1 -> v = 0                      /* the compare-and-swap fails */
			:: else -> page[at].word = v
			fi
		};
#endif
		atomic {
			if
			:: v != 0 && v <= page[at].horizon && FREE(v) ->        /* its own number, after it was taken */
#ifdef MUT_FORK
				batch = (batch == 0 -> v : batch);              /* held, and copied by a fork */
#endif
				issue(v)
			:: else
			fi;
			v = 0
		}
#endif
	od
}

#ifdef MUT_FORK
proctype Child() { atomic { batch != 0 -> issue(batch) } }
#endif

proctype Agent() {
	byte me, mine, have, base, last, lost;
#ifdef MUT_GRANTFILE
	bool heir;
#endif
	atomic {                                                        /* take the worker, by one compare-and-set */
		terms++; me = terms;
#ifdef MUT_GRANTFILE
		if
		:: owner != 0 && me == 2 && path != 0 -> heir = true; base = page[path].word; have = horizon; owner = me
		:: heir = false; base = horizon; have = horizon + 1; horizon = have; owner = me
		fi;
#else
		base = horizon; have = horizon + 1; horizon = have; owner = me;
#endif
		printf("term %d has the worker above %d, up to %d\n", me, base, have)
	};
#ifdef MUT_INODE
	if
	:: path != 0 -> mine = path
	:: path == 0 -> mine = me
	fi;
#else
	mine = me;
#endif
#ifdef MUT_GRANTFILE
	if
	:: atomic { heir && base != CLOSED && FREE(base + 1) && base + 1 <= have -> issue(base + 1); goto over } /* from the file alone */
	:: else
	fi;
#endif
	atomic { page[mine].word = base; page[mine].tick = base / 2; page[mine].seq = base % 2; page[mine].horizon = have; path = mine };   /* renamed into place */
	do
	:: have < NUMBERS ->                                            /* extend */
#ifdef MUT_UNACKED
		page[mine].horizon = have + 1;
#endif
		atomic {
			if
			:: owner == me -> horizon = have + 1; have = have + 1; lost = 0
			:: else -> lost = 1
			fi
		};
		if
		:: lost -> page[mine].word = CLOSED; goto over
		:: else
		fi;
		page[mine].horizon = have
	:: goto over                                                    /* killed */
	:: break
	od;
#ifdef MUT_EARLY
	atomic { last = page[mine].word };
	atomic { owner == me -> owner = 0; horizon = (last < have -> last : have); printf("released up to %d\n", horizon) };
	page[mine].word = CLOSED;
#else
#ifdef MUT_FIELD
	page[mine].shut = true;
	atomic { last = page[mine].word };
#else
	atomic { last = page[mine].word; page[mine].word = CLOSED };    /* one exchange */
#endif
#ifdef MUT_LOW
	last = (last > base -> last - 1 : last);
#endif
	atomic {
		if
		:: owner == me -> owner = 0;
			horizon = (last < have -> last : have);
			horizon = (horizon > base -> horizon : base);
			printf("released up to %d\n", horizon)
		:: else
		fi
	};
#endif
over:	skip
}

/* Other is a holder on another host: one number at a time, as soon as it likes. */
proctype Other() {
	byte v, n;
	do
	:: n < 2 -> atomic { FREE(horizon + 1) -> n++; horizon = horizon + 1; v = horizon; owner = 50 + n };
		issue(v)
	:: break
	od
}

#ifdef MUT_BOOT
/* Boot: the word of a page on a disk comes back as it was once, and the page is used all the same. */
proctype Boot() {
	byte at, w;
	atomic { path != 0 -> at = path; w = page[at].word };
	atomic { page[at].word != CLOSED && page[at].word > w -> page[at].word = w; printf("the word of page %d is %d again\n", at, w) }
}
#endif

init {
	byte i;
	atomic {
		for (i : 1 .. PROCESSES) { run Client() }
		run Agent();
		run Agent();
		run Other();
#ifdef MUT_FORK
		run Child();
#endif
#ifdef MUT_BOOT
		run Boot();
#endif
		i = 0
	}
}
