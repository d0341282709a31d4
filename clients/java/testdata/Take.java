import com.sun.management.OperatingSystemMXBean;
import id.firn.Firn;
import id.firn.FirnException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;

/**
 * Takes ids from a page, as told, and prints them, a line an id, with an empty line after those of each thread.
 *
 * <p>next PATH N | batch PATH N SIZE | threads PATH N THREADS | until PATH [THREADS] | interrupt PATH |
 * opens PATH N | bench PATH N SIZE | runs PATH BATCH SINGLES PAUSE | refused PATH...
 *
 * <p>until and runs take ids until their standard input ends. runs prints runs of consecutive ids, a line FIRST COUNT. wait, a property, is how long calls wait, in milliseconds.
 */
public final class Take {
	private static volatile boolean over;

	private static synchronized void print(CharSequence ids) {
		System.out.println(ids);
	}

	private static StringBuilder take(Firn ids, int n) {
		StringBuilder all = new StringBuilder();
		for (int i = 0; i < n; i++) {
			all.append(ids.next()).append('\n');
		}
		return all;
	}

	private static StringBuilder batches(Firn ids, int n, int size) {
		StringBuilder all = new StringBuilder();
		for (int i = 0; i < n; i++) {
			for (long id : ids.next(size)) {
				all.append(id).append('\n');
			}
		}
		return all;
	}

	private static StringBuilder until(Firn ids) {
		StringBuilder all = new StringBuilder();
		while (!over) {
			all.append(batches(ids, 1, 10));
			try {
				Thread.sleep(2);
			} catch (InterruptedException e) {
				throw new IllegalStateException(e);
			}
		}
		return all;
	}

	/** Takes ids in batches and alone, and prints the runs of consecutive ids. All ids increase. */
	private static void runs(Firn ids, int batch, int singles, int pause) throws InterruptedException {
		for (long last = 0; !over; Thread.sleep(pause)) {
			long[] all = Arrays.copyOf(ids.next(batch), batch + singles);
			for (int i = batch; i < all.length; i++) {
				all[i] = ids.next();
			}
			StringBuilder text = new StringBuilder();
			long first = all[0];
			for (int i = 0; i < all.length; i++) {
				if (all[i] <= last) {
					throw new IllegalStateException(all[i] + " after " + last);
				}
				if (i > 0 && all[i] != last + 1) {
					text.append(first).append(' ').append(last - first + 1).append('\n');
					first = all[i];
				}
				last = all[i];
			}
			System.out.print(text.append(first).append(' ').append(last - first + 1).append('\n'));
			System.out.flush();
		}
	}

	/** Runs a task in several threads, and fails if one of them does. */
	private static void run(int threads, Runnable task) throws InterruptedException {
		Thread[] all = new Thread[threads];
		for (int i = 0; i < threads; i++) {
			all[i] = new Thread(task);
			all[i].setUncaughtExceptionHandler((t, e) -> {
				e.printStackTrace();
				Runtime.getRuntime().halt(1);
			});
			all[i].start();
		}
		for (Thread t : all) {
			t.join();
		}
	}

	private static void listen() {
		Thread t = new Thread(() -> {
			try {
				System.in.transferTo(java.io.OutputStream.nullOutputStream());
			} catch (IOException e) {
				e.printStackTrace();
			}
			over = true;
		});
		t.setDaemon(true);
		t.start();
	}

	/** Opens the page n times, and takes an id each time. */
	private static void opens(Path path, int n) {
		for (int i = 0; i < n; i++) {
			try (Firn ids = Firn.open(path, Duration.ofSeconds(20))) {
				print(ids.next() + "\n");
			}
		}
	}

	/** A thread waits for an id, and is interrupted. */
	private static void interrupt(Firn ids) throws InterruptedException {
		CountDownLatch begun = new CountDownLatch(1);
		Thread t = new Thread(() -> {
			begun.countDown();
			try {
				print("" + ids.next());
			} catch (FirnException e) {
				print(e.code() + " " + Thread.currentThread().isInterrupted());
			}
		});
		t.start();
		begun.await();
		Thread.sleep(100);
		t.interrupt();
		t.join();
	}

	/** Prints nanoseconds of processor time an id, of the whole process: compiler and collector too. */
	private static void bench(Firn ids, int n, int size) {
		var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
		long sum = 0, before = 0;
		for (int i = -n; i < n; i += size) {
			if (i == 0) { // what ran before was compiled meanwhile
				before = system.getProcessCpuTime();
			}
			sum ^= size == 1 ? ids.next() : ids.next(size)[size - 1];
		}
		System.out.printf("%.1f ns an id%s%n", (double) (system.getProcessCpuTime() - before) / n, sum == 0 ? "!" : "");
	}

	/** Takes an id of each page, and prints a line for each: the id, or why there is none. */
	private static void refused(String[] args) {
		for (int i = 1; i < args.length; i++) {
			try (Firn ids = Firn.open(Path.of(args[i]), Duration.ofSeconds(5))) {
				print("" + ids.next());
			} catch (FirnException e) {
				print(e.code() + ": " + e.getMessage());
			}
		}
	}

	public static void main(String[] args) throws Exception {
		if (args[0].equals("refused")) {
			refused(args);
			return;
		}
		Path path = Path.of(args[1]);
		int n = args.length > 2 ? Integer.parseInt(args[2]) : 1, more = args.length > 3 ? Integer.parseInt(args[3]) : 1;
		listen();
		try (Firn ids = Firn.open(path, Duration.ofMillis(Long.getLong("wait", args[0].equals("until") || args[0].equals("runs") ? 60_000 : 5000)))) {
			switch (args[0]) {
				case "next" -> print(take(ids, n));
				case "batch" -> print(batches(ids, n, more));
				case "threads" -> run(more, () -> print(take(ids, n)));
				case "until" -> run(n, () -> print(until(ids)));
				case "runs" -> runs(ids, n, more, Integer.parseInt(args[4]));
				case "interrupt" -> interrupt(ids);
				case "opens" -> opens(path, n);
				case "bench" -> bench(ids, n, more);
				default -> throw new IllegalArgumentException(args[0]);
			}
		} catch (FirnException e) {
			System.err.println(e.code() + ": " + e.getMessage());
			System.exit(1);
		}
	}
}
