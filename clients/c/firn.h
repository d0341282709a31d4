/* firn.h: ids from a shared page, for C and C++ (gcc, clang) on Linux, 64-bit and little-endian.
 *
 * One process of the host, the agent, holds a worker and serves a page, which is a file. Other processes map the file and
 * take ids from it. docs/reference/page.md has the format.
 *
 *     firn *ids;
 *     int code = firn_open(&ids, "/run/firn/shop", 1000);
 *     if (code != 0) { fprintf(stderr, "%s\n", firn_error(ids, code)); return 1; }
 *     int64_t id;
 *     code = firn_next(ids, &id);
 *     ...
 *     firn_close(ids);
 *
 * A handle may be used by many threads at once, and by parent and child after fork. It holds no id between two calls. Ids of
 * one process increase. Where the agent has several lanes, a handle takes one of them and keeps to it; a child made by fork
 * has that of its parent. Only firn_close must not run beside other calls.
 */
#ifndef FIRN_H
#define FIRN_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

#if !defined(__linux__) || !defined(__LP64__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "firn.h: pages work on 64-bit little-endian Linux only"
#endif
#if __GCC_ATOMIC_LLONG_LOCK_FREE != 2
#error "firn.h: this compiler has no lock-free 64-bit atomics, and a lock would not be shared with other processes"
#endif

/* What a call returns: 0, or one of these. firn_error has a text for each that says what to do. */
enum {
	FIRN_OK = 0,
	FIRN_ENOPAGE = 1,  /* there is no page at the path */
	FIRN_ECLOSED = 2,  /* the agent of the page has ended */
	FIRN_EENDED = 3,   /* nobody extended the page in time: the agent or its store is away */
	FIRN_EBUSY = 4,    /* the ids of this moment are used up, and the call waited as long as it may */
	FIRN_EUNUSABLE = 5, /* the file is no page, or not one of this host, or its file system cannot have pages */
	FIRN_EPOOL = 6,    /* the path has a page of another pool, layout or shard now */
	FIRN_ESYSTEM = 7   /* a system call failed */
};

typedef struct firn firn;

/* Opens the page at a path. wait_ms is how long a call waits while there is no page that can be used, or no id without
 * waiting: in firn_open for a page, in the other calls since they last got an id. -1 means without end. On an error
 * *f can be used for firn_error and firn_close only. */
static int firn_open(firn **f, const char *path, int wait_ms);
/* Takes one id. */
static int firn_next(firn *f, int64_t *id);
/* Takes n ids, or none: after an error the contents of ids mean nothing. */
static int firn_append(firn *f, int64_t *ids, size_t n);
/* The text for an error of the last call of this thread. It is valid until the next call of this thread. f may be NULL. */
static const char *firn_error(firn *f, int code);
/* Frees a handle. f may be NULL. */
static void firn_close(firn *f);

/* ---- memory order ------------------------------------------------------------------------------------------
 *
 * Every access to a word that others write is 64 bits wide, aligned, lock-free and sequentially consistent. What each
 * needs, at least:
 *
 *  number, load         nothing: a stale value makes the compare-and-swap fail.
 *  number, swap         coherence of one word, which every atomic read-modify-write has: all of them have one order. So
 *                       each value is taken once, and one that comes after the agent's exchange finds FIRN_CLOSED_.
 *  horizon, load after  that it is not torn, and not moved before the swap. If the processor did move it, the value would be
 *                       an older one, and older ones are lower: the horizon only rises. So even that is safe.
 *  left and number      sequential consistency, for order only (not for uniqueness): firn_leave_ stores left, then loads
 *                       number; a call swaps number, then loads left. One of the two sees the other.
 *  page, load           acquire: what firn_map_ wrote to *page is there. seq_cst is more.
 *  offset, closed_at    that they are not torn. They serve order only.
 *
 * On x86 a seq_cst load is a plain load. On arm64 it is ldar, and the swap is casal or an ldaxr/stlxr pair.
 */
#ifndef FIRN_LOAD_
#define FIRN_LOAD_(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define FIRN_STORE_(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define FIRN_SWAP_(p, old, v) __atomic_compare_exchange_n((p), (old), (v), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#endif
#ifndef FIRN_CLOCK_
#define FIRN_CLOCK_() firn_clock_()
#endif

#define FIRN_CLOSED_ UINT64_MAX
#define FIRN_SIZE_ 4096
#define FIRN_FAR_ 1000000000ULL  /* a number that is further ahead of the clock was taken by no client */
#define FIRN_GLANCE_ 100000000LL /* between two looks at the path, at least */
#define FIRN_NAP_ 20000000LL     /* a wait goes no longer without a look at the page */
#define FIRN_PAUSE_ 10000000LL   /* between two tries, where there is no page */

/* Answers of firn_take_, besides errors. */
enum { FIRN_TAKE_ = 0, FIRN_WAIT_ = -1, FIRN_PARTED_ = -2 };

/* One mapped page: a copy of what never changes, and where its words are. */
typedef struct firn_page_ {
	uint64_t *words; /* the page */
	uint64_t tick, fixed, even, ahead;
	unsigned seq_bits, seq_shift, time_shift;
	uint64_t above; /* take only above: what this process may have taken from pages before this one */
	uint64_t left;  /* 1 once this process has left the page */
	uint64_t device, inode;
	int64_t born;
	unsigned lanes, lane; /* how many pages the agent has, and which of them this is */
	unsigned at;          /* 0: it is at the path of the handle; n: at that path with .n after it */
	char identity[16 + 64 + 256 + 512]; /* shard, pool id, pool, layout */
	struct firn_page_ *before;          /* the one before it: another thread may be in it yet */
} firn_page_;

struct firn {
	firn_page_ *page; /* the current one */
	uint64_t looker;  /* pid of the process that looks at the path; of another process: it was copied by a fork */
	int64_t looked;   /* when, on CLOCK_MONOTONIC */
	int found;        /* what the last look came to: an error, or 0 */
	int wait_ms;
	char *path;
};

static __thread char firn_text_[PATH_MAX + 256]; /* of the last error of this thread */
static __thread int firn_code_;

#define firn_word_(p, at) ((p)->words + (at) / 8)
#define firn_number_(p) firn_word_(p, 1024)
#define firn_horizon_(p) firn_word_(p, 1152)
#define firn_closed_at_(p) firn_word_(p, 1160)
#define firn_offset_(p) firn_word_(p, 1168)
#define firn_draws_(p) firn_word_(p, 1280)

static inline int64_t firn_clock_(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Nanoseconds since the layout's epoch, by the page's clock. Not below 0. */
static inline uint64_t firn_now_(firn_page_ *p) {
	uint64_t now = (uint64_t)FIRN_CLOCK_() + FIRN_LOAD_(firn_offset_(p));
	return (int64_t)now < 0 ? 0 : now;
}

/* What a client does that finds these values and wants n numbers. It does not write. */
static inline int firn_look_(firn_page_ *p, uint64_t word, uint64_t horizon, uint64_t now, uint64_t n, uint64_t *first, uint64_t *last) {
	uint64_t next, allowed;
	if (word == FIRN_CLOSED_)
		return FIRN_ECLOSED;
	next = (word > p->above ? word : p->above) + 1;
	*first = next;
	if (next > horizon)
		return FIRN_EENDED;
	if (now >= ((next >> p->seq_bits) + 1) * p->tick) { /* the tick of next is over */
		uint64_t t = now / p->tick;
		if (t > horizon >> p->seq_bits)
			return FIRN_EENDED;
		next = t << p->seq_bits | (next & p->even);
		*first = next;
	}
	if ((next >> p->seq_bits) * p->tick > now + p->ahead)
		return FIRN_WAIT_;
	if (n == 1) {
		*last = next;
		return FIRN_TAKE_;
	}
	allowed = (((now + p->ahead) / p->tick + 1) << p->seq_bits) - 1;
	if (allowed > horizon)
		allowed = horizon;
	*last = n - 1 < allowed - next ? next + (n - 1) : allowed;
	return FIRN_TAKE_;
}

/* Takes up to n numbers, *first to *last. */
static inline int firn_take_(firn_page_ *p, uint64_t n, uint64_t *first, uint64_t *last) {
	uint64_t word = FIRN_LOAD_(firn_number_(p));
	for (;;) {
		uint64_t horizon = FIRN_LOAD_(firn_horizon_(p));
		int answer = firn_look_(p, word, horizon, firn_now_(p), n, first, last);
		if (answer != FIRN_TAKE_)
			return answer;
		if (FIRN_SWAP_(firn_number_(p), &word, *last))
			break;
	}
	/* The numbers are taken first and compared after, on their own values. So the horizon holds however long this
	 * process pauses anywhere. */
	if (*last > FIRN_LOAD_(firn_horizon_(p)))
		return FIRN_EENDED;
	if (FIRN_LOAD_(&p->left))
		return FIRN_PARTED_;
	return FIRN_TAKE_;
}

static inline int64_t firn_id_(firn_page_ *p, uint64_t number) {
	return (int64_t)((number >> p->seq_bits) << p->time_shift | p->fixed | (number & ((UINT64_C(1) << p->seq_bits) - 1)) << p->seq_shift);
}

/* Makes every call that takes a number from now on drop it, and returns the last number of a tick above which no call of
 * this process has issued one. The mark comes first: a call that does not see it has written the number before. */
static inline uint64_t firn_leave_(firn_page_ *p) {
	uint64_t word, above, most;
	FIRN_STORE_(&p->left, (uint64_t)1);
	word = FIRN_LOAD_(firn_number_(p));
	if (word == FIRN_CLOSED_) {
		word = FIRN_LOAD_(firn_closed_at_(p));
		if (word == 0) /* the agent has not written it, or never will: nothing is further ahead of the clock */
			word = (firn_now_(p) + p->ahead) / p->tick << p->seq_bits;
	}
	/* A word that ran away was written by another program: no call has issued that number, and to wait for it could take
	 * years. */
	most = (firn_now_(p) + p->ahead + FIRN_FAR_) / p->tick << p->seq_bits;
	if (word > most)
		word = most;
	above = (((word >> p->seq_bits) + 1) << p->seq_bits) - 1;
	return above > p->above ? above : p->above; /* this page may be behind one before it */
}

/* ---- finding a page -------------------------------------------------------------------------------------- */

static inline int firn_fail_(int code, const char *path, const char *why) {
	firn_code_ = code;
	snprintf(firn_text_, sizeof firn_text_, "firn: page %s: %s", path, why);
	return code;
}

static inline int firn_fail_system_(const char *path, const char *what) {
	char why[200];
	snprintf(why, sizeof why, "%s: %s", what, strerror(errno));
	return firn_fail_(FIRN_ESYSTEM, path, why);
}

static inline const char *firn_cure_(int code) {
	switch (code) {
	case FIRN_OK: return "no error";
	case FIRN_ENOPAGE: return "there is no page; start its agent, or correct the path";
	case FIRN_ECLOSED: return "its agent has ended; start it again: ids resume when it serves the page";
	case FIRN_EENDED: return "ids have ended: its agent or the agent's store is away; retry, ids resume when both are back";
	case FIRN_EBUSY: return "the ids of this moment are used up; retry, or allow a longer wait";
	case FIRN_EPOOL: return "the path has a page of another pool, layout or shard now; open it again to use it";
	}
	return "it cannot be used";
}

static inline uint64_t firn_u64_(const unsigned char *b, int at) {
	uint64_t v;
	memcpy(&v, b + at, 8);
	return v;
}

/* The boot id as 16 bytes. */
static inline int firn_boot_(unsigned char id[16]) {
	char text[64];
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC), n, i = 0, digits = 0;
	if (fd < 0)
		return -1;
	n = (int)read(fd, text, sizeof text);
	close(fd);
	memset(id, 0, 16);
	for (i = 0; i < n && digits < 32; i++) {
		char c = text[i];
		int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
		if (v < 0)
			continue;
		id[digits / 2] = (unsigned char)(id[digits / 2] << 4 | v);
		digits++;
	}
	return digits == 32 ? 0 : -1;
}

/* When a file was made, in nanoseconds since 1970; 0 where its file system does not say. */
static inline int64_t firn_born_(int fd) {
#ifdef SYS_statx
	/* struct statx of linux/stat.h: its mask is at byte 0, the time of birth at byte 80. STATX_BTIME is 0x800. */
	unsigned char x[256];
	uint32_t mask, ns;
	int64_t sec;
	memset(x, 0, sizeof x);
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, 0x800, x) != 0)
		return 0;
	memcpy(&mask, x, 4);
	memcpy(&sec, x + 80, 8);
	memcpy(&ns, x + 88, 4);
	return mask & 0x800 ? sec * 1000000000 + ns : 0;
#else
	return 0;
#endif
}

/* Says why the file cannot be a page of this process; NULL where it can. */
static inline const char *firn_refuse_(const unsigned char *b, int fd, const struct stat *st) {
	unsigned char boot[16];
	struct stat space;
	uint32_t format, size;
	uint64_t namespace_ = 0;
	memcpy(&format, b + 8, 4);
	memcpy(&size, b + 12, 4);
	if (memcmp(b, "firnpage", 8) != 0)
		return "it is not a page";
	if (format != 1)
		return "it has a format that this firn.h does not know: use a newer one";
	if (size != FIRN_SIZE_ || b[128] > 62 || b[129] > 63 || b[130] > 63 || b[131] > 64 || (b[132] > 0 && b[132] >= b[131]) || (int64_t)firn_u64_(b, 96) <= 0 ||
		firn_u64_(b, 120) > 1000000000 || firn_u64_(b, 112) >> b[128] != 0)
		return "its header is damaged";
	if (firn_boot_(boot) != 0)
		return "cannot tell which run of the system this is: /proc is needed";
	if (memcmp(boot, b + 16, 16) != 0)
		return "the system was started again since, or it is of another host; start its agent here";
	if (stat("/proc/self/ns/time", &space) == 0)
		namespace_ = space.st_ino;
	if (namespace_ != firn_u64_(b, 32))
		return "it is of another time namespace";
	if (firn_u64_(b, 40) != (uint64_t)st->st_dev || firn_u64_(b, 48) != (uint64_t)st->st_ino || (int64_t)firn_u64_(b, 56) != firn_born_(fd))
		return "it is a copy; use the original";
	return NULL;
}

/* The names of file systems, by type. Each that is allowed keeps one copy of a file in memory, whichever way it is
 * reached, and writes allocated blocks in place. */
static inline int firn_allowed_(int fd, const char *path) {
	struct statfs fs;
	char why[160];
	const char *name = "of an unknown type";
	if (fstatfs(fd, &fs) != 0)
		return firn_fail_system_(path, "statfs");
	switch ((unsigned long)fs.f_type) {
	case 0x01021994: case 0xEF53: case 0x58465342: return 0; /* tmpfs, ext4, xfs */
	case 0x794c7630: name = "overlay"; break;
	case 0x6969: name = "NFS"; break;
	case 0x65735546: name = "FUSE or virtiofs"; break;
	case 0x01021997: name = "9p"; break;
	case 0x9123683E: name = "btrfs"; break;
	}
	snprintf(why, sizeof why, "its file system is %s: use a path on tmpfs, ext4 or xfs, such as /dev/shm or /run", name);
	return firn_fail_(FIRN_EUNUSABLE, path, why);
}

/* Maps the page at a path. */
static inline int firn_map_(const char *path, firn_page_ **page) {
	struct stat st;
	const char *why;
	unsigned char *b;
	firn_page_ *p;
	int code, fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? firn_fail_(FIRN_ENOPAGE, path, firn_cure_(FIRN_ENOPAGE)) : firn_fail_system_(path, "open");
	code = firn_allowed_(fd, path);
	if (code == 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != FIRN_SIZE_))
		code = firn_fail_(FIRN_EUNUSABLE, path, "it is not a page");
	if (code != 0) {
		close(fd);
		return code;
	}
	b = (unsigned char *)mmap(NULL, FIRN_SIZE_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p = (firn_page_ *)calloc(1, sizeof *p);
	if (b == (unsigned char *)MAP_FAILED || p == NULL) {
		code = firn_fail_system_(path, "mmap");
	} else if ((why = firn_refuse_(b, fd, &st)) != NULL) {
		code = firn_fail_(FIRN_EUNUSABLE, path, why);
	}
	close(fd);
	if (code != 0) {
		free(p);
		if (b != (unsigned char *)MAP_FAILED)
			munmap(b, FIRN_SIZE_);
		return code;
	}
	p->words = (uint64_t *)(void *)b;
	p->tick = firn_u64_(b, 96);
	p->fixed = firn_u64_(b, 104);
	p->even = firn_u64_(b, 112);
	p->ahead = firn_u64_(b, 120);
	p->seq_bits = b[128];
	p->seq_shift = b[129];
	p->time_shift = b[130];
	p->lanes = b[131] > 1 ? b[131] : 1;
	p->lane = b[132];
	p->device = (uint64_t)st.st_dev;
	p->inode = (uint64_t)st.st_ino;
	p->born = (int64_t)firn_u64_(b, 56);
	memcpy(p->identity, b + 72, 8);
	memcpy(p->identity + 16, b + 192, 64 + 256 + 512);
	*page = p;
	return 0;
}

/* Frees a page that no call can be in. */
static inline void firn_unmap_(firn_page_ *p) {
	munmap(p->words, FIRN_SIZE_);
	free(p);
}

typedef struct firn_path_ {
	char at[PATH_MAX + 16];
} firn_path_;

/* The path of a lane of the agent at a path. */
static inline firn_path_ firn_lane_(const char *path, unsigned lane) {
	firn_path_ p;
	if (lane == 0)
		snprintf(p.at, sizeof p.at, "%s", path);
	else
		snprintf(p.at, sizeof p.at, "%s.%u", path, lane);
	return p;
}

/* Maps the page of a lane. */
static inline int firn_map_lane_(const char *path, unsigned lane, firn_page_ **page) {
	firn_path_ p = firn_lane_(path, lane);
	int code = firn_map_(p.at, page);
	if (code == 0)
		(*page)->at = lane;
	return code;
}

/* Takes the lane of this handle: from p, the page at the path, it goes to the lane's page, if that gives ids. Each draw gives
 * the next lane. */
static inline firn_page_ *firn_draw_(const char *path, firn_page_ *p) {
	firn_page_ *q;
	uint64_t draw, first, last;
	int answer;
	if (p->lanes < 2 || p->lane != 0)
		return p;
	draw = FIRN_LOAD_(firn_draws_(p));
	while (!FIRN_SWAP_(firn_draws_(p), &draw, draw + 1))
		;
	if (draw % p->lanes == 0 || firn_map_lane_(path, (unsigned)(draw % p->lanes), &q) != 0)
		return p;
	answer = firn_look_(q, FIRN_LOAD_(firn_number_(q)), FIRN_LOAD_(firn_horizon_(q)), firn_now_(q), 1, &first, &last);
	if (memcmp(q->identity, p->identity, sizeof p->identity) != 0 || q->lane != q->at || (answer != FIRN_TAKE_ && answer != FIRN_WAIT_)) {
		firn_unmap_(q);
		return p;
	}
	firn_unmap_(p);
	return q;
}

/* Maps the page that is now where p was, if that is another one. */
static inline int firn_another_(firn *f, firn_page_ *p, firn_page_ **next) {
	struct stat st;
	firn_path_ path = firn_lane_(f->path, p->at);
	int code;
	if (lstat(path.at, &st) == 0 && (uint64_t)st.st_dev == p->device && (uint64_t)st.st_ino == p->inode)
		return 0;
	if ((code = firn_map_lane_(f->path, p->at, next)) != 0)
		return code;
	if (memcmp((*next)->identity, p->identity, sizeof p->identity) == 0)
		return 0;
	firn_unmap_(*next);
	*next = NULL;
	return firn_fail_(FIRN_EPOOL, path.at, firn_cure_(FIRN_EPOOL));
}

/* Changes from p to another page, if there is one that this process may use. Returns 1 if it did. */
static inline int firn_follow_(firn *f, firn_page_ *p) {
	firn_page_ *next = NULL, *first;
	int found = firn_another_(f, p, &next);
	if (next == NULL && p->at != 0 && firn_map_(f->path, &first) == 0) {
		/* An agent that was started with fewer lanes does not serve this one any more. */
		if (first->lanes <= p->at && memcmp(first->identity, p->identity, sizeof p->identity) == 0)
			next = firn_draw_(f->path, first);
		else
			firn_unmap_(first);
	}
	f->found = next == NULL ? found : 0;
	if (next == NULL)
		return 0;
	next->above = firn_leave_(p);
	next->before = p;
	FIRN_STORE_(&f->page, next);
	return 1;
}

/* Looks at the path, at most every 100 ms, unless this process has left p: then it must. Returns 1 if calls have
 * another page than p now. */
static inline int firn_glance_(firn *f, firn_page_ *p) {
	uint64_t me = (uint64_t)getpid(), looker = FIRN_LOAD_(&f->looker);
	int changed;
	if (FIRN_LOAD_(&f->page) != p)
		return 1;
	if (looker == me || !FIRN_SWAP_(&f->looker, &looker, me))
		return 0; /* another thread does; what a parent did when it forked is done again here */
	changed = FIRN_LOAD_(&f->page) != p;
	if (!changed && (FIRN_LOAD_(&p->left) || f->looked == 0 || firn_clock_() - f->looked >= FIRN_GLANCE_)) {
		f->looked = firn_clock_();
		changed = firn_follow_(f, p);
	}
	FIRN_STORE_(&f->looker, (uint64_t)0);
	return changed;
}

static inline void firn_sleep_(int64_t ns) {
	struct timespec t;
	if (ns <= 0)
		return;
	t.tv_sec = ns / 1000000000;
	t.tv_nsec = ns % 1000000000;
	nanosleep(&t, NULL);
}

/* The error of a page whose ids have ended, with the time when they did. */
static inline int firn_fail_ended_(const char *path, firn_page_ *p) {
	uint64_t now = firn_now_(p), end = ((FIRN_LOAD_(firn_horizon_(p)) >> p->seq_bits) + 1) * p->tick;
	time_t at = time(NULL) - (now > end ? (time_t)((now - end) / 1000000000) : 0);
	struct tm utc;
	char when[32] = "", why[200];
	if (gmtime_r(&at, &utc) != NULL)
		strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
	snprintf(why, sizeof why, "ids ended at %s: its agent or the agent's store is away; retry, ids resume when both are back", when);
	return firn_fail_(FIRN_EENDED, path, why);
}

/* Rests after a refusal, or returns the error if the call has waited for long enough. */
static inline int firn_rest_(firn *f, firn_page_ *p, int answer, uint64_t first, int64_t *since) {
	int64_t now = firn_clock_(), ns = FIRN_PAUSE_;
	int code = answer == FIRN_WAIT_ ? FIRN_EBUSY : answer;
	if (*since == 0)
		*since = now;
	if (f->wait_ms >= 0 && now - *since >= (int64_t)f->wait_ms * 1000000) {
		if (code != FIRN_EBUSY && f->found != 0)
			code = f->found;
		if (code == FIRN_EENDED)
			return firn_fail_ended_(f->path, p);
		if (firn_code_ != code || code == FIRN_ECLOSED || code == FIRN_EBUSY)
			firn_fail_(code, f->path, firn_cure_(code));
		return code;
	}
	if (answer == FIRN_WAIT_) {
		ns = (int64_t)((first >> p->seq_bits) * p->tick) - (int64_t)p->ahead - (int64_t)firn_now_(p);
		if (ns > FIRN_NAP_)
			ns = FIRN_NAP_;
	}
	firn_sleep_(ns);
	return 0;
}

/* Takes up to n numbers of the current page, after a refusal. */
static int firn_wait_(firn *f, firn_page_ *p, int answer, uint64_t n, uint64_t *first, uint64_t *last, firn_page_ **from) {
	int64_t since = 0;
	for (;;) {
		int changed = answer == FIRN_WAIT_ ? 0 : firn_glance_(f, p), code;
		if (!changed && answer == FIRN_PARTED_)
			firn_sleep_(100000);
		else if (!changed && (code = firn_rest_(f, p, answer, *first, &since)) != 0)
			return code;
		p = FIRN_LOAD_(&f->page);
		answer = firn_take_(p, n, first, last);
		if (answer == FIRN_TAKE_) {
			*from = p;
			return 0;
		}
	}
}

static inline int firn_numbers_(firn *f, uint64_t n, uint64_t *first, uint64_t *last, firn_page_ **from) {
	firn_page_ *p = FIRN_LOAD_(&f->page);
	int answer = firn_take_(p, n, first, last);
	*from = p;
	return answer == FIRN_TAKE_ ? 0 : firn_wait_(f, p, answer, n, first, last, from);
}

/* ---- the calls ------------------------------------------------------------------------------------------- */

__attribute__((unused)) static int firn_open(firn **f, const char *path, int wait_ms) {
	int64_t since = firn_clock_();
	firn *h = (firn *)calloc(1, sizeof *h);
	int code;
	*f = NULL;
	if (h == NULL || (h->path = path[0] == '/' ? strdup(path) : realpath(path, NULL)) == NULL) {
		code = errno == ENOENT ? firn_fail_(FIRN_ENOPAGE, path, firn_cure_(FIRN_ENOPAGE)) : firn_fail_system_(path, "open");
		free(h);
		return code;
	}
	h->wait_ms = wait_ms;
	while ((code = firn_map_(h->path, &h->page)) == FIRN_ENOPAGE && (wait_ms < 0 || firn_clock_() - since < (int64_t)wait_ms * 1000000))
		firn_sleep_(FIRN_PAUSE_);
	if (code != 0) {
		free(h->path);
		free(h);
		return code;
	}
	h->page = firn_draw_(h->path, h->page);
	*f = h;
	return 0;
}

__attribute__((unused)) static int firn_next(firn *f, int64_t *id) {
	uint64_t first, last;
	firn_page_ *p;
	int code = firn_numbers_(f, 1, &first, &last, &p);
	if (code == 0)
		*id = firn_id_(p, first);
	return code;
}

__attribute__((unused)) static int firn_append(firn *f, int64_t *ids, size_t n) {
	while (n > 0) {
		uint64_t first, last;
		firn_page_ *p;
		int code = firn_numbers_(f, n, &first, &last, &p);
		if (code != 0)
			return code;
		for (; first <= last; first++, n--)
			*ids++ = firn_id_(p, first);
	}
	return 0;
}

__attribute__((unused)) static const char *firn_error(firn *f, int code) {
	(void)f;
	return code != 0 && code == firn_code_ ? firn_text_ : firn_cure_(code);
}

__attribute__((unused)) static void firn_close(firn *f) {
	firn_page_ *p;
	if (f == NULL)
		return;
	for (p = f->page; p != NULL;) {
		firn_page_ *before = p->before;
		firn_unmap_(p);
		p = before;
	}
	free(f->path);
	free(f);
}

#endif
