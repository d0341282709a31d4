package id.firn;

import static id.firn.FirnException.Code.BUSY;
import static id.firn.FirnException.Code.CLOSED;
import static id.firn.FirnException.Code.ENDED;
import static id.firn.FirnException.Code.NO_PAGE;
import static id.firn.FirnException.Code.POOL;
import static id.firn.FirnException.Code.SYSTEM;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Ids from a shared page. One process of the host, the agent, holds a worker and serves the page, which is a file. Other
 * processes map the file and take ids from it, without a call of the system.
 *
 * <pre>{@code
 * try (Firn ids = Firn.open(Path.of("/run/firn/page"))) {
 *     long id = ids.next();
 *     long[] more = ids.next(1000);
 * }
 * }</pre>
 *
 * <p>A Firn may be used by many threads at once; one for a process is enough. It holds no id between two calls. The ids of a
 * process increase if it has one Firn for a page, also when a new agent has made a new page: calls find that by themselves.
 *
 * <p>Where the agent has several lanes, a Firn takes one of them and keeps to it.
 *
 * <p>Where a call waits, a thread that is interrupted stops waiting: the call throws what it waited for, and the thread stays
 * interrupted.
 */
public final class Firn implements AutoCloseable {
	private static final long GLANCE = 100_000_000; // between two looks at the path, at least
	private static final long NAP = 20_000_000; // a wait goes no longer without a look at the page
	private static final long PAUSE = 10_000_000; // between two tries, where there is no page

	private final Path path;
	private final long wait; // nanoseconds

	private volatile Page page; // null once closed

	private final ReentrantLock looking = new ReentrantLock(); // of a look at the path; guards the rest
	private boolean looked;
	private long lookedAt;
	private FirnException found; // of the last look: why there is no other page

	private Firn(Path path, long wait) {
		this.path = path;
		this.wait = wait;
	}

	/**
	 * Opens the page at a path. Calls wait for 1 s at most.
	 *
	 * @param path of the page
	 * @return ids of the page
	 * @throws FirnException if there is no page that can be used
	 */
	public static Firn open(Path path) {
		return open(path, Duration.ofSeconds(1));
	}

	/**
	 * Opens the page at a path.
	 *
	 * @param path of the page
	 * @param wait how long a call waits while there is no page that can be used, or no id; zero: not at all. open waits
	 *     for a page that does not exist yet
	 * @return ids of the page
	 * @throws FirnException if there is no page that can be used
	 */
	public static Firn open(Path path, Duration wait) {
		if (wait.isNegative()) {
			throw new IllegalArgumentException("wait " + wait + ": zero or more");
		}
		Firn f = new Firn(path.toAbsolutePath(), nanoseconds(wait));
		for (long since = System.nanoTime();;) {
			try {
				f.page = f.draw(Place.map(f.path, 0));
				return f;
			} catch (FirnException e) {
				if (e.code() != NO_PAGE || System.nanoTime() - since >= f.wait || !sleep(PAUSE)) {
					throw e;
				}
			}
		}
	}

	private static long nanoseconds(Duration d) {
		try {
			return d.toNanos();
		} catch (ArithmeticException e) {
			return Long.MAX_VALUE;
		}
	}

	/**
	 * Takes one id.
	 *
	 * @return the id, which is not negative
	 * @throws FirnException if there is none within the wait
	 * @throws IllegalStateException after close
	 */
	public long next() {
		Page p = current();
		long number = p.take(1, null);
		if (number >= 0) {
			return p.id(number);
		}
		long[] id = new long[1];
		append(p, number, id);
		return id[0];
	}

	/**
	 * Takes ids, or none.
	 *
	 * @param n how many, 0 or more
	 * @return the ids, in increasing order
	 * @throws FirnException if there are not so many within the wait, which begins again with each id
	 * @throws IllegalStateException after close
	 */
	public long[] next(int n) {
		if (n < 0) {
			throw new IllegalArgumentException("number of ids " + n + ": 0 or more");
		}
		long[] ids = new long[n];
		if (n > 0) {
			append(current(), 0, ids);
		}
		return ids;
	}

	/** Makes all later calls fail. The page stays as it is, for other processes. */
	@Override
	public void close() {
		looking.lock();
		try {
			page = null; // calls that run have a reference; the memory is unmapped when nobody has one
		} finally {
			looking.unlock();
		}
	}

	private Page current() {
		Page p = page;
		if (p == null) {
			throw new IllegalStateException("firn: page " + path + ": this Firn is closed");
		}
		return p;
	}

	/** Fills ids. answer is what p said last, or 0 if it was not asked. */
	private void append(Page p, long answer, long[] ids) {
		long[] last = new long[1];
		long since = 0;
		boolean waits = false;
		for (int have = 0; have < ids.length;) {
			if (answer == 0) {
				answer = p.take(ids.length - have, last);
			}
			if (answer >= 0) {
				for (long number = answer; number <= last[0]; number++) {
					ids[have++] = p.id(number);
				}
				waits = false;
			} else if (answer == Page.PARTED) {
				changed(p);
			} else if (answer == Page.WAIT || !look(p)) {
				if (!waits) {
					waits = true;
					since = System.nanoTime();
				}
				long rest = answer == Page.WAIT ? Math.min(p.until(), NAP) : PAUSE;
				if (System.nanoTime() - since >= wait || !sleep(rest)) {
					throw why(p, answer);
				}
			}
			p = current();
			answer = 0;
		}
	}

	/** Sleeps, and returns false if the thread is interrupted. */
	private static boolean sleep(long ns) {
		if (ns > 0) {
			LockSupport.parkNanos(ns);
		}
		return !Thread.currentThread().isInterrupted();
	}

	/** Waits until the call that has left p is done with it. */
	private void changed(Page p) {
		looking.lock();
		try {
			if (page == p) {
				follow(p);
			}
		} finally {
			looking.unlock();
		}
	}

	/** Looks at the path, at most every 100 ms, and returns whether calls have another page than p now. */
	private boolean look(Page p) {
		looking.lock();
		try {
			if (page != p) {
				return true;
			}
			if (looked && System.nanoTime() - lookedAt < GLANCE) {
				return false;
			}
			looked = true;
			lookedAt = System.nanoTime();
			return follow(p);
		} finally {
			looking.unlock();
		}
	}

	/** Takes the lane of this Firn: from the page at the path it goes to the lane's page, if that gives ids. */
	private Page draw(Page p) {
		int lane = p.draw();
		if (lane == p.at) {
			return p;
		}
		try {
			Page next = Place.map(path, lane);
			return p.alike(next) && next.lane == lane && next.gives() ? next : p;
		} catch (FirnException e) {
			return p;
		}
	}

	/** Changes from p to another page, if there is one that this process may use. */
	private boolean follow(Page p) {
		found = null;
		Page next = null;
		try {
			next = another(p);
		} catch (FirnException e) {
			found = e;
		}
		if (next == null && p.at != 0) {
			next = withoutLane(p);
		}
		if (next == null) {
			return false;
		}
		found = null;
		next.above = p.leave();
		page = next;
		return true;
	}

	/** Maps the page that is now where p was; null if it is p. */
	private Page another(Page p) {
		try {
			if (Place.of(p.path).is(p)) {
				return null;
			}
		} catch (NoSuchFileException e) {
			throw new FirnException(NO_PAGE, p.path, "there is no page; start its agent, or correct the path", e);
		} catch (IOException e) {
			throw new FirnException(SYSTEM, p.path, e.toString(), e);
		}
		Page next = Place.map(path, p.at);
		if (!p.alike(next)) {
			throw new FirnException(POOL, p.path, "the path has a page of another pool, layout or shard now; open it again to use it");
		}
		return next;
	}

	/** Maps a page of an agent that was started with fewer lanes, and does not serve that of p any more; null if there is none. */
	private Page withoutLane(Page p) {
		try {
			Page first = Place.map(path, 0);
			return first.lanes <= p.at && p.alike(first) ? draw(first) : null;
		} catch (FirnException e) {
			return null; // the error of p's own path says more
		}
	}

	/** The error of a call that found no page that it can use. */
	private FirnException why(Page p, long answer) {
		if (answer == Page.WAIT) {
			return new FirnException(BUSY, p.path, "the ids of this moment are used up; retry, or allow a longer wait");
		}
		looking.lock();
		try {
			if (found != null) { // of another thread, perhaps: this one has its own stack
				return new FirnException(found);
			}
		} finally {
			looking.unlock();
		}
		if (answer == Page.SHUT) {
			return new FirnException(CLOSED, p.path, "its agent has ended; start it again: ids resume when it serves the page");
		}
		Duration ago = Duration.ofNanos(p.ended());
		return new FirnException(ENDED, p.path, "ids ended at " + Instant.now().minus(ago).truncatedTo(ChronoUnit.MILLIS)
			+ ": its agent or the agent's store is away; retry, ids resume when both are back");
	}
}
