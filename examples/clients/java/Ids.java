import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/**
 * Ids of a firn server, a block of them fetched ahead, with nothing but the JDK:
 *
 * <pre>
 * java Ids.java redis://127.0.0.1:6380 photo 10
 * </pre>
 *
 * With Jedis, Lettuce or Redisson, ask is the client's way to send a command that it
 * does not know. What is dropped, because it became too old or because its answer was
 * lost, nobody ever gets.
 */
public final class Ids implements AutoCloseable {
    private record Block(long born, long[] ids) {}

    private static final long MAX_AGE = 1_000_000_000L; // nanoseconds

    private final Connection connection;
    private final String series;
    private final int size;
    private Block now = new Block(System.nanoTime(), new long[0]);
    private int used = 0;
    private CompletableFuture<Block> ahead;

    Ids(Connection connection, String series, int size) {
        this.connection = connection;
        this.series = series;
        this.size = size;
    }

    private CompletableFuture<Block> fetch() {
        return CompletableFuture.supplyAsync(() -> {
            long born = System.nanoTime();
            try {
                return new Block(born, connection.ask("FIRN.NEXT", series, Integer.toString(size)));
            } catch (IOException e) {
                throw new CompletionException(e);
            }
        });
    }

    /** Hands out an id, each once, none older than a second. */
    public synchronized long next() throws IOException {
        while (used == now.ids.length || System.nanoTime() - now.born > MAX_AGE) {
            CompletableFuture<Block> block = ahead != null ? ahead : fetch();
            ahead = null;
            try {
                now = block.join();
            } catch (CompletionException e) {
                throw new IOException(e.getCause().getMessage(), e);
            }
            used = 0;
        }
        if (ahead == null && used >= size / 2) {
            ahead = fetch();
        }
        return now.ids[used++];
    }

    @Override
    public void close() throws IOException {
        connection.close();
    }

    /**
     * A connection that speaks as much of the Redis protocol as ids need. It is made when
     * it is needed, and again after a failure.
     */
    private static final class Connection {
        private final URI url;
        private Socket socket; // null: none
        private InputStream in;

        Connection(URI url) {
            this.url = url;
        }

        private void connect() throws IOException {
            socket = new Socket(url.getHost(), url.getPort());
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(5000);
            in = new BufferedInputStream(socket.getInputStream());
            if (url.getUserInfo() != null) {
                send("AUTH", url.getUserInfo().split(":", 2)[1]);
                line('+');
            }
        }

        /** Sends a command whose answer is an array of numbers, each in a string. */
        synchronized long[] ask(String... words) throws IOException {
            try {
                if (socket == null) {
                    connect();
                }
                send(words);
                long[] ids = new long[Integer.parseInt(line('*'))];
                for (int i = 0; i < ids.length; i++) {
                    line('$'); // its length, of which the number itself has no need
                    ids[i] = Long.parseLong(line((char) 0));
                }
                return ids;
            } catch (IOException | RuntimeException e) {
                close(); // what follows would be taken for the next answer
                throw e;
            }
        }

        synchronized void close() throws IOException {
            if (socket != null) {
                socket.close();
            }
            socket = null;
        }

        private void send(String... words) throws IOException {
            StringBuilder text = new StringBuilder("*" + words.length + "\r\n");
            for (String w : words) {
                text.append("$" + w.getBytes(StandardCharsets.UTF_8).length + "\r\n" + w + "\r\n");
            }
            socket.getOutputStream().write(text.toString().getBytes(StandardCharsets.UTF_8));
        }

        /** Reads a line that begins with kind, and returns the rest of it. */
        private String line(char kind) throws IOException {
            StringBuilder text = new StringBuilder();
            for (int c = in.read(); c != '\n'; c = in.read()) {
                if (c < 0) {
                    throw new EOFException("the server has hung up");
                }
                text.append((char) c);
            }
            text.setLength(text.length() - 1);
            if (kind != 0 && text.charAt(0) != kind) {
                throw new IOException(text.toString());
            }
            return kind == 0 ? text.toString() : text.substring(1);
        }
    }

    public static void main(String[] args) throws IOException {
        try (Ids ids = new Ids(new Connection(URI.create(args[0])), args[1], 1000)) {
            for (int i = 0; i < Integer.parseInt(args[2]); i++) {
                System.out.println(ids.next());
            }
        }
    }
}
