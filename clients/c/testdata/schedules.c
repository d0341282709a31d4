/* Runs the code of firn.h in random interleavings: each access to memory that others write is a step, and between two steps
 * any other thread may take any number of steps. Agents and holders on other hosts are coroutines too. No id may be issued
 * twice, with any clocks; with right ones the ids of a process increase. One memory for all is sequentially consistent.
 *
 *     schedules N: prints what went wrong, in which schedule, and fails.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

static void step(void);
static int64_t clock_now(void);
#define FIRN_LOAD_(p) (step(), *(p))
#define FIRN_STORE_(p, v) (step(), (void)(*(p) = (v)))
#define FIRN_SWAP_(p, old, v) (step(), swap((p), (old), (v)))
#define FIRN_CLOCK_() clock_now()

static int swap(uint64_t *p, uint64_t *old, uint64_t v) {
	if (*p != *old) {
		*old = *p;
		return 0;
	}
	*p = v;
	return 1;
}

#include "firn.h"

enum { TICK = 100, BITS = 2, COROUTINES = 12, STACK = 128 << 10, FILES = 8, IDS = 4096 };

static uint64_t state;
static uint64_t draw(uint64_t n) {
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (state >> 11) % n;
}

static ucontext_t scheduler, contexts[COROUTINES];
static char stacks[COROUTINES][STACK];
static int alive[COROUTINES], running, count;
static void (*work[COROUTINES])(int);
static int argument[COROUTINES];

static int64_t now, speed;
static int noise, wrong;
static const char *what = "";
static uint64_t schedule_, ids;

static void step(void) { swapcontext(&contexts[running], &scheduler); }
static int64_t clock_now(void) { return noise ? (int64_t)(draw(UINT64_C(1) << 40) << 24 | draw(1 << 24)) : now; }
static void fail(const char *why) {
	wrong = 1;
	what = why;
}

static void entry(void) {
	int me = running;
	work[me](argument[me]);
	alive[me] = 0;
	swapcontext(&contexts[me], &scheduler);
}

static void spawn(void (*f)(int), int arg) {
	int i = count++;
	getcontext(&contexts[i]);
	contexts[i].uc_stack.ss_sp = stacks[i];
	contexts[i].uc_stack.ss_size = STACK;
	contexts[i].uc_link = &scheduler;
	makecontext(&contexts[i], entry, 0);
	work[i] = f, argument[i] = arg, alive[i] = 1;
}

/* The store: who has a worker, and up to which tick. */
static struct { int owner; uint64_t horizon; } store[2];
/* The pages, and which one the path names. */
static uint64_t words[FILES][512];
static int worker_of[FILES], files, path;
static unsigned char issued[2][IDS]; /* by worker and number */

static void issue(int worker, uint64_t number) {
	ids++;
	if (number >= IDS)
		return;
	if (issued[worker][number]++)
		fail("repeat");
}

static uint64_t last_of(uint64_t tick) { return ((tick + 1) << BITS) - 1; }
static uint64_t ahead(uint64_t of) {
	uint64_t t = (uint64_t)now / TICK + draw(6);
	return t > of + 1 ? t : of + 1;
}

static void agent(int name) {
	int term;
	for (term = 0; term < 3; term++) {
		int worker = (int)draw(2), owner = 100 + name * 10 + term, n, me;
		uint64_t base, have, word, *w;
		step();
		if (files == FILES)
			return;
		base = store[worker].horizon;
		have = store[worker].horizon = ahead(base);
		store[worker].owner = owner;
		me = files++;
		w = words[me];
		memset(w, 0, 4096);
		w[128] = last_of(base), w[144] = last_of(have), w[146] = noise ? draw(UINT64_C(1) << 52) : 0;
		worker_of[me] = worker;
		step();
		path = me + 1;
		for (n = (int)draw(8); n > 0; n--) {
			uint64_t want = ahead(have);
			step();
			if (store[worker].owner != owner)
				break;
			store[worker].horizon = have = want;
			FIRN_STORE_(&w[144], last_of(want));
		}
		if (draw(3) == 0)
			continue; /* killed */
		step();
		word = w[128], w[128] = FIRN_CLOSED_;
		FIRN_STORE_(&w[145], word);
		if (word > last_of(have))
			word = last_of(have);
		step();
		if (store[worker].owner == owner) {
			store[worker].owner = 0;
			store[worker].horizon = word >> BITS > base ? word >> BITS : base;
		}
	}
}

/* A holder on another host takes a worker and issues all that it may. */
static void other(int name) {
	int term;
	for (term = 0; term < 4; term++) {
		uint64_t n, base;
		int worker = (int)draw(2), rest;
		for (rest = (int)draw(60); rest > 0; rest--)
			step();
		base = store[worker].horizon;
		store[worker].owner = 1000 + name * 10 + term;
		store[worker].horizon = base + 2;
		for (n = last_of(base) + 1; n <= last_of(base + 2); n++)
			issue(worker, n);
	}
}

static struct { firn_page_ *page; int64_t highest; int busy; } processes[3];
static firn_page_ pages[64];
static int mapped;

static void look(int i) {
	firn_page_ *p = processes[i].page, *next;
	if (processes[i].busy || path == 0 || mapped == 64) {
		step();
		return;
	}
	processes[i].busy = 1;
	step();
	if (p == NULL || words[path - 1] != p->words) {
		int file = path - 1;
		next = &pages[mapped++];
		memset(next, 0, sizeof *next);
		next->words = words[file], next->tick = TICK, next->even = 3, next->ahead = 2 * TICK;
		next->seq_bits = BITS, next->time_shift = BITS + 1, next->fixed = (uint64_t)worker_of[file] << BITS;
		if (p != NULL)
			next->above = firn_leave_(p);
		FIRN_STORE_(&processes[i].page, next);
	}
	processes[i].busy = 0;
}

static void thread(int i) {
	int calls;
	for (calls = 0; calls < 30; calls++) {
		firn_page_ *p = processes[i].page;
		int64_t before = processes[i].highest;
		uint64_t first = 0, last = 0;
		int answer;
		if (p == NULL) {
			look(i);
			continue;
		}
		answer = firn_take_(p, 1 + draw(3), &first, &last);
		if (answer == FIRN_WAIT_) {
			step();
			continue;
		}
		if (answer != FIRN_TAKE_) {
			look(i);
			continue;
		}
		if (!noise && (int64_t)((last >> BITS) * TICK) > now + 2 * TICK)
			fail("too far ahead of the clock");
		for (; first <= last; first++) {
			issue((int)(p->fixed >> BITS), first);
			if (!noise && firn_id_(p, first) <= before)
				fail("order");
		}
		if (firn_id_(p, last) > processes[i].highest)
			processes[i].highest = firn_id_(p, last);
	}
}

static void run(void) {
	int i, n, left, steps;
	state = 0x9E3779B97F4A7C15u * (schedule_ + 1);
	for (i = 0; i < 20; i++)
		draw(2);
	memset(store, 0, sizeof store), memset(issued, 0, sizeof issued), memset(processes, 0, sizeof processes);
	files = path = mapped = count = 0;
	now = 300, noise = draw(3) == 0, speed = draw(2) ? 30 : draw(2) ? 3 : 300;
	for (i = 1 + (int)draw(2); i > 0; i--)
		spawn(agent, i);
	spawn(other, 0);
	for (i = (int)draw(3); i >= 0; i--)
		for (n = 1 + (int)draw(2); n > 0; n--)
			spawn(thread, i);
	for (left = 1, steps = 0; left && steps < 1200 && !wrong; steps++) {
		running = (int)draw((uint64_t)count);
		for (n = (int)draw(12); n >= 0 && alive[running] && !wrong; n--) {
			if (draw(4) == 0)
				now += (int64_t)draw((uint64_t)speed);
			swapcontext(&scheduler, &contexts[running]);
		}
		for (left = i = 0; i < count; i++)
			left += alive[i];
	}
	for (i = 0; i < files && !wrong; i++)
		if (words[i][128] != FIRN_CLOSED_ && words[i][128] > words[i][144] && words[i][128] >> BITS > words[i][144] >> BITS)
			fail("the word ran away");
}

int main(int argc, char **argv) {
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	for (schedule_ = 0; schedule_ < n; schedule_++) {
		run();
		if (wrong) {
			printf("schedule %llu: %s\n", (unsigned long long)schedule_, what);
			return 1;
		}
	}
	printf("%llu schedules, %llu ids\n", (unsigned long long)n, (unsigned long long)ids);
	return 0;
}
