<?php

/** Declarations of the extension firn, for editors. The extension does not load this file. */

namespace Firn;

/**
 * Ids from the shared page at a path. All requests of a process use one mapping of the page.
 */
final class Page
{
    /**
     * Opens the page. Each call waits up to $wait seconds while there is no page that can be used, or no id yet;
     * null means without end.
     *
     * @throws Exception
     */
    public function __construct(string $path, ?float $wait = 1.0) {}

    /**
     * Takes one id.
     *
     * @throws Exception
     */
    public function next(): int {}

    /**
     * Takes $n ids, or none and throws. They increase.
     *
     * @return list<int>
     *
     * @throws Exception
     */
    public function batch(int $n): array {}
}

/** No id. getCode() is the code of firn.h, getMessage() says what to do. */
class Exception extends \RuntimeException {}

/** There is no page at the path: start its agent, or correct the path. */
class NoPage extends Exception {}

/** The agent of the page has ended: start it again. */
class Closed extends Exception {}

/** The agent or its store is away: retry, ids resume when both are back. */
class Ended extends Exception {}

/** The ids of this moment are used up: retry, or allow a longer wait. */
class Busy extends Exception {}

/** The file is not a page that this process can use. The message says why. */
class Unusable extends Exception {}
