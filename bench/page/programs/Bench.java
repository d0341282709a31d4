import id.firn.Firn;
import java.nio.file.Path;
import java.util.Scanner;

/** The client in Java: see the documentation of package main. */
public final class Bench {
	private static long sum;

	private static void take(Firn ids, int n, int batch) {
		for (int i = 0; i < n; i += batch) {
			sum ^= batch == 1 ? ids.next() : ids.next(batch)[batch - 1];
		}
	}

	public static void main(String[] args) {
		try (Firn ids = Firn.open(Path.of(args[0])); Scanner in = new Scanner(System.in)) {
			while (in.hasNextInt()) {
				int n = in.nextInt(), batch = in.nextInt();
				take(ids, n, batch);
				System.out.println();
			}
		}
	}
}
