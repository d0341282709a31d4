package id.firn;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Scanner;

/** Runs the rules of {@link Page} on a page in memory, for the tests. */
public final class Rules {
	private static final int HORIZON_NOW = 4 << 4;

	/** A page of which others change the words after a compare-and-swap, and before it. */
	private static final class Disturbed extends Page {
		final ByteBuffer memory;
		Runnable before = () -> { }, after = () -> { };
		Runnable onLoad = () -> { };
		long clock;

		Disturbed(ByteBuffer memory) {
			super(memory, null, 0);
			this.memory = memory;
		}

		@Override
		long load(int word) {
			Runnable now = onLoad;
			onLoad = () -> { };
			now.run();
			return super.load(word);
		}

		@Override
		boolean swap(long old, long value) {
			Runnable now = before;
			before = () -> { };
			now.run();
			boolean is = super.swap(old, value);
			if (is) {
				after.run();
			}
			return is;
		}

		@Override
		long now() {
			return clock;
		}
	}

	private static ByteBuffer memory(long tick, int bits, long even, long ahead) {
		ByteBuffer b = ByteBuffer.allocateDirect(Page.SIZE).order(ByteOrder.LITTLE_ENDIAN);
		b.putLong(96, tick).putLong(112, even).putLong(120, ahead).put(128, (byte) bits).put(129, (byte) 0).put(130, (byte) bits);
		return b;
	}

	private static Disturbed page() {
		ByteBuffer b = memory(100, 4, 15, 200);
		b.putLong(Page.NUMBER, 17).putLong(Page.HORIZON, HORIZON_NOW + 15);
		Disturbed p = new Disturbed(b);
		p.clock = 150;
		return p;
	}

	private static void want(String what, long got, long want) {
		if (got != want) {
			throw new AssertionError(what + ": " + got + ", want " + want);
		}
	}

	private static void steps() {
		Disturbed p = page();
		want("a number", p.take(1, null), 18);
		p.after = () -> p.memory.putLong(Page.HORIZON, 18);
		want("a horizon that is lower after the swap", p.take(1, null), Page.ENDED);

		Disturbed q = page();
		q.before = () -> q.memory.putLong(Page.NUMBER, 30);
		want("another process was first", q.take(1, null), 31);
		q.before = () -> q.memory.putLong(Page.NUMBER, Page.CLOSED);
		want("closed before the swap", q.take(1, null), Page.SHUT);
		want("the word stays closed", q.memory.getLong(Page.NUMBER), Page.CLOSED);

		Disturbed r = page();
		r.after = () -> r.leave();
		want("left after the swap", r.take(1, null), Page.PARTED);
		want("left", r.take(1, null), Page.PARTED);

		Disturbed v = page();
		v.memory.putLong(Page.NUMBER, HORIZON_NOW + 15);
		want("the horizon is reached", v.take(1, null), Page.ENDED);
		want("a call that is refused does not write", v.memory.getLong(Page.NUMBER), HORIZON_NOW + 15);

		// A call swaps the word, then looks whether it has left. leave marks, then loads the word: its mark is there by then.
		Disturbed u = page();
		u.onLoad = () -> want("marked before the word is loaded", u.take(1, null), Page.PARTED);
		u.leave();

		Disturbed s = page();
		s.memory.putLong(Page.NUMBER, 77).putLong(Page.CLOSED_AT, 0);
		want("above an open page", s.leave(), (4 << 4) + 15);
		s.memory.putLong(Page.NUMBER, Page.CLOSED).putLong(Page.CLOSED_AT, 33);
		want("above a closed page", s.leave(), (2 << 4) + 15);
		s.memory.putLong(Page.CLOSED_AT, 0);
		want("above a page of which nobody says where it was closed", s.leave(), (3 << 4) + 15);
		s.above = 500;
		want("above the page before it", s.leave(), 500);
		Disturbed t = page();
		t.above = 60;
		want("a number above", t.take(1, null), 61);
		long[] last = new long[1];
		want("some numbers", t.take(100, last), 62);
		want("not above what the clock allows", last[0], 63);
		want("further ahead", t.take(1, null), Page.WAIT);
		t.clock = 1000;
		want("the clock is above the horizon", t.take(1, null), Page.ENDED);
	}

	/** Reads cases, and prints what first and last say of each. */
	private static void look() {
		Scanner in = new Scanner(System.in);
		StringBuilder out = new StringBuilder();
		while (in.hasNextLong()) {
			Page p = new Page(memory(in.nextLong(), in.nextInt(), in.nextLong(), in.nextLong()), null, 0);
			long word = in.nextLong(), horizon = in.nextLong();
			p.above = in.nextLong();
			long now = in.nextLong(), n = in.nextLong(), first = p.first(word, horizon, now);
			out.append(first).append(' ').append(first < 0 ? 0 : p.last(first, horizon, now, n)).append('\n');
		}
		System.out.print(out);
	}

	public static void main(String[] args) {
		if (args[0].equals("look")) {
			look();
		} else {
			steps();
			System.out.println("ok");
		}
	}
}
