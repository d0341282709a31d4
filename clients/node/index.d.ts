/** Says why there is no id. The message says what to do. */
export declare class FirnError extends Error {
  code:
    /** there is no page at the path */
    | 'FIRN_ENOPAGE'
    /** the agent of the page has ended */
    | 'FIRN_ECLOSED'
    /** the agent or its store is away */
    | 'FIRN_EENDED'
    /** the ids of this moment are used up */
    | 'FIRN_EBUSY'
    /** the file is no page, or not one of this host, or its file system cannot have pages */
    | 'FIRN_EUNUSABLE'
    /** the path has a page of another pool, layout or shard now */
    | 'FIRN_EPOOL'
    /** a call of the system failed */
    | 'FIRN_ESYSTEM'
    /** close was called */
    | 'FIRN_ECLOSEDPAGE';
}

export interface Options {
  /** How long asynchronous calls wait for a page, or for ids, in milliseconds. Default 1000; Infinity: without end. */
  wait?: number;
  /** How long synchronous calls may block the thread while the ids of a moment are used up, in milliseconds. Default 20, at most 1000. */
  block?: number;
}

export interface Abort {
  signal?: AbortSignal;
}

export interface Page {
  /** Takes an id. */
  next(): bigint;
  /** Takes an id, as a decimal text. */
  nextString(): string;
  /** Takes n ids, or none. */
  batch(n: number): BigInt64Array;
  /** Takes an id. Waits with timers. */
  nextAsync(options?: Abort): Promise<bigint>;
  /** Takes n ids, or none. Waits with timers. */
  batchAsync(n: number, options?: Abort): Promise<BigInt64Array>;
  /** Makes all later calls fail. The page stays as it is, for other processes. */
  close(): void;
}

/** Opens the page at a path, which exists. */
export declare function open(path: string, options?: Options): Page;
/** Opens the page at a path. Waits for it. */
export declare function openAsync(path: string, options?: Options & Abort): Promise<Page>;
