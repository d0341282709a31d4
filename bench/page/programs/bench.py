"""The client in Python: see the documentation of package main."""

import sys

import firn


def one(ids, n):
    for _ in range(n):
        ids.next()


def many(ids, n, batch):
    for _ in range(0, n, batch):
        ids.batch(batch)


with firn.open(sys.argv[1]) as ids:
    for line in sys.stdin:
        n, batch = map(int, line.split())
        if batch == 1:
            one(ids, n)
        else:
            many(ids, n, batch)
        print(flush=True)
