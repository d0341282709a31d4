package id.firn;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * A mapped page: a copy of what never changes, and how numbers are taken. docs/reference/page.md has the format and the
 * rules; clients/c/firn.h is the same in C.
 *
 * <p>Memory order: every access to a word of the page is a volatile access of an aligned 64-bit VarHandle, or its
 * compareAndSet. Both are sequentially consistent, as {@link #left} is, and neither takes a lock. So each number is taken once: it
 * is written by a compare-and-swap of one word. The horizon only rises, so that an older value refuses more.
 *
 * <p>A page is unmapped when nothing refers to it any more. Each method that uses the memory keeps its page until it returns.
 */
class Page {
	static final int SIZE = 4096, HEADER = 1024;

	static final int NUMBER = 1024, HORIZON = 1152, CLOSED_AT = 1160, MONOTONIC = 1168, DRAWS = 1280;
	static final long CLOSED = -1;

	/** Nanoseconds ahead of the clock, and of what the layout allows, at which the agent takes a word for damage. */
	private static final long TOO_FAR = 1_000_000_000;

	/** Answers besides a number, which is not negative. */
	static final long WAIT = -1, ENDED = -2, SHUT = -3, PARTED = -4;

	private static final VarHandle WORD = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

	private final ByteBuffer memory;
	private final long tick, fixed, even, ahead;
	private final int seqBits, seqShift, timeShift;
	private final byte[] identity; // shard, pool id, pool, layout
	final long device, inode;
	final int lanes, lane; // how many pages the agent has, and which of them this is
	final Path path;
	final int at; // 0: path is the one that was opened; n: it is that path with .n after it

	/** Numbers are taken only above this one: what the process may have taken from pages before. Set before others see the page. */
	long above;

	/** This process has left the page. */
	private volatile boolean left;

	/** Takes a page whose header {@link Place} has checked. */
	Page(ByteBuffer memory, Path path, int at) {
		this.memory = memory.order(ByteOrder.LITTLE_ENDIAN);
		this.path = path;
		this.at = at;
		device = memory.getLong(40);
		inode = memory.getLong(48);
		tick = memory.getLong(96);
		fixed = memory.getLong(104);
		even = memory.getLong(112);
		ahead = memory.getLong(120);
		seqBits = memory.get(128);
		seqShift = memory.get(129);
		timeShift = memory.get(130);
		lanes = Math.max(memory.get(131), 1);
		lane = memory.get(132);
		identity = new byte[8 + HEADER - 192];
		memory.get(72, identity, 0, 8);
		memory.get(192, identity, 8, HEADER - 192);
	}

	long load(int word) {
		return (long) WORD.getVolatile(memory, word);
	}

	boolean swap(long old, long value) {
		return WORD.compareAndSet(memory, NUMBER, old, value);
	}

	/** Nanoseconds since the layout's epoch, not below 0. {@link System#nanoTime} is CLOCK_MONOTONIC. It serves order only. */
	long now() {
		return Math.max(System.nanoTime() + load(MONOTONIC), 0);
	}

	/** What a client does that finds these values: the first number that it may take, or an answer. It does not write. */
	final long first(long word, long horizon, long now) {
		if (word == CLOSED) {
			return SHUT;
		}
		long next = Math.max(word, above) + 1;
		if (next > horizon || next < 0) {
			return ENDED;
		}
		if (now >= ((next >>> seqBits) + 1) * tick) { // the tick of next is over
			long t = now / tick;
			if (t > horizon >>> seqBits) {
				return ENDED;
			}
			next = t << seqBits | (next & even);
		}
		return (next >>> seqBits) * tick > now + ahead ? WAIT : next;
	}

	/** The last of up to n numbers from first on. */
	final long last(long first, long horizon, long now, long n) {
		long allowed = Math.min((((now + ahead) / tick + 1) << seqBits) - 1, horizon);
		return n - 1 < allowed - first ? first + (n - 1) : allowed;
	}

	/** Takes up to n numbers, and returns the first one, or an answer. The last one is in last[0], which may be null if n is 1. */
	final long take(long n, long[] last) {
		try {
			for (;;) {
				long word = load(NUMBER), horizon = load(HORIZON), now = now();
				long first = first(word, horizon, now);
				if (first < 0) {
					return first;
				}
				long end = n == 1 ? first : last(first, horizon, now, n);
				if (!swap(word, end)) {
					continue;
				}
				// The numbers are taken first and compared after, on their own values. So the horizon holds
				// however long this thread pauses anywhere.
				if (end > load(HORIZON)) {
					return ENDED;
				}
				if (left) {
					return PARTED;
				}
				if (last != null) {
					last[0] = end;
				}
				return first;
			}
		} finally {
			Reference.reachabilityFence(this);
		}
	}

	final long id(long number) {
		return (number >>> seqBits) << timeShift | fixed | (number & ((1L << seqBits) - 1)) << seqShift;
	}

	/** For how many nanoseconds a client waits for the next number. */
	final long until() {
		try {
			long word = load(NUMBER);
			return word == CLOSED ? 0 : ((Math.max(word, above) + 1) >>> seqBits) * tick - ahead - now();
		} finally {
			Reference.reachabilityFence(this);
		}
	}

	/** For how many nanoseconds the page has no ids. */
	final long ended() {
		try {
			return Math.max(now() - ((load(HORIZON) >>> seqBits) + 1) * tick, 0);
		} finally {
			Reference.reachabilityFence(this);
		}
	}

	/**
	 * Makes every call that takes a number from now on drop it, and returns the last number of a tick above which no call of
	 * this process has issued one. The mark comes first: a call that does not see it has written the number before.
	 */
	final long leave() {
		try {
			left = true;
			long word = load(NUMBER);
			if (word == CLOSED) {
				word = load(CLOSED_AT);
				if (word == 0) { // the agent has not written it, or never will: nothing is further ahead of the clock
					word = (now() + ahead) / tick << seqBits;
				}
			}
			// A word that ran away was written by another program: no call has issued that number, and to wait for it could take years.
			word = Math.min(word, (now() + ahead + TOO_FAR) / tick << seqBits);
			return Math.max((((word >>> seqBits) + 1) << seqBits) - 1, above); // this page may be behind one before it
		} finally {
			Reference.reachabilityFence(this);
		}
	}

	/** Returns the lane that a client takes: each draw gives the next one. */
	final int draw() {
		try {
			return lanes < 2 || lane != 0 ? at : (int) Long.remainderUnsigned((long) WORD.getAndAdd(memory, DRAWS, 1L), lanes);
		} finally {
			Reference.reachabilityFence(this);
		}
	}

	/** Whether the page gives ids now, or after a wait for the clock. */
	final boolean gives() {
		try {
			long first = first(load(NUMBER), load(HORIZON), now());
			return first >= 0 || first == WAIT;
		} finally {
			Reference.reachabilityFence(this);
		}
	}

	/** Whether a client of this page may change to the other one by itself. */
	final boolean alike(Page other) {
		return Arrays.equals(identity, other.identity);
	}
}
