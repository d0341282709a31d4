package id.firn;

/** Says why there is no id, and what to do. */
public final class FirnException extends RuntimeException {
	private static final long serialVersionUID = 1;

	/** What is wrong. */
	public enum Code {
		/** There is no page at the path: start its agent, or correct the path. */
		NO_PAGE,
		/** The agent of the page has ended: start it again. */
		CLOSED,
		/** The agent or its store is away: retry, ids resume when both are back. */
		ENDED,
		/** The file is no page, or not one of this host, or its file system cannot have pages. */
		UNUSABLE,
		/** The path has a page of another pool, layout or shard now. */
		POOL,
		/** The ids of this moment are used up, and the call waited as long as it may: retry, or wait longer. */
		BUSY,
		/** A call of the system failed. */
		SYSTEM
	}

	private final Code code;

	FirnException(Code code, Object path, String why) {
		this(code, path, why, null);
	}

	FirnException(Code code, Object path, String why, Throwable cause) {
		super("firn: page " + path + ": " + why, cause);
		this.code = code;
	}

	/** The same error for another call. */
	FirnException(FirnException cause) {
		super(cause.getMessage(), cause);
		code = cause.code;
	}

	/**
	 * What is wrong.
	 *
	 * @return the code
	 */
	public Code code() {
		return code;
	}
}
