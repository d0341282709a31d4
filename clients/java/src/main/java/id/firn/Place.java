package id.firn;

import static id.firn.FirnException.Code.NO_PAGE;
import static id.firn.FirnException.Code.SYSTEM;
import static id.firn.FirnException.Code.UNUSABLE;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** Where a file is, in this run of this host; and which files are refused as pages. */
final class Place {
	/** Each keeps one copy of a file in memory, whichever way it is reached, and writes allocated blocks in place. */
	private static final Set<String> ALLOWED = Set.of("tmpfs", "ext4", "ext3", "ext2", "xfs");

	final long device, inode;
	private final long size, born, changed;
	private final boolean regular;

	private Place(Map<String, Object> attributes) {
		device = (Long) attributes.get("dev");
		inode = (Long) attributes.get("ino");
		size = (Long) attributes.get("size");
		regular = ((Integer) attributes.get("mode") & 0170000) == 0100000;
		born = nanoseconds(attributes.get("creationTime"));
		changed = nanoseconds(attributes.get("lastModifiedTime"));
	}

	private static long nanoseconds(Object time) {
		return ((FileTime) time).to(TimeUnit.NANOSECONDS);
	}

	/** The place of a file; a symbolic link is not followed. */
	static Place of(Path path) throws IOException {
		return new Place(Files.readAttributes(path, "unix:dev,ino,size,mode,creationTime,lastModifiedTime", LinkOption.NOFOLLOW_LINKS));
	}

	boolean is(Page page) {
		return device == page.device && inode == page.inode;
	}

	private boolean is(Place other) {
		return device == other.device && inode == other.inode;
	}

	/** The path of a lane of the agent at a path. */
	static Path lane(Path path, int lane) {
		return lane == 0 ? path : Path.of(path + "." + lane);
	}

	/** Maps the page of a lane of the agent at a path. */
	static Page map(Path agent, int lane) {
		Path path = lane(agent, lane);
		String system = System.getProperty("os.name") + " " + System.getProperty("os.arch");
		if (!system.equals("Linux amd64") && !system.equals("Linux aarch64")) {
			throw new FirnException(UNUSABLE, path, "pages work on Linux on amd64 and arm64 only, and this is " + system);
		}
		try {
			// Java reads the attributes of a path, and not of an open file. If an agent replaces the page meanwhile, they are not
			// of the file that was mapped: so a refusal holds only if it comes twice.
			FirnException refused = null;
			for (int i = 0; i < 10; i++) {
				Place place = of(path);
				try {
					return new Page(place.open(path), path, lane);
				} catch (FirnException e) {
					if (refused != null && of(path).is(place)) {
						throw e;
					}
					refused = e;
				}
			}
			throw refused;
		} catch (NoSuchFileException e) {
			throw new FirnException(NO_PAGE, path, "there is no page; start its agent, or correct the path", e);
		} catch (AccessDeniedException e) {
			throw new FirnException(SYSTEM, path, "permission denied; let the user of this process read and write the page", e);
		} catch (IOException e) {
			throw new FirnException(SYSTEM, path, e.toString(), e);
		}
	}

	/** Maps the file at a path, which is this one unless it was replaced meanwhile. */
	private ByteBuffer open(Path path) throws IOException {
		String why = fileSystem(path.toRealPath());
		if (why == null && (!regular || size != Page.SIZE)) {
			why = "it is not a page";
		}
		if (why != null) {
			throw new FirnException(UNUSABLE, path, why);
		}
		ByteBuffer memory;
		try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
			if (file.size() != Page.SIZE) {
				throw new FirnException(UNUSABLE, path, "it is not a page");
			}
			memory = file.map(FileChannel.MapMode.READ_WRITE, 0, Page.SIZE).order(ByteOrder.LITTLE_ENDIAN);
		}
		why = refuse(memory);
		if (why == null) {
			why = copied(memory, path);
		}
		if (why != null) {
			throw new FirnException(UNUSABLE, path, why);
		}
		return memory;
	}

	/** Says why a header cannot be of a page of this process; null where it can. */
	private static String refuse(ByteBuffer b) throws IOException {
		byte[] magic = new byte[8], boot = new byte[16];
		b.get(0, magic).get(16, boot);
		if (!new String(magic, StandardCharsets.ISO_8859_1).equals("firnpage")) {
			return "it is not a page";
		}
		if (b.getInt(8) != 1) {
			return "it has a format that this package does not know: use a newer one";
		}
		int seqBits = b.get(128) & 0xff;
		if (b.getInt(12) != Page.SIZE || seqBits > 62 || (b.get(129) & 0xff) > 63 || (b.get(130) & 0xff) > 63 || (b.get(131) & 0xff) > 64
			|| b.get(132) != 0 && (b.get(132) & 0xff) >= (b.get(131) & 0xff) || b.getLong(96) <= 0 || Long.compareUnsigned(b.getLong(120), 1_000_000_000) > 0 || b.getLong(112) >>> seqBits != 0) {
			return "its header is damaged";
		}
		String id = Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip().replace("-", "");
		StringBuilder of = new StringBuilder();
		for (byte x : boot) {
			of.append(String.format("%02x", x));
		}
		if (!id.equals(of.toString())) {
			return "the system was started again since, or it is of another host; start its agent here";
		}
		Path time = Path.of("/proc/self/ns/time");
		long namespace = Files.exists(time, LinkOption.NOFOLLOW_LINKS) ? (Long) Files.getAttribute(time, "unix:ino") : 0;
		if (namespace != b.getLong(32)) {
			return "it is of another time namespace; run the agent and this process in the same one";
		}
		return null;
	}

	/** Says why this file is not the one that its header names; null where it is. */
	private String copied(ByteBuffer b, Path path) {
		if (b.getLong(40) != device || b.getLong(48) != inode) {
			return "it is a copy; use the original";
		}
		long named = b.getLong(56);
		if (named == 0) { // its file system does not say; Java says 0 then, or when it was changed
			return born == 0 || born == changed ? null : "it is a copy; use the original";
		}
		if (!birthIsKnown(path)) {
			return "this Java cannot tell when a file was made, so it cannot tell a page from its copy: use Java 17.0.11 or later";
		}
		return named == born ? null : "it is a copy; use the original";
	}

	/**
	 * Whether creationTime is when a file was made. Before 17.0.11, or without statx in the C library, it is when the file was
	 * changed. A directory tells: it is changed when files are made in it.
	 */
	private static boolean birthIsKnown(Path path) {
		for (Path p : List.of(path.getParent(), Path.of("/dev/shm"), Path.of("/run"), Path.of("/"), Path.of(System.getProperty("java.home")))) {
			try {
				Place place = of(p.toRealPath());
				if (place.born != 0 && place.born != place.changed) {
					return true;
				}
			} catch (IOException e) {
				continue; // another one tells
			}
		}
		return false;
	}

	/**
	 * Says why the file system of this file cannot have pages; null where it can. The mount is the last one whose point is
	 * the longest part of the path. Where another mount hides it, its device is not the file's.
	 */
	private String fileSystem(Path real) throws IOException {
		String type = null, device = "";
		Path point = null;
		for (String line : Files.readAllLines(Path.of("/proc/self/mountinfo"))) {
			// 36 35 98:0 /root /point options optional... - type source options
			String[] fields = line.split(" ");
			Path at = Path.of(unescape(fields[4]));
			int dash = List.of(fields).indexOf("-");
			if (real.startsWith(at) && (point == null || at.getNameCount() >= point.getNameCount())) {
				point = at;
				device = fields[2];
				type = fields[dash + 1];
			}
		}
		long major = (this.device >>> 8 & 0xfff) | (this.device >>> 32 & ~0xfffL), minor = (this.device & 0xff) | (this.device >>> 12 & ~0xffL);
		if (ALLOWED.contains(type) && device.equals(major + ":" + minor)) {
			return null;
		}
		String name = type == null || ALLOWED.contains(type) ? "of an unknown type" : type;
		return "its file system is " + name + ": use a path on tmpfs, ext4 or xfs, such as /dev/shm or /run";
	}

	/** Undoes what mountinfo does to blanks and backslashes: \040. */
	private static String unescape(String s) {
		StringBuilder b = new StringBuilder();
		for (int i = 0; i < s.length(); i++) {
			if (s.charAt(i) == '\\' && i + 3 < s.length()) {
				b.append((char) Integer.parseInt(s.substring(i + 1, i + 4), 8));
				i += 3;
			} else {
				b.append(s.charAt(i));
			}
		}
		return b.toString();
	}
}
