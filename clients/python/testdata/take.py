"""Takes ids from a page, as told, and prints them, a line an id. An empty line ends the ids of a thread or process.

    take.py next|iterate|batch|threads|fork|pool|spawn PATH N
    take.py until PATH
    take.py runs PATH BATCH SINGLES PAUSE

runs prints runs of consecutive ids, a line FIRST COUNT, until its standard input ends.
"""

import multiprocessing
import os
import select
import sys
import threading
import time

import firn

PROCESSES = 4


def show(ids):
    sys.stdout.write("".join("%d\n" % i for i in ids) + "\n")
    sys.stdout.flush()


def some(ids, n):
    """n ids, some at a time and some alone."""
    got = []
    while len(got) < n:
        got.append(ids.next())
        got += ids.batch(min(9, n - len(got)))
    return got


def threads(ids, n):
    got = []

    def run():
        got.append(some(ids, n))

    all = [threading.Thread(target=run) for _ in range(PROCESSES)]
    for t in all:
        t.start()
    for t in all:
        t.join()
    for g in got:
        show(g)


def fork(ids, n):
    show([ids.next()])  # the page has been used before the fork
    pipes = []
    for _ in range(PROCESSES):
        r, w = os.pipe()
        if os.fork() == 0:
            with open(w, "w") as f:
                f.write("\n".join(map(str, some(ids, n))))
            os._exit(0)
        os.close(w)
        pipes.append(r)
    show(some(ids, n))
    for r in pipes:
        with open(r) as f:
            show(map(int, f.read().split()))
        os.wait()


def of_pool(n):
    return some(inherited, n)


def pool(ids, n):
    """Processes of a pool that inherit the page."""
    global inherited
    inherited = ids
    with multiprocessing.get_context("fork").Pool(PROCESSES) as p:
        for got in p.map(of_pool, [n] * PROCESSES, chunksize=1):
            show(got)


def spawn(ids, n):
    """Processes that begin empty, and get the page as an argument."""
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as p:
        for got in p.starmap(some, [(ids, n)] * PROCESSES, chunksize=1):
            show(got)


def until(ids):
    got = []
    while not select.select([sys.stdin], [], [], 0)[0]:
        got += ids.batch(9)
        got.append(ids.next())
        time.sleep(0.002)
    show(got)


def runs(ids, batch, singles, pause):
    """Ids in batches and alone. All ids increase."""
    last = 0
    while not select.select([sys.stdin], [], [], pause / 1000)[0]:
        got = ids.batch(batch) + [ids.next() for _ in range(singles)]
        text = []
        first = got[0]
        for k, i in enumerate(got):
            if i <= last:
                sys.exit("%d after %d" % (i, last))
            if k > 0 and i != last + 1:
                text.append("%d %d\n" % (first, last - first + 1))
                first = i
            last = i
        text.append("%d %d\n" % (first, last - first + 1))
        sys.stdout.write("".join(text))
        sys.stdout.flush()


def main(what, path, n="0", *more):
    n = int(n)
    with firn.open(path, wait=60) as ids:
        if what == "next":
            show([ids.next() for _ in range(n)])
        elif what == "iterate":
            show([i for i, _ in zip(ids, range(n + 1))][:n])
        elif what == "batch":
            show(ids.batch(n))
        elif what == "until":
            until(ids)
        elif what == "runs":
            runs(ids, n, *map(int, more))
        else:
            globals()[what](ids, n)


if __name__ == "__main__":
    main(*sys.argv[1:])
