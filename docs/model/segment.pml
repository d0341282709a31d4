/* Segments of one series, as internal/block has it: who may use which numbers.
 *
 * The store has one record: up to where numbers were granted. Takers grant themselves STEP
 * more by compare-and-set, use them one by one, and hand back what they did not use when
 * they are closed. A Put is carried out at any later moment, once, or never; its sender
 * hears of it, or does not and reads the record. Everybody may stop between any two steps.
 *
 * What must hold: no number is used twice. Without one of these rules one is:
 *
 *	MUT_BLIND     a Put compares the version
 *	MUT_VALUE     a Put is known for one's own by its version, not by what it wrote
 *	MUT_OPENBACK  what is handed back is not used afterwards
 *	MUT_BLINDBACK handing back compares the version of one's own last grant
 *	MUT_READBACK  of that, and not of the record as it was read
 *	MUT_LOSSY     a lossy store is refused
 */
#ifndef TAKERS
#define TAKERS 2
#endif
#ifndef PUTS
#define PUTS 5
#endif
#ifndef NUMBERS
#define NUMBERS 6
#endif
#define STEP 2

mtype = { idle, taking, using, over };
mtype = { unsent, sent, done, refused };

typedef Put { mtype is = unsent; byte on; byte granted; bool blind };
typedef Taker {
	mtype phase = idle;
	byte base; byte out;     /* the Put that is not settled, and what it grants begins above */
	byte next; byte top;     /* use above next up to top */
	byte mine                /* the version of the last grant */
};

byte version, granted, version_before, granted_before;
Put put[PUTS + 1];           /* a Put's number is the version that it writes */
byte puts;
Taker p[TAKERS + 1];
bool used[NUMBERS + 1];
bool repeat;

#define send(v, g) puts++; put[puts].is = sent; put[puts].on = v; put[puts].granted = g
#ifdef MUT_BLIND
#define COMPARED(n) true
#else
#define COMPARED(n) (put[n].blind || version == put[n].on)
#endif
#ifdef MUT_VALUE
#define OURS (granted == put[p[i].out].granted)
#else
#define OURS (version == p[i].out)
#endif
#ifdef MUT_READBACK
#define LAST_GRANT version
#else
#define LAST_GRANT p[i].mine
#endif
#define got(v) p[i].next = p[i].base; p[i].top = p[i].base + STEP; p[i].mine = v; p[i].out = 0; p[i].base = 0; p[i].phase = using

proctype Store() {
	byte n;
	do
	:: atomic {
		select(n : 1 .. PUTS);
		if
		:: put[n].is == sent && COMPARED(n) ->
			version = n; granted = put[n].granted; put[n].is = done;
			printf("Put %d is carried out: granted up to %d\n", n, granted)
		:: put[n].is == sent && !COMPARED(n) -> put[n].is = refused
		:: else
		fi;
		n = 0
	}
	od
}

#ifdef MUT_LOSSY
proctype Forget() {
	atomic { version_before = version; granted_before = granted }
	atomic { version = version_before; granted = granted_before; printf("the store forgets: granted up to %d\n", granted) }
}
#endif

proctype Taker_(byte i) {
	do
	:: atomic { (p[i].phase == idle || p[i].phase == using && p[i].next == p[i].top) && puts < PUTS && granted + STEP <= NUMBERS ->
		p[i].base = granted; send(version, granted + STEP); p[i].out = puts; p[i].phase = taking;
		printf("%d asks for %d to %d, by Put %d\n", i, granted + 1, granted + STEP, puts)
	}
	:: atomic { p[i].phase == taking && put[p[i].out].is == done -> got(p[i].out) }
	:: atomic { p[i].phase == taking ->                  /* refused, or not heard of: read it */
		if
		:: OURS -> got(version)
		:: else -> p[i].phase = idle; p[i].out = 0; p[i].base = 0   /* its numbers are nobody's */
		fi
	}
	:: atomic { p[i].phase == using && p[i].next < p[i].top ->
		p[i].next++;
		printf("%d uses %d\n", i, p[i].next);
		repeat = used[p[i].next];
		assert(!repeat);
		used[p[i].next] = true
	}
	:: atomic { p[i].phase == using && puts < PUTS ->    /* closed: hand back */
		send(LAST_GRANT, p[i].next);
		printf("%d hands back what is above %d, by Put %d\n", i, put[puts].granted, puts);
#ifdef MUT_BLINDBACK
		put[puts].blind = true;
#endif
#ifndef MUT_OPENBACK
		p[i].phase = over
#endif
	}
	:: atomic { p[i].phase != over -> p[i].phase = over }
	od
}

init {
	byte i;
	atomic {
		for (i : 1 .. TAKERS) { run Taker_(i) }
		run Store();
#ifdef MUT_LOSSY
		run Forget();
#endif
		i = 0
	}
}
