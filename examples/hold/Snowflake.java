import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/**
 * The generator that tutorials copy from each other, with its datacenter and worker
 * from the environment, where "firn run" puts them:
 *
 * <pre>
 * javac -d . Snowflake.java
 * firn run --layout classic -- java Snowflake 1000
 * </pre>
 *
 * It prints ids, one a line: as many per second as the first argument says, 0 being as
 * many as it can; and as many in all as the second one says, if there is one.
 */
public final class Snowflake {
    private static final long EPOCH = 1480166465631L; // 2016-11-26T13:21:05.631Z
    private static final int WORKER_BITS = 5;
    private static final int DATACENTER_BITS = 5;
    private static final int SEQUENCE_BITS = 12;

    private final long datacenter;
    private final long worker;
    private long sequence = 0;
    private long last = -1;

    Snowflake(long datacenter, long worker) {
        if (datacenter < 0 || datacenter >= 1 << DATACENTER_BITS) {
            throw new IllegalArgumentException("there is no datacenter " + datacenter);
        }
        if (worker < 0 || worker >= 1 << WORKER_BITS) {
            throw new IllegalArgumentException("there is no worker " + worker);
        }
        this.datacenter = datacenter;
        this.worker = worker;
    }

    synchronized long next() {
        long now = System.currentTimeMillis();
        if (now < last) {
            throw new IllegalStateException("the clock went back by " + (last - now) + " ms");
        }
        if (now == last) {
            sequence = (sequence + 1) & ((1 << SEQUENCE_BITS) - 1);
            while (sequence == 0 && now <= last) {
                now = System.currentTimeMillis();
            }
        } else {
            sequence = 0;
        }
        last = now;
        return (now - EPOCH) << (DATACENTER_BITS + WORKER_BITS + SEQUENCE_BITS)
                | datacenter << (WORKER_BITS + SEQUENCE_BITS)
                | worker << SEQUENCE_BITS
                | sequence;
    }

    private static long variable(String name) {
        String value = System.getenv(name);
        if (value == null) {
            throw new IllegalStateException(name + " is not set: run this with firn run");
        }
        return Long.parseLong(value);
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        long rate = args.length > 0 ? Long.parseLong(args[0]) : 1;
        long count = args.length > 1 ? Long.parseLong(args[1]) : Long.MAX_VALUE;
        long batch = rate == 0 ? 100 : Math.max(1, rate / 100);
        Snowflake ids = new Snowflake(variable("FIRN_DATACENTER"), variable("FIRN_WORKER"));
        OutputStream out = new BufferedOutputStream(System.out, 4096);
        for (long left = count; left > 0; left -= batch) {
            StringBuilder lines = new StringBuilder();
            for (long i = Math.min(batch, left); i > 0; i--) {
                lines.append(ids.next()).append('\n');
            }
            out.write(lines.toString().getBytes(StandardCharsets.US_ASCII));
            out.flush();
            if (rate > 0) {
                Thread.sleep(1000 * batch / rate);
            }
        }
    }
}
